"""A segment's indexes and producer snapshot, rebuilt from its log."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.index_building import IndexBuilder
from tieredctl.formats.indexes import encode_offset_index, encode_time_index, encode_transaction_index
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot
from tieredctl.formats.producer_state import ProducerState
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.progress import note

_PIECE_BYTES = 1 << 22


def rebuilt_parts(
    metadata: RemoteLogSegmentMetadata,
    store: ObjectStore,
    layout: Layout,
    index_interval_bytes: int,
    producers_before: Sequence[ProducerEntry] | None,
) -> dict[Part, bytes]:
    """What a broker would have written next to the log: all parts, except those that need the producers as of the
    segment's first offset where these are unknown.

    Reads the log once, in pieces. Raises TieredctlError `world-changed` where it is no longer sound.
    """
    builder = IndexBuilder(metadata.start_offset, index_interval_bytes)
    state = None if producers_before is None else ProducerState(producers_before)
    chunks = layout.open_segment(store, metadata).stream(Part.LOG, _PIECE_BYTES)
    try:
        for block in scan_log(chunks, metadata.segment_size_in_bytes, AsColumns(), metadata.start_offset):
            if isinstance(block, Damage):
                raise DecodeError(block.reason, block.position)
            builder.feed(np.asarray(block.positions, np.int64) + block.file_position, block.headers)
            if state:
                state.feed(block)
            note("bytes of the log read", block.file_position + len(block.buffer), metadata.segment_size_in_bytes)
            del block  # before the next is read, so that its memory can be reused
    except DecodeError as error:
        message = f"The log of segment {metadata.segment_id} changed since it was read: {error.message}."
        raise TieredctlError(ErrorCode.WORLD_CHANGED, message) from error
    parts = {
        Part.OFFSET_INDEX: encode_offset_index(builder.offset_index()),
        Part.TIME_INDEX: encode_time_index(builder.time_index()),
    }
    if state:
        parts[Part.TRANSACTION_INDEX] = encode_transaction_index(state.aborted)
        parts[Part.PRODUCER_SNAPSHOT] = encode_producer_snapshot(state.entries())
    return parts
