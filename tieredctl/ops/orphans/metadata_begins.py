"""Since when the metadata that was read would name an object's segment, had it ever been copied.

A broker writes an event before it copies a segment (RemoteLogManager.copyLogSegment). So what was stored before the
first record of the metadata partition that its events go to was announced in an earlier log, which was lost: the topic
was recreated, or a disk came back empty. Events that `recover metadata` writes again have records of today.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.coverage import MetadataCoverage
from tieredctl.rlmm.partitioner import metadata_partition

NEVER_MS = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class MetadataBegins:
    """When each metadata partition begins: by its first record, in its order. One with a wrong time in the middle of a
    log makes nothing look older than it is."""

    count: int
    """How many metadata partitions there are: where that is not sure, a count that explains where all events are."""
    first_records_ms: Mapping[int, int]

    @classmethod
    def of(cls, coverage: MetadataCoverage, first_records_ms: Mapping[int, int]) -> MetadataBegins:
        """Of what was read to its end."""
        count = coverage.counts[0] if coverage.counts else max(coverage.here, default=0) + 1
        return cls(count, first_records_ms)

    def of_partition(self, partition: TopicIdPartition) -> int:
        """When the metadata of a user partition begins, in ms; NEVER_MS where its log has no record, or one without a
        time."""
        number = metadata_partition(partition.topic_id, partition.partition, self.count)
        first_ms = self.first_records_ms.get(number, 0)
        return first_ms if first_ms > 0 else NEVER_MS
