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
        self.is_last = False
        """Whether nothing of the work is left after the next step."""


_now = _Interruption()


def request() -> bool:
    """Notes that the user wants this to end; whether it is to end at once, since no step is open. For the handler of
    a signal."""
    _now.is_requested = True
    return not _now.open_steps


def is_requested() -> bool:
    """Whether the user wants this to end."""
    return _now.is_requested


def is_finishing_step() -> bool:
    """Whether a step is open in which the interruption came."""
    return _now.open_steps > 0 and not _now.is_giving_back


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
    if _now.is_requested and not _now.open_steps and _is_main():
        raise KeyboardInterrupt
    with giving_back():
        yield


@contextmanager
def giving_back() -> Iterator[None]:
    """The same for what has to be done after an interruption too."""
    was_requested = _now.is_requested
    is_finished = False
    try:
        with _step(gives_back=was_requested):
            yield
        is_finished = True
    finally:
        if _now.is_requested and not was_requested and not _now.open_steps and _is_main():
            if not (is_finished and _now.is_last):
                raise KeyboardInterrupt
            forget()


@contextmanager
def last_step(*, is_last: bool = True) -> Iterator[None]:
    """Around the step with which all work is done: an interruption that comes in it is forgotten, if the step gets to
    its end. `is_last` is for work that is done in one step after the other."""
    if not _is_main():
        yield
        return
    before, _now.is_last = _now.is_last, is_last
    try:
        yield
    finally:
        _now.is_last = before


@contextmanager
def ending() -> Iterator[None]:
    """The same for the last that a run has to do, such as the release of its lease: an interruption that comes only now
    finds nothing left to end, and is forgotten."""
    was_requested = _now.is_requested
    try:
        with _step(gives_back=True):
            yield
    finally:
        if not was_requested and not _now.open_steps and _is_main():
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
    to be done after it: a lease is given back to a store that has to be asked twice, too."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if _now.is_requested and not (_now.is_giving_back and _is_main()):
            raise KeyboardInterrupt
        time.sleep(min(left, _SECONDS_BETWEEN_LOOKS))
