"""Brokers' copies of a segment's indexes, in `remote-log-index-cache` of their first log directory and in memory.

Source: RemoteIndexCache. A broker fetches the three indexes once, when it first reads the segment, and keeps using
them, even after a restart, until they are evicted.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tieredctl.formats.file_names import SegmentPart, index_cache_file_name
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.store_check.local_stores import REMOTE_LOG_INDEX_CACHE

_CACHED = (SegmentPart.OFFSET_INDEX, SegmentPart.TIME_INDEX, SegmentPart.TRANSACTION_INDEX)


def cached_file_names(metadata: RemoteLogSegmentMetadata) -> list[str]:
    """The files that a broker which has read the segment keeps in its cache."""
    return [index_cache_file_name(metadata.start_offset, metadata.segment_id, part) for part in _CACHED]


def cached_files(metadata: RemoteLogSegmentMetadata, log_dirs: Sequence[Path]) -> list[Path]:
    """Which of them these brokers have."""
    paths = (log_dir / REMOTE_LOG_INDEX_CACHE / name for log_dir in log_dirs for name in cached_file_names(metadata))
    return [path for path in paths if path.exists()]
