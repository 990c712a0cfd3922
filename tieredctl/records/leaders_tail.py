"""What only leaders have, after remote storage."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.log_scan import LogBlock, scan_log
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import ON_DISK, LeaderEpochs
from tieredctl.ports.layout import Part, SegmentReader
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.process.progress import note_more
from tieredctl.records.request import GREATEST_OFFSET
from tieredctl.records.served_spans import ServedSpan
from tieredctl.records.sound_batches import SoundBatches


@dataclass(frozen=True, slots=True)
class LayoutWithLeaders:
    """A layout, and what leaders serve."""

    layout: SegmentObjects
    fetch: Callable[[TopicIdPartition, int], bytes]
    """Whole batches from an offset on; the last may be incomplete."""

    @property
    def name(self) -> str:
        """The layout's."""
        return self.layout.name

    def promised_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        return {} if segment.segment_id == ON_DISK else self.layout.promised_objects(segment)

    def optional_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]:
        return {} if segment.segment_id == ON_DISK else self.layout.optional_objects(segment)

    def open_segment(self, store: ObjectStore, segment: RemoteLogSegmentMetadata, /) -> SegmentReader:
        return self.layout.open_segment(store, segment)

    def served_batches(self, span: ServedSpan) -> Iterator[SoundBatches]:
        """The batches of a span of no remote segment. Raises TieredctlError as `fetch` does."""
        partition, offset = span.segment.topic_id_partition, span.first
        while offset <= span.last:
            data = self.fetch(partition, offset)
            note_more("bytes read", len(data))
            reached = offset
            for part in scan_log([data], len(data), AsColumns()):
                if isinstance(part, LogBlock):
                    places = np.asarray(part.positions, np.int64)
                    batches = SoundBatches(part.buffer, part.file_position, places, part.headers)
                    reached = int(batches.last_offsets[-1]) + 1
                    yield batches
                elif not part.torn:
                    where = f"{partition.topic}-{partition.partition}"
                    message = f"What the leader of {where} returns from offset {reached} on is damaged: {part.reason}."
                    raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Its own log may be damaged.")
            if reached == offset:
                message = f"The leader of {partition.topic}-{partition.partition} returns nothing at offset {offset}."
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message)
            offset = reached


def leaders_segment(partition: TopicIdPartition, first: int, leader_epochs: LeaderEpochs) -> RemoteLogSegmentMetadata:
    """What stands for the log from an offset on."""
    return RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=ON_DISK,
        start_offset=first,
        end_offset=GREATEST_OFFSET - 1,
        author=-1,
        max_timestamp_ms=GREATEST_OFFSET,
        event_timestamp_ms=0,
        segment_leader_epochs=tuple(leader_epochs) or ((0, first),),
        segment_size_in_bytes=0,
        state=RemoteLogSegmentState.COPY_SEGMENT_STARTED,
    )
