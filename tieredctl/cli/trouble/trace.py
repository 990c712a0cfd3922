"""`-v` and `--debug`: what is asked of servers, on stderr, and the libraries' own logs where they have no secrets."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from tieredctl.cli import PROGRAM
from tieredctl.cli.outcome import say
from tieredctl.model.counted import counted
from tieredctl.process.redaction import redacted, remember_secrets

_LIBRARIES = ("kafka", "psycopg", "urllib3.connectionpool", "urllib3.util.retry")
"""The loggers that --debug shows beside those of stores' libraries."""
_LONGEST_LINE = 2_000
_WITH_LOGINS = "Sasl"
"""Kafka's requests that hold passwords and proofs of them."""
_RECORDS = re.compile(r"""(\b(?:unaligned_)?records=)b(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?)""")
"""In kafka-python's answers to a Fetch, and in those to a FetchSnapshot: a snapshot has SCRAM keys."""


@contextmanager
def shown_trace(*, is_debugged: bool) -> Iterator[None]:
    """Shows what is asked meanwhile, then how much was asked of whom."""
    remember_secrets(os.environ)
    handler = _Shown()
    loggers = {PROGRAM: logging.DEBUG if is_debugged else logging.INFO}
    loggers |= dict.fromkeys(_loggers_of_libraries(), logging.DEBUG) if is_debugged else {}
    before = {name: logging.getLogger(name).level for name in loggers}
    for name, level in loggers.items():
        logging.getLogger(name).setLevel(level)
        logging.getLogger(name).addHandler(handler)
    try:
        yield
    finally:
        for name, level in before.items():
            logging.getLogger(name).removeHandler(handler)
            logging.getLogger(name).setLevel(level)
        handler.say_sums()


def _loggers_of_libraries() -> Iterator[str]:
    from tieredctl.ports.store_kinds import store_kinds

    yield from _LIBRARIES
    for kind in store_kinds():
        yield from kind.library.loggers if kind.library else ()


def say_traceback(fault: BaseException) -> None:
    """Where an error arose, without values of variables."""
    say(redacted("".join(traceback.format_exception(fault))).rstrip())


class _Shown(logging.Handler):
    """Lines on stderr: seconds since the command began, the package, what it asked."""

    def __init__(self) -> None:
        super().__init__()
        self._stream = sys.stderr
        """Where it was when the command began: what a bundle's parts say there is kept for the bundle."""
        self._began = time.monotonic()
        self._sums: dict[str, tuple[int, float]] = {}
        self._adding = threading.Lock()

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = record.getMessage()
        except (TypeError, ValueError):
            text = str(record.msg)  # a library's own mistake
        if _WITH_LOGINS in text and not record.name.startswith(PROGRAM):
            return
        asked = getattr(record, "asked", None)
        if asked is not None:
            with self._adding:
                count, seconds = self._sums.get(asked["server"], (0, 0.0))
                self._sums[asked["server"]] = count + 1, seconds + asked["seconds"]
        line = " ".join(redacted(_RECORDS.sub(r"\1…", text[: 2 * _LONGEST_LINE])).split())[:_LONGEST_LINE]
        asker = record.name.removeprefix(f"{PROGRAM}.")
        say(f"{time.monotonic() - self._began:8.3f} s  {asker}  {line}", self._stream)

    def say_sums(self) -> None:
        """How often each server was asked, and how long was waited for it."""
        for server, (count, seconds) in self._sums.items():
            say(
                f"{redacted(server)} was asked {counted(count, 'time')}, and took {seconds * 1000:.1f} ms.",
                self._stream,
            )
