"""`tieredctl context …`: names for clusters with their stores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from tieredctl.cli import named_context
from tieredctl.cli.arguments import bootstrap_servers, given_path, pairs
from tieredctl.cli.confirmation import can_ask, demand_typed
from tieredctl.cli.context_in_use import ContextInUse, Role, context_in_use
from tieredctl.cli.options import DryRun
from tieredctl.cli.output import Listing, TableColumn
from tieredctl.cli.places import MetadataOptions, RemoteOptions
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import View
from tieredctl.config.contexts import VARIABLE, Context, chosen_context, contexts
from tieredctl.config.file import configuration_path
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.result_row import Column, ResultRow, Wide
from tieredctl.process.redaction import HIDDEN, is_secret, redacted

_commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None)
_SHOW_COLUMNS = (
    TableColumn("SETTING", "setting"),
    TableColumn("VALUE", lambda row: _in_a_line(row["value"]), importance=2),
    TableColumn("FROM", "from", importance=2),
)
_SHOWN = (*(Role.CLUSTER, Role.COMMAND_CONFIG, Role.STORE, Role.STORE_OPTIONS, Role.LAYOUT, Role.LAYOUT_OPTIONS),)
_INSTEAD = {"log_dir": "logDirs", "export": "export", "metadata_source": "metadataSource"}
"""Settings that no context has, by their parameters."""
_KEY_FILE = "private-key="
Name = Annotated[str, typer.Argument(metavar="NAME", help="The context.")]


def add_to(app: typer.Typer, noun: str, meaning: str) -> None:
    """Adds this noun's commands."""
    app.add_typer(_commands, name=noun, help=meaning)


@dataclass(frozen=True, slots=True)
class _ContextRow(ResultRow):
    """A context, without its secrets."""

    name: Annotated[str, Column(after="current")]
    current: bool
    bootstrap_server: str | None
    command_config: Wide[str | None]
    store: str | None
    layout: str | None


@_commands.command("list")
def list_contexts(*, view: View) -> ExitCode:
    """List the contexts by their names; * is the current one.

    For example: tieredctl context list
    """
    named = contexts()
    rows = [
        _ContextRow(
            *(one.name, one.name == named.current, one.bootstrap_server, one.command_config, one.store, one.layout)
        )
        for _, one in sorted(named.by_name.items())
    ]
    source = {"kind": "configuration", "path": str(configuration_path())}
    summary = {"contexts": len(rows), "current": named.current}
    if not rows and view.is_table:
        view.say(f"There are no contexts in {source['path']}.")
    listing = result_listing(
        *("Contexts", source, _ContextRow, rows, summary), current=lambda item: "*" if item["current"] else ""
    )
    return view.show(listing)


@_commands.command("show")
def show(
    *,
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="This context instead of the chosen one.")
    ] = None,
    metadata_options: MetadataOptions,
    remote_options: RemoteOptions,
    view: View,
) -> ExitCode:
    """Show which cluster and store commands use now, and where each value comes from: an option, a variable, the
    context, or the default.

    For example: tieredctl context show
    """
    del remote_options  # its values, with their origins, are in what is in use
    in_use = context_in_use.get() or ContextInUse()
    if name is not None:
        in_use = _alone(contexts().named(name))
    elif in_use.left_out_by is not None:
        in_use.chosen = chosen_context(named_context.get())
    rows = [*map(_row(in_use), _SHOWN)]
    rows += [
        {"setting": setting, "value": _shown_instead(getattr(metadata_options, name)), "from": in_use.instead[name]}
        for name, setting in _INSTEAD.items()
        if name in in_use.instead
    ]
    chosen = in_use.chosen
    if chosen is not None and chosen.context.prices and in_use.left_out_by is None:
        many = f"{len(chosen.context.prices)} in the file"
        rows.append({"setting": "prices", "value": many, "from": in_use.chosen_origin})
    summary = {
        "path": str(configuration_path()),
        "context": None if chosen is None else chosen.context.name,
        "chosenBy": None if chosen is None else chosen.by,
        "leftOutBy": in_use.left_out_by,
    }
    source = {"kind": "configuration", "path": summary["path"]}
    listing = Listing("Context", source, rows, _SHOW_COLUMNS, summary, tuple(rows[0]))
    return view.show(listing, sentences=_sentences(in_use) if view.is_table else ())


def _alone(context: Context) -> ContextInUse:
    """A context as it would be used with nothing else typed."""
    from tieredctl.cli.context_in_use import filled_in

    roles = {role.value: role for role in _SHOWN}
    nothing: dict[str, Any] = dict.fromkeys(roles)
    token = named_context.set(context.name)
    try:
        filled_in(nothing, roles, dict.fromkeys(roles, "DEFAULT"), dict.fromkeys(roles, ""), changes=False)
    finally:
        named_context.reset(token)
    return context_in_use.get() or ContextInUse()


def _row(in_use: ContextInUse) -> Any:
    def row(role: Role) -> dict[str, Any]:
        value = in_use.values.get(role)
        shown = [_shown(one) for one in value] if isinstance(value, list) else None if value is None else str(value)
        default = "auto" if role is Role.LAYOUT else None
        return {
            "setting": role.value,
            "value": default if shown is None else shown,
            "from": in_use.origins.get(role, "default"),
        }

    return row


