"""SIGINT, SIGTERM and SIGHUP: the first ends a command after its step, the second at once."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from types import FrameType
from typing import TYPE_CHECKING, NoReturn

from tieredctl.cli import PROGRAM
from tieredctl.cli.anywhere import read_line
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.process import interruption

if TYPE_CHECKING:
    from sys import UnraisableHookArgs

_RESUMED: dict[tuple[str, ...], str] = {
    ("orphans", "apply"): "",
    ("orphans", "restore"): "",
    ("orphans", "purge"): "",
    ("partition", "remove"): "--apply",
    ("heal",): "--apply",
    ("recover", "indexes"): "--apply",
    ("recover", "metadata"): "--apply",
    ("recover", "log-starts"): "--apply",
    ("snapshot", "clean"): "--apply",
    ("store", "copy"): "--apply",
    ("backup", "prune"): "--apply",
    ("snapshot", "fetch"): "",
    ("remote", "records"): "--output-dir",
}
"""The commands that go on where they stopped, and the option without which they do not: most only show a plan then."""
_RESUMING_OPTION, _ONLY_LOOKING = "--resume", "--dry-run"
_SECONDS_TO_END = 10.0
"""How long an interrupted command may take to give back what it holds, such as its lease."""
_SECONDS_TO_RAISE_AGAIN = 0.05
_SECONDS_BETWEEN_LOOKS = 1.0
"""Whether the step in which the interruption came is finished."""
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_WAKING = (*_ENDING, signal.SIGALRM)
_SECONDS_UNTIL_WOKEN = (0.0, 0.05, 0.25)
_SHOW_CURSOR = b"\x1b[?25h"
_REST_OF_LINE = b"\r\x1b[K"


class _Handler:
    """Handles the signals of one command line."""

    def __init__(self) -> None:
        self.words: Sequence[str] = ()
        self._ends_at: float | None = None
        self._is_raised = False
        """By the handler; after a step, the step does it."""
        self.is_said = False
        """Whether the user was told: the process only has to end."""
        self.ended: int | None = None
        """The exit code of a command line that has ended."""
        self.came = False
        """Whether an interruption ever came, though it was forgotten since."""

    def begin(self, words: Sequence[str]) -> None:
        """Begins the handling of a command line's signals."""
        self.words, self.is_said, self.ended, self.came = words, False, None, False
        self.settle()

    def interrupt(self, _number: int, _frame: FrameType | None) -> None:
        if self.ended is not None:
            os._exit(self.ended)
        if interruption.is_requested():
            self._end_at_once("Stopped at once.")
        self._ends_at, self._is_raised, self.came = None, False, True
        if interruption.request():
            self._raise()
        signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN_LOOKS)
        _write(_line_of_its_own() + b"Finishing this step; interrupt again to stop at once.\n")

    def look(self, _number: int, _frame: FrameType | None) -> None:
        """Ends what did not end; raises again what was swallowed."""
        if not interruption.is_requested():
            return
        if interruption.is_finishing_step():
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_BETWEEN_LOOKS)
        elif self._seconds_left() <= 0:
            self._end_at_once("Interrupted.")
        elif self._is_raised and not interruption.is_in_cleanup():
            self._raise()
        else:
            self._look_later()

    def settle(self) -> None:
        """Has nothing end by itself any more."""
        signal.setitimer(signal.ITIMER_REAL, 0)
        self._ends_at, self._is_raised = None, False
        interruption.forget()

    def note_swallowed(self, swallowed: UnraisableHookArgs) -> None:
        """Python ignores what is raised while it clears objects away, an interruption too."""
        if not isinstance(swallowed.exc_value, KeyboardInterrupt):
            sys.__unraisablehook__(swallowed)
        else:
            signal.setitimer(signal.ITIMER_REAL, _SECONDS_TO_RAISE_AGAIN)

    def _seconds_left(self) -> float:
        """Since the interruption took effect."""
        if self._ends_at is None:
            self._ends_at = time.monotonic() + _SECONDS_TO_END
        return self._ends_at - time.monotonic()

    def _look_later(self) -> None:
        signal.setitimer(signal.ITIMER_REAL, max(_SECONDS_TO_RAISE_AGAIN, self._seconds_left()))

    def _raise(self) -> NoReturn:
        self._is_raised = True
        self._look_later()
        raise KeyboardInterrupt

    def _end_at_once(self, what: str) -> NoReturn:
        if _is_on_terminal():
            _write(_SHOW_CURSOR + _line_of_its_own())
        if not self.is_said:
            _write(f"{PROGRAM}: {what}\n".encode())
            with suppress(Exception):  # nothing keeps it from ending
                _write(f"  {after_interruption(self.words)}\n".encode())
        os._exit(ExitCode.INTERRUPTED)


