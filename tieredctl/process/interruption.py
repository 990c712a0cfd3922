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
    """The state of this process's interruption."""

    def __init__(self) -> None:
        self.is_requested = False
        self.open_steps = 0
        """In the main thread, where interruptions arrive."""
        self.is_in_cleanup = False
        """Whether the open step is a cleanup section."""
        self.is_in_command = False
        self.is_done = False
        """Whether all work is complete, except for checking and reporting it."""


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
    """Whether the interrupted step is being finished; so is everything once the work is complete."""
    return _now.is_done or (_now.open_steps > 0 and not _now.is_in_cleanup)


def is_in_cleanup() -> bool:
    """Whether a cleanup section is open."""
    return _now.is_in_cleanup


def forget() -> None:
    """Forgets the interruption: for whoever handled it and goes on."""
    _now.is_requested = False


@contextmanager
def critical_section() -> Iterator[None]:
    """A step that is not broken off: an interruption takes effect after it, and after the outermost of nested ones.
    Also a decorator of functions.

    In other threads than the main one it has no effect: they are not interrupted.
    """
    if _now.is_requested and not (_now.open_steps or _now.is_done) and _is_main():
        raise KeyboardInterrupt
    with cleanup_section():
        yield


@contextmanager
def cleanup_section() -> Iterator[None]:
    """A critical section that is entered even after an interruption, to clean up."""
    was_requested = _now.is_requested
    try:
        with _step(is_cleanup=was_requested):
            yield
    finally:
        if _is_main() and not _now.open_steps:
            if _now.is_requested and not was_requested and not _now.is_done:
                raise KeyboardInterrupt
            _forget_outside_commands()


def mark_complete() -> None:
    """Called within a critical section: with it all work is done, except for checking and reporting it. An interruption
    during it, or until the command ends, then ends nothing; only a second one does."""
    if _is_main():
        _now.is_done = True


@contextmanager
def ending() -> Iterator[None]:
    """The cleanup section that a run ends with, such as the release of its lease: an interruption that comes only now
    finds nothing left to end."""
    was_requested = _now.is_requested
    try:
        with _step(is_cleanup=True):
            yield
    finally:
        if _is_main() and not _now.open_steps:
            _now.is_done = _now.is_done or not was_requested
            _forget_outside_commands()


@contextmanager
def command() -> Iterator[None]:
    """Runs a command to its final report; once its work is complete, only a second interruption ends it."""
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
def _step(*, is_cleanup: bool) -> Iterator[None]:
    if not _is_main():
        yield
        return
    was_in_cleanup, _now.is_in_cleanup = _now.is_in_cleanup, _now.is_in_cleanup or is_cleanup
    _now.open_steps += 1
    try:
        yield
    finally:
        _now.open_steps -= 1
        _now.is_in_cleanup = was_in_cleanup


def _is_main() -> bool:
    return threading.current_thread() is threading.main_thread()


def pause(seconds: float) -> None:
    """Sleeps. An interruption ends it, in any thread and within a step too: raises KeyboardInterrupt. Not in a cleanup
    section, since a lease is also released to a store that has to be asked twice; nor once the work is complete."""
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        if _now.is_requested and not (_now.is_done or (_now.is_in_cleanup and _is_main())):
            raise KeyboardInterrupt
        time.sleep(min(left, _SECONDS_BETWEEN_LOOKS))
