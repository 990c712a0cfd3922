"""How to verify."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.uuid_columns import UuidColumns
from tieredctl.formats.windows import Flags
from tieredctl.model.clock import Clock
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES, TopicSources
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.removed_objects import NothingRemoved, RemovedObjects
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level

_HASH_RANGE = 1 << 32


@dataclass(frozen=True, slots=True)
class Subset:
    """A share of all segments that a run reads, chosen by their ids: `number` of `count` equal shares, from 1."""

    number: int = 1
    count: float = 1

    @classmethod
    def parse(cls, text: str) -> Subset:
        """`3/30`, or `5%` which is the first twentieth. Raises TieredctlError."""
        try:
            if text.endswith("%"):
                subset = cls(1, 100 / float(text[:-1]))
            else:
                number, _, count = text.partition("/")
                subset = cls(int(number), int(count))
        except (ValueError, ZeroDivisionError):
            subset = cls(0)
        if not 1 <= subset.number <= subset.count:
            raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a subset.", hint="Write it as 3/30 or 5%.")
        return subset

    @property
    def is_all(self) -> bool:
        """Whether it leaves out no segment."""
        return self.count == 1

    def has(self, segment_id: str) -> bool:
        """Whether a segment is in it."""
        return self._has(uuid_bytes(segment_id))

    def has_each(self, segment_ids: UuidColumns) -> Flags:
        """Whether each segment is."""
        return np.array([self._has(segment_ids.bytes_of(row)) for row in range(len(segment_ids))], np.bool_)

    def _has(self, segment_id: bytes) -> bool:
        share = crc32c(segment_id) * self.count / _HASH_RANGE
        return self.number - 1 <= share < self.number


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify."""

    level: Level
    clock: Clock
    selection: Selection = Selection()
    subset: Subset = Subset()
    index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES
    local_logs: Mapping[TopicIdPartition, LocalLog] = field(default_factory=dict)
    topic_sources: TopicSources = NO_TOPIC_SOURCES
    """Knows which topics were deleted: of their segments nothing is missing."""
    read_removed: Callable[[], RemovedObjects] = NothingRemoved
    """Gives what tieredctl removed from the store, which is not missing either."""