def _shown_instead(value: object) -> object:
    return [str(one) for one in value] if isinstance(value, list) else redacted(str(value))


def _in_a_line(value: object) -> object:
    return " ".join(value) if isinstance(value, list) else value


def _shown(pair: str) -> str:
    name = pair.partition("=")[0]
    is_file = pair.startswith(_KEY_FILE) and "-----" not in pair
    return f"{name}={HIDDEN}" if is_secret(name) and not is_file else pair


def _sentences(in_use: ContextInUse) -> list[str]:
    sentences = [f"Configuration file: {configuration_path()}"]
    if in_use.chosen is None:
        return [*sentences, f"No context is chosen: neither --context, nor {VARIABLE}, nor `tieredctl context use`."]
    chosen = f"Context {in_use.chosen.context.name}, chosen by {in_use.chosen.by}"
    if in_use.left_out_by is None:
        return [*sentences, f"{chosen}."]
    return [*sentences, f"{chosen}, is not used: {in_use.left_out_by} names another place."]


@_commands.command("use")
def use(
    *,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The context.")] = None,
    none: Annotated[bool, typer.Option("--none", help="Have no current context.")] = False,
    dry_run: DryRun = False,
    view: View,
) -> ExitCode:
    """Make a context the current one: commands use it where nothing else is named.

    For example: tieredctl context use prod
    """
    from tieredctl.config.context_changes import use_context

    if (name is None) != none:
        raise TieredctlError(
            ErrorCode.USAGE, "Give either NAME or --none.", hint="`tieredctl context list` shows them."
        )
    use_context(name, dry_run=dry_run)
    current = "No context" if name is None else f"Context {name}"
    view.say(f"{current} {'would be' if dry_run else 'is'} current.")
    chosen = chosen_context(None)
    if name is not None and chosen is not None and chosen.by == VARIABLE and chosen.context.name != name:
        view.say(f"{VARIABLE} chooses {chosen.context.name} in this shell.")
    return ExitCode.CLEAN


@_commands.command("add")
def add(
    *,
    name: Name,
    bootstrap_server: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", parser=bootstrap_servers, help="The cluster.")
    ] = None,
    command_config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", parser=given_path, help="Client properties, which may have secrets; only its path is kept."
        ),
    ] = None,
    store: Annotated[str | None, typer.Option(metavar="URL", help="Its remote store.")] = None,
    store_option: Annotated[
        list[str] | None,
        typer.Option("--store-option", metavar="NAME=VALUE", help="A store setting; repeat it for several."),
    ] = None,
    layout: Annotated[str | None, typer.Option(metavar="NAME", help="How keys map to segments.")] = None,
    layout_option: Annotated[
        list[str] | None,
        typer.Option("--layout-option", metavar="NAME=VALUE", help="A layout setting; repeat it for several."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Replace a context of this name.")] = False,
    dry_run: DryRun = False,
    view: View,
) -> ExitCode:
    """Add a context, in a file of its own beside the configuration file. Secrets are never kept there.

    For example: tieredctl context add prod --bootstrap-server broker-1:9092 --store s3://archive/kafka --layout aiven
    """
    from tieredctl.config.context_changes import add_context, file_of_context
    from tieredctl.wiring.places import StorePlace

    if bootstrap_server is None and store is None:
        raise TieredctlError(ErrorCode.USAGE, "A context needs --bootstrap-server, --store or both.")
    if store is not None:
        StorePlace(store).demand_known()
    context = Context(
        name,
        bootstrap_server,
        None if command_config is None else str(command_config.expanduser().absolute()),
        None if store is None else StorePlace(store).from_everywhere(),
        pairs("--store-option", store_option),
        layout,
        _absolute_files(pairs("--layout-option", layout_option)),
    )
    if not force and can_ask() and name in contexts().by_name:
        if not dry_run:
            demand_typed(name, f"There is a context {name}: type its name to replace it")
        force = True
    add_context(context, replace=force, dry_run=dry_run)
    if dry_run:
        view.say(f"Would add context {name}: {file_of_context(name)}.")
    else:
        view.say(f"Added context {name}: {file_of_context(name)}.", f"Use it with: tieredctl context use {name}")
    return ExitCode.CLEAN


def _absolute_files(options: Mapping[str, str]) -> dict[str, str]:
    """So does a file's path, as --command-config has it."""
    return {
        name: str(Path(value).expanduser().absolute()) if value and f"{name}=" == _KEY_FILE else value
        for name, value in options.items()
    }


@_commands.command("remove")
def remove(*, name: Name, dry_run: DryRun = False, view: View) -> ExitCode:
    """Remove a context that was added; one that the configuration file has is yours to remove.

    For example: tieredctl context remove staging
    """
    from tieredctl.config.context_changes import file_of_context, remove_context

    remove_context(name, dry_run=dry_run)
    view.say(f"{'Would remove' if dry_run else 'Removed'} context {name}: {file_of_context(name)}.")
    return ExitCode.CLEAN
