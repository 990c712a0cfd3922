"""Where the bytes of a partition's remote segments lie, as far as offsets show."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.rlmm.cache import RemoteLogMetadataCache


def segments_in_use(remote: RemoteLogMetadataCache) -> list[RemoteLogSegmentMetadata]:
    """The segments in COPY_SEGMENT_FINISHED that a look-up can reach."""
    known = (segment.metadata for segment in remote.list_remote_log_segments())
    finished = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    return [metadata for metadata in known if metadata.state is finished and remote.is_referenced(metadata)]


def bytes_from(segments: Iterable[RemoteLogSegmentMetadata], offset: int) -> int:
    """How many bytes of segments lie at an offset or after it; of one that it divides, by the share of offsets."""
    total = 0
    for metadata in segments:
        later_offsets = metadata.end_offset + 1 - max(offset, metadata.start_offset)
        if later_offsets > 0:
            total += metadata.segment_size_in_bytes * later_offsets // (metadata.end_offset + 1 - metadata.start_offset)
    return total
