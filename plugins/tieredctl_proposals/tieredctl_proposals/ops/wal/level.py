"""How deep `wal verify` looks; apart from the rest, which loads numpy."""

from __future__ import annotations

from enum import StrEnum


class WalLevel(StrEnum):
    """At the listing, at each object's index and its segments' first batches, or at every byte."""

    LISTING = "listing"
    HEADERS = "headers"
    FULL = "full"
