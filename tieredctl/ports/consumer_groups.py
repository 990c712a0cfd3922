"""What tieredctl asks a live cluster about consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class CommittedOffset(NamedTuple):
    """The offset from which a consumer group will resume a partition."""

    group: str
    topic: str
    partition: int
    offset: int


class ConsumerGroups(Protocol):
    """The consumer groups of a live cluster. Raises TieredctlError as `Cluster` does."""

    def committed_offsets(self) -> Sequence[CommittedOffset]:
        """The committed offsets of every group that the user may see: brokers silently leave out the others, and topics
        that the user may not see."""
        ...
