"""Asks several clusters and stores at the same time, since one that does not answer takes its time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextvars import copy_context
from queue import SimpleQueue
from threading import Thread
from typing import TypeVar

from tieredctl.kafka.client_libraries import load_client_libraries
from tieredctl.storage.registry import load_client_library

_Place = TypeVar("_Place")
_Answer = TypeVar("_Answer")

MOST_AT_ONCE = 8


def load_libraries(store_urls: Iterable[str]) -> None:
    """What opens clusters and these stores. Threads do not load it: libraries whose modules import each other in
    circles fail there, now and then."""
    import numpy  # noqa: F401
    import pyarrow  # noqa: F401

    load_client_libraries()
    for url in store_urls:
        load_client_library(url)


def asked_together(ask: Callable[[_Place], _Answer], places: Sequence[_Place]) -> list[_Answer]:
    """What `ask`, which must not raise, gives for each place, in their order. Ctrl-C waits for none of them."""
    waiting: SimpleQueue[int | None] = SimpleQueue()
    answers: SimpleQueue[tuple[int, _Answer]] = SimpleQueue()

    def ask_what_waits() -> None:
        while (number := waiting.get()) is not None:
            answers.put((number, ask(places[number])))

    threads = min(MOST_AT_ONCE, len(places))
    for number in (*range(len(places)), *[None] * threads):
        waiting.put(number)
    for _ in range(threads):
        Thread(target=copy_context().run, args=(ask_what_waits,), daemon=True).start()
    found = dict(answers.get() for _ in places)
    return [found[number] for number in range(len(places))]
