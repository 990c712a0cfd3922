"""Listings of versions that may be longer than anybody wants to wait for."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tieredctl.ports.bucket_settings import KeptAmongFirst
from tieredctl.ports.object_store import KeptVersion
from tieredctl.storage.retrying import RetryPolicy


def kept_among_first(entries: Callable[[], Iterator[KeptVersion | None]], most: int) -> KeptAmongFirst:
    """Those among the first entries; None is one of an object. Begins again after errors that may pass."""
    return RetryPolicy().run(lambda _: _kept_among_first(entries(), most))


def _kept_among_first(entries: Iterator[KeptVersion | None], most: int) -> KeptAmongFirst:
    kept: list[KeptVersion] = []
    for number, entry in enumerate(entries):
        if number == most:
            return KeptAmongFirst(kept, is_cut=True)
        if entry is not None:
            kept.append(entry)
    return KeptAmongFirst(kept, is_cut=False)
