"""Where the process begins, and the one place where errors become messages and exit codes. Start-up is part of the
product: `--version` imports nothing."""

from __future__ import annotations

import gc
import io
import os
import sys
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import copy_context
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl import __version__
from tieredctl.cli import PROGRAM, named_context, owns_process, running_command, running_words
from tieredctl.cli.anywhere import NO_COLOR, Line, read_line
from tieredctl.cli.command_tree import command_of
from tieredctl.cli.trouble.interruption import (
    after_interruption,
    came,
    end_process,
    handle_signals,
    note_end,
    note_said,
)
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, system_error
from tieredctl.process import interruption, steady_time
from tieredctl.process.run_metrics import RunMetrics, run_metrics

if TYPE_CHECKING:
    import typer
    from typer.core import TyperGroup

_HELP = {"-h", "--help"}
_COMPLETION_VARIABLE = "_TIEREDCTL_COMPLETE"


def main(arguments: list[str] | None = None) -> None:
    """Runs the command line and ends the process with the command's exit code; where a program gives the arguments,
    raises SystemExit and leaves that program's handlers of signals as they were."""
    words = sys.argv[1:] if arguments is None else arguments
    if _COMPLETION_VARIABLE in os.environ:
        from tieredctl.cli.completion.completing import answer_shell

        answer_shell(words, os.environ)
        sys.exit(ExitCode.CLEAN)
    # Some commands make millions of objects without cycles: Python would spend a third of their time looking for these.
    gc.set_threshold(100_000, 50, 50)
    if arguments is None:
        # NumPy would start a thread for each core, for linear algebra, of which there is none here.
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    restore = None
    owned = owns_process.set(arguments is None)
    try:
        restore = handle_signals(words)
        code = _say_version() if words == ["--version"] else run(words)
        if arguments is None:
            note_end(code)
    except KeyboardInterrupt:
        code = _interrupted(words)
    except ImportError as error:
        code = _fail(_missing(error))
    finally:
        if restore is not None and arguments is not None:
            restore()
        owns_process.reset(owned)
    if arguments is None and (came() or code == ExitCode.INTERRUPTED):
        end_process(code)
    if arguments is None:
        gc.freeze()  # as the process ends, nothing that is left has to be cleared away
    sys.exit(code)


def _say_version() -> int:
    try:
        print(f"{PROGRAM} {__version__}", flush=True)
    except OSError as error:
        return _fail_to_write(error)
    return ExitCode.CLEAN


def run(words: list[str]) -> int:
    """Runs the command line, and returns its exit code. Any error is a sentence on stderr."""
    _prepare_streams(words)
    steady_time.begin()
    try:
        line = read_line(words)
    except TieredctlError as error:
        return _fail(error)
    metrics = RunMetrics()
    asked = run_metrics.set(metrics)
    try:
        with _trace(line):
            code = _run(line, words)
    finally:
        run_metrics.reset(asked)
    try:
        with interruption.ending():
            metrics.write(code)
    except TieredctlError as error:
        return _fail(error)
    return code


def _run(line: Line, typed: list[str]) -> int:
    import typer

    from tieredctl.cli.completion.noticed_names import names_kept

    words = line.words
    try:
        if line.context is not None and not _HELP.intersection(words):
            from tieredctl.config.contexts import chosen_context

            chosen_context(line.context)  # commands that take nothing of it refuse an unknown one too
        named = named_context.set(line.context)
        try:
            with names_kept(typed):
                code = _showing_origin(words) if line.is_debugged else invoke(words)
        finally:
            named_context.reset(named)
        sys.stdout.flush()
        return code
    except typer.TyperException as wrong_use:
        return _refuse(wrong_use, words)
    except TieredctlError as error:
        return _fail(_naming_command(error, words))
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted(typed)
    except OSError as error:
        return _fail_to_write(error)
    except Exception as fault:  # noqa: BLE001 - the last resort: it is reported, and is a failure
        return _fail(error_of(fault, typed))


def _trace(line: Line) -> AbstractContextManager[None]:
    """What shows the requests to servers, where the line asks for it."""
    if not (line.is_verbose or line.is_debugged):
        return nullcontext()
    from tieredctl.cli.trouble.trace import shown_trace

    return shown_trace(is_debugged=line.is_debugged)