_handler = _Handler()


def handle_signals(words: Sequence[str]) -> Callable[[], None]:
    """Has the signals end this command line; what it returns puts everything back as it was. What nohup ignores stays
    ignored; in another thread than the main one, to which no signal comes, nothing changes."""
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    _handler.begin(words)
    handlers = {number: signal.getsignal(number) for number in (*_ENDING, signal.SIGALRM, signal.SIGURG)}
    hook, sys.unraisablehook = sys.unraisablehook, _handler.note_swallowed
    for number in _ENDING:
        if handlers[number] in (signal.default_int_handler, signal.SIG_DFL):
            signal.signal(number, _handler.interrupt)
    signal.signal(signal.SIGALRM, _handler.look)
    sleep_again = _see_to_it_that_they_are_handled()

    def restore() -> None:
        _handler.settle()
        sleep_again()
        for number, handler in handlers.items():
            if handler is not None:  # one that is not Python's cannot be put back
                signal.signal(number, handler)
        sys.unraisablehook = hook

    return restore


def _see_to_it_that_they_are_handled() -> Callable[[], None]:
    """Wakes the main thread for each signal, until what it returns is called. The system may give a signal to a
    library's thread, or right before the main one begins to wait for a server: Python would not look at it until that
    answers."""
    arriving, noted = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    os.set_blocking(arriving, True)
    signal.signal(signal.SIGURG, lambda *_: None)
    former = signal.set_wakeup_fd(noted, warn_on_full_buffer=False)
    main = threading.main_thread().ident

    def wake() -> None:
        with os.fdopen(arriving, "rb", buffering=0) as numbers:
            while arrived := numbers.read(1):
                for seconds in _SECONDS_UNTIL_WOKEN if arrived[0] in _WAKING else ():
                    time.sleep(seconds)
                    signal.pthread_kill(main or 0, signal.SIGURG)

    with suppress(RuntimeError):  # no thread is left: signals arrive as they do without this
        threading.Thread(target=wake, name="signals", daemon=True).start()

    def sleep_again() -> None:
        signal.set_wakeup_fd(former)
        os.close(noted)

    return sleep_again


def note_said() -> None:
    """The user was told of the interruption."""
    _handler.is_said = True


def note_end(code: int) -> None:
    """The command line has ended so; what is left is the end of the process, which a signal only hastens. Not that of
    the clock: Python lets go of the handlers before the process ends."""
    _handler.settle()
    _handler.ended = code


def came() -> bool:
    """Whether an interruption came since the command line began, though it may be its regular end, or was forgotten."""
    return _handler.came


def end_process(code: int) -> NoReturn:
    """Ends an interrupted process without Python's own clearing up, which waits for threads, in which another signal
    would kill it, and which ends `python -m` by SIGINT where a KeyboardInterrupt came while the text of a class was
    executed, as that of dataclasses is, though it was caught."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def clear_interrupt() -> None:
    """Forgets the interruption: for a command that took it as its regular end, or goes on."""
    _handler.settle()


def after_interruption(words: Sequence[str]) -> str:
    """What the same command line would do, and, where it goes on, that command line to paste; without it where it has a
    secret, or what no terminal shows."""
    from tieredctl.process.redaction import redacted_words

    if not _goes_on(words):
        return "Run it again: it starts from the beginning."
    line = shlex.join([PROGRAM, *words])
    if redacted_words(words) != list(words) or not line.isprintable():
        return "Run it again: it resumes where it stopped."
    return f"Run it again, it resumes where it stopped: {line}"


def _goes_on(words: Sequence[str]) -> bool:
    try:
        named = read_line(words).words
    except TieredctlError:
        return False
    if _ONLY_LOOKING in named:
        return False
    if _has(named, _RESUMING_OPTION):
        return True
    needed = next((option for command, option in _resumed().items() if command == tuple(named[: len(command)])), None)
    return needed is not None and (not needed or _has(named, needed))


def _has(words: Sequence[str], option: str) -> bool:
    return any(word == option or word.startswith(f"{option}=") for word in words)


def _resumed() -> dict[tuple[str, ...], str]:
    """The options by which commands are resumed, those of installed packages too."""
    from tieredctl.model.command_packages import command_packages

    with suppress(TieredctlError):
        return _RESUMED | {words: option for one in command_packages() for words, option in one.resumed.items()}
    return _RESUMED


def _is_on_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()


def _line_of_its_own() -> bytes:
    """What takes the place of a bar, which has no line's end."""
    return _REST_OF_LINE if _is_on_terminal() else b""


def _write(data: bytes) -> None:
    """Writes without Python's buffers, in the middle of whose use a signal may have come."""
    with suppress(OSError):  # nobody can hear it
        os.write(2, data)
