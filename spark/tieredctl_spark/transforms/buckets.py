"""How many buckets rows are put into, and which one a row is in."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.windows import Ints
from tieredctl.model.ids import UUID_CHARACTERS
from tieredctl.rlmm.partitioner import partition_hash
from tieredctl_spark.arrow.state_columns import numbered_partitions

_ROWS = 250_000
"""A bucket's, about: it is in the memory of a Python worker as a whole."""
_HALF = 8
_ODD = (np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F), np.uint64(0x165667B19E3779F9))


def bucket_count(rows: int) -> int:
    """For so many rows, those of events twice."""
    return max(1, -(-rows // _ROWS))


def numbers_of_partitions(rows: pa.Table) -> Ints:
    """From 0 to 2^31, the same for rows whose `topicId` and `partition` are the same."""
    partitions, number_of = numbered_partitions(rows.combine_chunks())
    hashes = np.array([partition_hash(one.topic_id, one.partition) for one in partitions], np.int64)
    return hashes[number_of]


def numbers_of_segments(rows: pa.Table) -> Ints:
    """From 0 to 2^32, the same for rows with the same `segmentId`; rows without one are spread by their `key`, which is
    the same if a stage runs again and its rows come in another order."""
    texts = rows.column("segmentId").combine_chunks()
    is_named = numbers_in(texts.is_valid().cast(pa.int8())).astype(bool)
    named, nameless = np.flatnonzero(is_named), np.flatnonzero(~is_named)
    found = np.zeros(len(rows), np.int64)
    found[named] = _hashes(texts.take(number_array(named)))
    if len(nameless):
        found[nameless] = [crc32c(key.as_buffer()) for key in rows.column("key").take(number_array(nameless))]
    return found


def _hashes(ids: pa.StringArray) -> Ints:
    _, bounds, data = ids.buffers()
    if not len(ids):
        return np.zeros(0, np.int64)
    first = np.frombuffer(bounds, np.int32)[ids.offset]
    characters = np.frombuffer(data, np.uint8)[first : first + len(ids) * UUID_CHARACTERS].reshape(-1, UUID_CHARACTERS)
    mixed = np.zeros(len(ids), np.uint64)
    for start, odd in zip((0, _HALF, UUID_CHARACTERS - _HALF), _ODD, strict=True):
        mixed ^= np.ascontiguousarray(characters[:, start : start + _HALF]).view(np.uint64)[:, 0]
        mixed *= odd
        mixed ^= mixed >> np.uint64(32)
    return (mixed >> np.uint64(33)).astype(np.int64)
