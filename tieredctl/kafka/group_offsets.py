"""What tieredctl asks a live cluster about consumer groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol


class CommittedOffset(NamedTuple):
    """From where a consumer group reads a partition on, once it joins again."""

    group: str
    topic: str
    partition: int
    offset: int


class ConsumerGroups(Protocol):
    """The consumer groups of a live cluster. Raises TieredctlError as `Cluster` does."""

    def committed_offsets(self) -> Sequence[CommittedOffset]:
        """What every group has committed that the user may see: a broker leaves out the others, and topics that the
        user may not see, without a word."""
        ...
