"""Where an interruption takes effect: between steps and while waiting, never within a step that leaves receipts.

A step is short: it changes something and records it, or does neither. Without an interruption nothing here has any
effect; a step that is killed is found by the next run as any other.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

_SECONDS_BETWEEN_LOOKS = 0.1


class _Interruption:
    """Of this process."""

    def __init__(self) -> None:
        self.is_requested = False
        self.open_steps = 0
        """In the main thread, where interruptions arrive."""
        self.is_giving_back = False
        """Whether the open step has to be done after the interruption too."""
        self.is_in_command = False
        self.is_done = False
        """Whether nothing of the work is left but to look at it and to tell of it."""


_now = _Interruption()


def request() -> bool:
    """Notes that the user wants this to end; whether it is to end at once, since no step is open. For the handler of
    a signal."""
    _now.is_requested = True
    return not (_now.open_steps or _now.is_done)


def is_requested() -> bool:
    """Whether the user wants this to end."""
    return _now.is_requested


def is_finishing_step() -> bool:
    """Whether what the interruption came in is being finished: a step, or all, where nothing of the work is left."""
    return _now.is_done or (_now.open_steps > 0 and not _now.is_giving_back)


def is_giving_back() -> bool:
    """Whether a step is open that has to be done after the interruption too."""
    return _now.is_giving_back


def forget() -> None:
    """As before the first interruption: for whoever handled it and goes on."""
    _now.is_requested = False


@contextmanager
def unbroken() -> Iterator[None]:
    """A step: an interruption that comes meanwhile takes effect after it, and after the whole of which it is a part.
    Also a decorator of functions.

    In other threads than the main one it has no effect: they are not interrupted.
    """
    if _now.is_requested and not (_now.open_steps or _now.is_done) and _is_main():
        raise KeyboardInterrupt
    with giving_back():
        yield


@contextmanager
def giving_back() -> Iterator[None]:
    """The same for what has to be done after an interruption too."""
    was_requested = _now.is_requested
    try:
        with _step(gives_back=was_requested):
            yield
    finally:
        if _is_main() and not _now.open_steps:
            if _now.is_requested and not was_requested and not _now.is_done:
                raise KeyboardInterrupt
            _forget_outside_commands()


def nothing_is_left() -> None:
    """Within a step: with it all work is done, but to look whether it is as it should be, and to tell. What came in it,
    or comes until the command ends, ends nothing; only a second interruption does."""
    if _is_main():
        _now.is_done = True


@contextmanager
def ending() -> Iterator[None]:
    """The same for the last that a run has to do, such as the release of its lease: an interruption that comes only now
    finds nothing left to end."""
    was_requested = _now.is_requested
    try:
        with _step(gives_back=True):
            yield
    finally:
        if _is_main() and not _now.open_steps:
            _now.is_done = _now.is_done or not was_requested
            _forget_outside_commands()


@contextmanager
def command() -> Iterator[None]:
    """A command, which ends when it has told what it did: until then it is not ended any more where nothing is left."""
    was_in_command, _now.is_in_command = _now.is_in_command, True
    try:
        yield
    finally:
        _now.is_in_command = False
        _forget_outside_commands()
        _now.is_in_command = was_in_command


def _forget_outside_commands() -> None:
    if _now.is_done and not _now.is_in_command:
        _now.is_done = False
        forget()


@contextmanager
def _step(*, gives_back: bool) -> Iterator[None]:
    if not _is_main():
        yield
        return
    was_giving_back, _now.is_giving_back = _now.is_giving_back, _now.is_giving_back or gives_back
    _now.open_steps += 1
    try:
        yield
    finally:
        _now.open_steps -= 1
        _now.is_giving_back = was_giving_back


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def pause(seconds: float) -> None:
    """Sleeps. An interruption ends it, in any thread and within a step too: raises KeyboardInterrupt. Not in what has
    to be done after it: a lease is given back to a store that has to be asked twice, too. Nor where nothing is left."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if _now.is_requested and not (_now.is_done or (_now.is_giving_back and _is_main())):
            raise KeyboardInterrupt
        time.sleep(min(left, _SECONDS_BETWEEN_LOOKS))