def _showing_origin(words: Sequence[str]) -> int:
    """Runs a command line, and shows where an error arose before it is raised."""
    from tieredctl.cli.trouble.trace import say_traceback

    try:
        return invoke(words)
    except Exception as error:
        say_traceback(error)
        raise


def error_of(fault: Exception, words: Sequence[str] | None = None) -> TieredctlError:
    """What the user is told of anything that was raised; by a command line other than the running one, if given."""
    match fault:
        case TieredctlError():
            return fault
        case OSError() | MemoryError():
            return system_error(fault)
        case ImportError():
            return _missing(fault)
    return _fault(fault, running_words.get() if words is None else words)


def invoke(words: Sequence[str]) -> int:
    """Runs a command line within another command: its exit code. Raises whatever it raises."""
    # Whatever it takes from a context is of this command alone.
    return copy_context().run(_invoke, command_of(words), words)


def _invoke(command: TyperGroup, words: Sequence[str]) -> int:
    """Runs the command that the words name. Raises whatever it raises, also where the reader has gone."""
    import typer

    running_command.set(_typed(command, words))
    running_words.set(tuple(words))
    try:
        with interruption.command(), command.make_context(PROGRAM, list(words)) as context:
            return int(command.invoke(context) or 0)
    except typer.Exit as end:
        return end.exit_code


def _typed(command: object, words: Sequence[str]) -> str:
    """The words that name a command: `orphans scan`."""
    named: list[str] = []
    for word in words:
        inner = getattr(command, "commands", {}).get(word)
        if inner is not None:
            named.append(word)
            command = inner
    return " ".join(named)


def _prepare_streams(words: Sequence[str]) -> None:
    if NO_COLOR in words:
        os.environ["NO_COLOR"] = "1"
    # Python has no stream at all where the shell closed it; in their order, each gets its own number again.
    sys.stdin = sys.stdin or Path(os.devnull).open(encoding="utf-8")  # noqa: SIM115
    sys.stdout = sys.stdout or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    sys.stderr = sys.stderr or Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Names of files need not be UTF-8, nor need the terminal be able to show what is.
        sys.stdout.reconfigure(errors="backslashreplace")


def _refuse(wrong_use: typer.TyperException, words: Sequence[str]) -> int:
    """Says why a command line was not understood."""
    from tieredctl.cli.wrong_use import refused

    if wrong_use.message.startswith("Usage:"):
        # Where a command is lacking, Typer's message is all of the help.
        print(wrong_use.message, file=sys.stderr)
        return ExitCode.USAGE
    return _fail(refused(wrong_use, words))


def _naming_command(error: TieredctlError, words: Sequence[str]) -> TieredctlError:
    from tieredctl.cli.wrong_use import naming_command

    return naming_command(error, words)


def _fail(error: TieredctlError) -> int:
    """Says what went wrong, after what was written so far."""
    from tieredctl.cli.outcome import say_error

    try:
        sys.stdout.flush()
    except OSError:
        _discard_stdout()
    say_error(error)
    return int(error.exit_code)


def _fail_to_write(error: OSError) -> int:
    """An error of the system; that a reader such as `head` has gone is not a failure."""
    if isinstance(error, BrokenPipeError):
        _discard_stdout()
        return ExitCode.CLEAN
    return _fail(system_error(error))


def _interrupted(words: Sequence[str]) -> int:
    if owns_process.get():
        # Whoever read the output may be the reason for the interruption: nothing more is written to it.
        _discard_stdout()
    code = _fail(TieredctlError(ErrorCode.INTERRUPTED, "Interrupted.", hint=after_interruption(words)))
    note_said()
    return code


def _missing(error: ImportError) -> TieredctlError:
    """A package that an installation of tieredctl has, and this one lacks."""
    hint = f"Reinstall {PROGRAM}: pip install --force-reinstall {PROGRAM}"
    return TieredctlError(
        ErrorCode.MISSING_EXTRA, f"This needs a package that cannot be loaded: {error.msg}", hint=hint
    )


def _fault(fault: Exception, words: Sequence[str]) -> TieredctlError:
    """An unforeseen error, and the file that says more."""
    from tieredctl.process.crash_file import fault_error, write_crash_file

    written = write_crash_file(fault, [PROGRAM, *words])
    return fault_error(fault, f"Please report it with {written}, which has no secrets." if written else None)


def _discard_stdout() -> None:
    from tieredctl.cli.outcome import discard

    discard(sys.stdout)
