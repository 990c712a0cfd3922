"""The command line's commands. Start-up is part of the product: only those of the noun that was typed are loaded, and
only those that were typed have their options."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from importlib import import_module
from typing import TYPE_CHECKING, TypeVar

from tieredctl import __version__
from tieredctl.cli import PROGRAM
from tieredctl.cli.anywhere import CONTEXT, DEBUG, NO_COLOR, VERBOSE

if TYPE_CHECKING:
    import typer
    from typer.core import TyperGroup
    from typer.models import CommandInfo, TyperInfo

_Verb = TypeVar("_Verb", "CommandInfo", "TyperInfo")

NOUNS = {
    "status": "Show a cluster on one screen: what is tiered and where, what lags, is stuck, orphaned or wrong.",
    "exporter": "Serve metrics of a cluster to Prometheus: what is tiered, lags, is stuck, orphaned or wrong.",
    "metadata": "Read __remote_log_metadata: events, segments, look-ups.",
    "store": "Read the local files of brokers and remote log stores; compare and copy remote stores.",
    "remote": "List and read what is in the remote store.",
    "verify": "Prove that the remote store holds what the metadata promises.",
    "heal": "Bring missing or damaged objects of segments back, from wherever their bytes still are.",
    "orphans": "Find and remove orphaned objects in the remote store.",
    "partition": "Remove what partitions of deleted topics left in remote storage.",
    "recover": "Rebuild what was lost, from what the remote store still has.",
    "backup": "Keep what a cluster can be made again from, beside its bucket.",
    "restore": "Bring a cluster back on new nodes, from its bucket and a backup set.",
    "topic": "Show what is tiered, how much is where and how far tiering lags; turn tiering on and off.",
    "offsets": "Show where a topic's logs begin and end, locally and in remote storage.",
    "explain": "Show where a record lives, and how a consumer or a follower would get it.",
    "explain-code": "Show what the code of a finding or an error means, and what to do.",
    "estimate": "Estimate sizes, times and costs in advance.",
    "doctor": "Check tiered storage on a cluster, or its settings, for problems.",
    "snapshot": "Read, compare, fetch and clean KRaft snapshots, and the metadata log after them.",
    "demo": "See it work on a real captured cluster; no server needed.",
    "support-bundle": "Write one file for whoever is to help: versions, settings, findings, statistics.",
    "context": "Name clusters with their stores, and choose one of them.",
    "completions": "Print a shell's completion script.",
}
"""The first word of each of tieredctl's own commands, and what the help says of it; its module in
tieredctl.cli.commands has its name."""


def nouns() -> dict[str, str]:
    """All nouns with their help, those of installed packages too, in the help's order."""
    from tieredctl.model.command_packages import BEFORE_PACKAGES, package_nouns

    named: dict[str, str] = {}
    for noun, meaning in NOUNS.items():
        named[noun] = meaning
        if noun == BEFORE_PACKAGES:
            named |= {noun: one.meaning or "" for noun, one in package_nouns().items()}
    return named


def command_of(words: Sequence[str]) -> TyperGroup:
    """The whole command line's command, in which those that the words name have their options."""
    import typer.core
    import typer.main

    # Packages are only looked for where the first word is none of tieredctl's own nouns.
    first = next((word for word in words if not word.startswith("-")), None)
    meanings = NOUNS if first in NOUNS else nouns()
    chosen = next((word for word in words if word in meanings), None)
    command = typer.main.get_group(_app(chosen, words))
    # Typer looks into the callback of each command that it makes, which is slow.
    command.commands = {
        noun: command.commands[noun]
        if noun == chosen
        else typer.core.TyperCommand(noun, help=meaning, callback=_not_loaded, rich_markup_mode=None)
        for noun, meaning in meanings.items()
    }
    return command


