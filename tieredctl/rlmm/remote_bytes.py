"""Where the bytes of a partition's remote segments lie, as far as offsets show."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.size_sum import SizeSum
from tieredctl.rlmm.cache import RemoteLogMetadataCache


def segments_in_use(remote: RemoteLogMetadataCache) -> list[RemoteLogSegmentMetadata]:
    """The segments in COPY_SEGMENT_FINISHED that a look-up can reach."""
    known, referenced = remote.list_remote_log_segments(), remote.referenced()
    return [segment.metadata for segment in known if segment.metadata.segment_id in referenced]


def bytes_from(segments: Iterable[RemoteLogSegmentMetadata], offset: int) -> SizeSum:
    """How much of segments lies at an offset or after it; of one that it divides, by the share of offsets."""
    shares: list[int | None] = []
    for metadata in segments:
        later_offsets = metadata.end_offset + 1 - max(offset, metadata.start_offset)
        if later_offsets > 0:
            size, offsets = metadata.known_size, metadata.end_offset + 1 - metadata.start_offset
            shares.append(None if size is None else size * later_offsets // offsets)
    return SizeSum.of(shares)
