"""Where the process begins: wiring, and the one place where errors become messages and exit codes.

Start-up is part of the product: `--version` imports nothing, and only the commands of the noun that was typed are
loaded.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING

from tieredctl import __version__
from tieredctl.errors import ExitCode, TieredctlError

if TYPE_CHECKING:
    import typer

PROGRAM = "tieredctl"
_COMPLETION_VARIABLE = "_TIEREDCTL_COMPLETE"

NOUNS = {
    "metadata": "What __remote_log_metadata says: events, segments, look-ups.",
    "store": "The local files that brokers and remote-log stores leave.",
    "remote": "What is in the remote store.",
    "verify": "Prove that the remote store holds what the metadata promises.",
    "demo": "See it work on a real captured cluster; no server needed.",
    "completions": "Print a shell's completion script.",
}
"""The first word of each command, and what the help says of it; its module is tieredctl.cli.commands.<noun>."""


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with the command's exit code."""
    words = sys.argv[1:] if arguments is None else arguments
    if words == ["--version"]:
        print(f"{PROGRAM} {__version__}")
        return
    sys.exit(run(words))


def run(words: list[str]) -> int:
    """Runs the command line: its exit code. Says on stderr, in a sentence, whatever goes wrong."""
    import typer

    try:
        code = _app(words)(words, prog_name=PROGRAM, standalone_mode=False)
        sys.stdout.flush()
        return int(code or 0)
    except typer.TyperException as wrong_use:
        wrong_use.show()
        return int(wrong_use.exit_code)
    except TieredctlError as error:
        return _fail(error)
    except (KeyboardInterrupt, typer.Abort):
        return _fail(TieredctlError("interrupted", "Interrupted."))
    except BrokenPipeError:
        _close_stdout()
        return ExitCode.CLEAN
    except OSError as error:
        return _fail(TieredctlError("unreadable", f"{error.strerror or error}: {error.filename or 'input or output'}."))
    except MemoryError:
        return _fail(TieredctlError("unreadable", "There is not enough memory for this."))


def _app(words: list[str]) -> typer.Typer:
    """The application with the commands of the first noun in `words`; the others are names and a line of help."""
    import typer

    app = typer.Typer(
        name=PROGRAM,
        no_args_is_help=True,
        add_completion=_COMPLETION_VARIABLE in os.environ,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback(invoke_without_command=True)(_root)
    chosen = next((word for word in words if not word.startswith("-")), None)
    for noun, meaning in NOUNS.items():
        if noun == chosen or _COMPLETION_VARIABLE in os.environ or chosen == "completions":
            import_module(f"tieredctl.cli.commands.{noun}").add_to(app, noun, meaning)
        else:
            app.command(noun, help=meaning)(_not_loaded)
    return app


def _root(version: bool = False) -> None:
    """The operator's toolkit for Apache Kafka tiered storage: what is in remote storage and why, whether it agrees
    with the metadata, and how to change it without losing data."""
    if version:
        print(f"{PROGRAM} {__version__}")


def _not_loaded() -> None:
    """Stands for the commands of a noun that was not typed."""


def _fail(error: TieredctlError) -> int:
    """What a tired operator reads: a sentence, and what to do next."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        _close_stdout()
    print(f"{PROGRAM}: {error.message}", file=sys.stderr)
    if error.hint:
        print(f"  {error.hint}", file=sys.stderr)
    return int(error.exit_code)


def _close_stdout() -> None:
    """Keeps Python from complaining, at its end, that the reader of a pipe has gone."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
