"""How far long work is. Whatever takes long says so here, and need not know whether anybody looks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import NamedTuple

from tieredctl.model.quantities import size_text

_BYTES = "bytes"


class Step(NamedTuple):
    """How far it is."""

    what: str
    """What is counted, in the plural: `objects listed`, `bytes read`."""
    done: int
    total: int | None = None
    """None where it is not known how many there are."""
    aside: str = ""
    """What else there is to say: `12.0 MiB read`."""

    @property
    def is_of_bytes(self) -> bool:
        """Whether bytes are counted."""
        return self.what.startswith(_BYTES)

    def text(self, of: str) -> str:
        """`3 of 5 segments, 12.0 MiB read`, with `of` between the numbers; bytes have units."""
        done, total = (
            size_text(one) if self.is_of_bytes and one is not None else one for one in (self.done, self.total)
        )
        count = f"{done}" if total is None else f"{done}{of}{total}"
        what = self.what.removeprefix(_BYTES).strip() if self.is_of_bytes else self.what
        return ", ".join(filter(None, (f"{count} {what}".strip(), self.aside)))


_LISTED = "objects listed"
Heard = Callable[[Step], None]


class _Work:
    """The work of this process."""

    def __init__(self) -> None:
        self.heard: Heard | None = None
        self.counts: Counter[str] = Counter()
        self.counting = Lock()


_now = _Work()


@contextmanager
def heard_by(heard: Heard | None) -> Iterator[None]:
    """Tells someone of each step, from whatever thread it comes, and nobody else; None for nobody."""
    before = _now.heard, _now.counts
    _now.heard, _now.counts = heard, Counter()
    try:
        yield
    finally:
        _now.heard, _now.counts = before


def note(what: str, done: int, total: int | None = None, aside: str = "") -> None:
    """Notes how many there are so far."""
    if (heard := _now.heard) is not None:
        heard(Step(what, done, total, aside))


def begin_listing(prefix: str, start_after: str) -> None:
    """Counts objects from zero where all of a store is listed; a part of it may be one of many at a time."""
    if not (prefix or start_after):
        with _now.counting:
            _now.counts[_LISTED] = 0


def note_listed(more: int) -> None:
    """Notes objects that a store has listed."""
    note_more(_LISTED, more)


def note_more(what: str, more: int) -> None:
    """Adds to the count; for workers that see only a share, in any thread."""
    if _now.heard is None or not more:
        return
    with _now.counting:
        _now.counts[what] += more
        done = _now.counts[what]
    note(what, done)
