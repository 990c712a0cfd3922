"""What one topic has in remote storage by the metadata: read once, then followed."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.pasteable import pasteable
from tieredctl.model.size_sum import SizeSum
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata, FollowedReplay
from tieredctl.ports.cluster import TopicDescription
from tieredctl.rlmm.cache import RemoteLogMetadataCache, bytes_from, segments_in_use

_NAMED = 5


@dataclass(frozen=True, slots=True)
class RemoteSegments:
    """The segments of a partition, including those being copied or deleted."""

    count: int
    size: SizeSum
    """The size of their logs."""
    start_offset: int | None
    """The least that any has; None without segments."""
    end_offset: int | None
    """The greatest, inclusive."""


@dataclass(slots=True)
class RemoteTopic:
    """The segments of a topic whose deletion is not recorded as finished, as of the last `refresh`."""

    topic: TopicDescription
    metadata: FollowedMetadata
    """The metadata of a live cluster."""
    _replay: FollowedReplay = field(init=False)
    _caches: dict[int, RemoteLogMetadataCache] = field(default_factory=dict)
    """Those that were asked for since the last `refresh`, by partition."""

    def __post_init__(self) -> None:
        partitions = frozenset(self._partition(one.partition) for one in self.topic.partitions)
        self._replay = FollowedReplay(self.metadata, partitions.__contains__)

    def refresh(self) -> None:
        """Reads the new events, up to now. Raises TieredctlError as FollowedMetadata does."""
        self._caches = {}
        self._replay.read(lambda stream: [*stream.findings, *self._replay.known.findings])

    @property
    def segment_count(self) -> int:
        """How many, of all partitions, including those being copied or deleted."""
        return len(self._replay.known.rows)

    @property
    def size(self) -> SizeSum:
        """The size of the logs of all segments."""
        return self._replay.known.size_sum(self._replay.known.order)

    def unknown_sizes(self) -> list[Finding]:
        """A finding for each segment that sums of sizes leave out."""
        return [one for one in self._replay.known.findings if one.code is FindingCode.SEGMENT_SIZE_UNKNOWN]

    def segment_ids(self) -> list[str]:
        """The ids of all segments, by partition, then start offset."""
        metadata = self._replay.known
        ids: list[str] = metadata.rows.segment_ids.at(metadata.order).texts()
        return ids

    def segments(self, partition: int) -> RemoteSegments:
        """The segments of one partition."""
        metadata = self._replay.known
        rows = metadata.rows_of(self._partition(partition))
        if not len(rows):
            return RemoteSegments(0, SizeSum(), None, None)
        starts, ends = metadata.start_offsets(rows), metadata.end_offsets(rows)
        return RemoteSegments(len(rows), metadata.size_sum(rows), int(starts.min()), int(ends.max()))

    def highest_copied(self, partition: int) -> int | None:
        """The greatest offset of a partition that was ever copied, even if it was deleted since."""
        return self._cache(partition).highest_offset()

    def highest_deleted(self, partition: int) -> int | None:
        """The greatest offset of a partition in finished copies that were deleted or are being deleted."""
        return self._cache(partition).deleted.highest

    def demand_nothing_new(self, shown: Collection[str]) -> None:
        """Reads the new events. Raises TieredctlError `world-changed` where there are segments besides the shown ones
        (by id): the deletion of a topic deletes all that it has by then."""
        self.refresh()
        metadata = self._replay.known
        is_new = np.array([segment_id not in shown for segment_id in self.segment_ids()], np.bool_)
        new_segments = (one.metadata for _, one in metadata.known(metadata.order[is_new]))
        places = sorted((one.topic_id_partition.partition, one.start_offset, one.segment_id) for one in new_segments)
        new = [segment_id for _, _, segment_id in places]
        if new:
            more = f" and {len(new) - _NAMED} more" if len(new) > _NAMED else ""
            segments = "segment" if len(new) == 1 else "segments"
            message = f"Since the plan was shown, {segments} {', '.join(new[:_NAMED])}{more} came to remote storage"
            stop = pasteable("tieredctl topic disable {topic} --stop-copying --apply", {"topic": self.topic.topic})
            hint = f"Run it again, or first: {stop}"
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"{message}; nothing was changed.", hint=hint)

    def bytes_below(self, partition: int, offset: int) -> SizeSum:
        """The bytes of a partition that consumers can read in remote storage below an offset; a segment that it divides
        counts by the share of offsets."""
        segments = segments_in_use(self._cache(partition))
        is_exact = all(segment.known_size is not None for segment in segments if segment.start_offset < offset)
        size = sum(segment.known_size or 0 for segment in segments) - bytes_from(segments, offset).least
        return SizeSum(size, is_exact)

    def _cache(self, partition: int) -> RemoteLogMetadataCache:
        if partition not in self._caches:
            caches = self._replay.known.caches
            self._caches[partition] = caches.get(self._partition(partition), RemoteLogMetadataCache())
        return self._caches[partition]

    def _partition(self, number: int) -> TopicIdPartition:
        return TopicIdPartition(self.topic.topic_id, self.topic.topic, number)