def _app(chosen: str | None, words: Sequence[str]) -> typer.Typer:
    """The application with the commands of a noun, if one is chosen; those that `words` name have their options."""
    import typer

    from tieredctl.cli.given_once import GroupWithOptionsOnce

    app = typer.Typer(
        cls=GroupWithOptionsOnce,
        name=PROGRAM,
        no_args_is_help=True,
        add_completion=False,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(
        version: bool = typer.Option(False, "--version", help="Show the version and exit."),
        no_color: bool = typer.Option(False, NO_COLOR, help="No colours, as with NO_COLOR; anywhere in the line."),
        context: str = typer.Option(
            None, CONTEXT, metavar="NAME", help="The context: cluster and store; anywhere in the line."
        ),
        verbose: bool = typer.Option(
            False, *VERBOSE, help="Show on stderr what is asked of brokers and stores; anywhere in the line."
        ),
        debug: bool = typer.Option(
            False, DEBUG, help="The same, with libraries' logs and where errors arise; anywhere in the line."
        ),
    ) -> None:
        """The operator's toolkit for Apache Kafka tiered storage: what is in remote storage and why, whether it agrees
        with the metadata, and how to change it without losing data."""
        del no_color, context, verbose, debug  # read before the line is parsed
        if version:
            print(f"{PROGRAM} {__version__}")
            raise typer.Exit

    if chosen is not None:
        _add_noun(app, chosen, words)
        app.registered_commands = [*map(_command, app.registered_commands)]
        app.registered_groups = [_group_with_typed_verbs(one, words) for one in app.registered_groups]
    return app


def _add_noun(app: typer.Typer, noun: str, words: Sequence[str]) -> None:
    import typer

    if noun in NOUNS:
        import_module(f"tieredctl.cli.commands.{noun.replace('-', '_')}").add_to(app, noun, NOUNS[noun])
    else:
        from tieredctl.model.command_packages import package_nouns

        own, commands = package_nouns()[noun], typer.Typer(no_args_is_help=True, rich_markup_mode=None)
        own.add_to(commands)
        app.add_typer(commands, name=noun, help=own.meaning)
    verb = next((word for word in words[words.index(noun) + 1 :] if not word.startswith("-")), None)
    for group in app.registered_groups:
        assert group.typer_instance
        # A verb of the noun's own is loaded without looking for packages.
        if all(own.name != verb for own in group.typer_instance.registered_commands):
            from tieredctl.model.command_packages import verbs_added

            for added in verbs_added(noun):
                added.add_to(group.typer_instance)


def _with_typed_verbs(commands: typer.Typer, words: Sequence[str]) -> typer.Typer:
    """The same, where of the other verbs there is a name and a line of help: Typer reads the options of all it knows,
    which is slow."""
    typed = copy(commands)
    typed.registered_commands = [
        _command(verb) if verb.name in words else _unread(verb) for verb in commands.registered_commands
    ]
    if commands.registered_callback is not None:
        typed.registered_callback = _read(commands.registered_callback)
    typed.registered_groups = [_group_with_typed_verbs(group, words) for group in commands.registered_groups]
    return typed


def _group_with_typed_verbs(group: TyperInfo, words: Sequence[str]) -> TyperInfo:
    assert group.typer_instance
    from tieredctl.cli.given_once import GroupWithOptionsOnce

    typed = copy(group)
    typed.cls = GroupWithOptionsOnce
    typed.typer_instance = _with_typed_verbs(group.typer_instance, words)
    return typed


def _command(verb: CommandInfo) -> CommandInfo:
    from tieredctl.cli.help_text import CommandWithExample

    read = _read(verb)
    if read.cls is None or not issubclass(read.cls, CommandWithExample):
        read.cls = CommandWithExample
    return read


def _read(verb: _Verb) -> _Verb:
    from tieredctl.cli.option_groups import flattened

    read = copy(verb)
    read.callback = verb.callback and flattened(verb.callback)
    return read


def _unread(verb: CommandInfo) -> CommandInfo:
    unread = copy(verb)
    unread.help = verb.callback.__doc__ if verb.callback else None
    unread.callback = _not_loaded
    return unread


def _not_loaded() -> None:
    """Stands for the commands of a noun, or for a verb, that was not typed."""
