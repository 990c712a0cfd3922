"""What one topic has in remote storage by the metadata: read once, then followed."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.cluster import TopicDescription
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_reading import selected_records
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.remote_bytes import bytes_from, segments_in_use
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

_NAMED = 5
_IN_DELETION = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)


@dataclass(slots=True)
class RemoteTopic:
    """The segments of a topic whose deletion is not recorded as finished, as of the last `refresh`."""

    topic: TopicDescription
    metadata: FollowedMetadata
    """For a live cluster."""
    _store: RemotePartitionMetadataStore = field(default_factory=RemotePartitionMetadataStore)

    def refresh(self) -> None:
        """Reads the new events, up to now. Raises TieredctlError as FollowedMetadata does."""
        self.metadata.read(self._take)

    def segments(self, partition: int) -> list[RemoteLogSegmentMetadata]:
        """One partition's, including those being copied or deleted."""
        return [known.metadata for known in self._cache(partition).list_remote_log_segments()]

    def all_segments(self) -> list[RemoteLogSegmentMetadata]:
        """Of all partitions."""
        return [segment for one in self.topic.partitions for segment in self.segments(one.partition)]

    def highest_copied(self, partition: int) -> int | None:
        """The greatest offset of a partition that was ever copied, even if it was deleted since."""
        return self._cache(partition).highest_offset()

    def highest_deleted(self, partition: int) -> int | None:
        """The greatest offset of a partition in segments that were deleted or are being deleted."""
        ends = [one.end_offset for one in self.segments(partition) if one.state in _IN_DELETION]
        gone = self._cache(partition).highest_deleted_offset
        return max([*ends, *([] if gone is None else [gone])], default=None)

    def demand_nothing_new(self, shown: Collection[str]) -> None:
        """Reads the new events. Raises TieredctlError `world-changed` where there are segments besides the shown ones
        (by id): the deletion of a topic deletes all that it has by then."""
        self.refresh()
        new = [one.segment_id for one in self.all_segments() if one.segment_id not in shown]
        if new:
            more = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            segments = "segment" if len(new) == 1 else "segments"
            message = f"Since the plan was shown, {segments} {', '.join(new[:_NAMED])}{more} came to remote storage"
            hint = f"Run it again, or first: tieredctl topic disable {self.topic.topic} --stop-copying --apply"
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{message}; nothing was changed.", hint=hint)

    def bytes_below(self, partition: int, offset: int) -> int:
        """The bytes of a partition that consumers can read in remote storage below an offset; a segment that it divides
        counts by the share of offsets."""
        segments = segments_in_use(self._cache(partition))
        return sum(segment.segment_size_in_bytes for segment in segments) - bytes_from(segments, offset)

    def _cache(self, partition: int) -> RemoteLogMetadataCache:
        key = TopicIdPartition(self.topic.topic_id, self.topic.topic, partition)
        return self._store.caches.get(key, RemoteLogMetadataCache())

    def _take(self, stream: EventStream) -> Sequence[Finding]:
        selection = Selection(topic_id=self.topic.topic_id)
        self._store.replay(selected_records(stream, selection))
        return [*stream.findings, *self._store.findings]
