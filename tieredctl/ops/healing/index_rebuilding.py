"""A segment's indexes and producer snapshot, rebuilt from its log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.index_columns import IndexBuilder
from tieredctl.formats.indexes import encode_offset_index, encode_time_index, encode_transaction_index
from tieredctl.formats.log_scan import Damage, scan_log
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot, read_producer_snapshot
from tieredctl.formats.producer_state import ProducerState
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ops.verification.small_parts import leader_epoch_contradiction
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.process.progress import note
from tieredctl.rlmm.cache import RemoteLogMetadataCache

_PIECE_BYTES = 1 << 22


def rebuilt_parts(
    metadata: RemoteLogSegmentMetadata,
    store: ObjectStore,
    layout: SegmentObjects,
    index_interval_bytes: int,
    producers_before: Sequence[ProducerEntry] | None,
) -> dict[Part, bytes]:
    """What a broker would have written next to the log: all parts, except those that need the producers as of the
    segment's first offset where these are unknown.

    Reads the log once, in pieces. Raises TieredctlError `world-changed` where it is no longer sound.
    """
    builder = IndexBuilder(metadata.start_offset, index_interval_bytes)
    state = None if producers_before is None else ProducerState(producers_before)
    chunks, end = layout.open_segment(store, metadata).stream(Part.LOG, _PIECE_BYTES), 0
    try:
        for block in scan_log(chunks, metadata.segment_size_in_bytes, AsColumns(), metadata.start_offset):
            if isinstance(block, Damage):
                raise DecodeError(block.reason, block.position)
            builder.feed(np.asarray(block.positions, np.int64) + block.file_position, block.headers)
            if state:
                state.feed(block)
            end = block.file_position + len(block.buffer)
            note("bytes of the log read", end, metadata.segment_size_in_bytes)
            del block  # before the next is read, so that its memory can be reused
        if metadata.known_size not in (None, end):
            raise DecodeError("it ends early", end)
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


@dataclass(frozen=True, slots=True)
class EarlierProducers:
    """The producers as of a segment's first offset; None where unknown, with the reason."""

    entries: Sequence[ProducerEntry] | None
    unknown_because: str | None = None


NOTHING_REBUILT: Mapping[str, bytes] = MappingProxyType({})


def earlier_producers(
    metadata: RemoteLogSegmentMetadata,
    cache: RemoteLogMetadataCache,
    store: ObjectStore,
    layout: SegmentObjects,
    rebuilt: Mapping[str, bytes] = NOTHING_REBUILT,
) -> EarlierProducers:
    """A broker copies with each segment the snapshot that it took after the segment's last offset. So this is the
    snapshot of the previous segment, if that ends where this one begins and the same leaders wrote it.

    `rebuilt` has snapshots that are rebuilt in the same plan, by segment id: each stands for one that is missing or
    damaged. What is unknown by one reading is read again over new connections: bytes may be altered on the way."""
    if metadata.start_offset == 0:
        return EarlierProducers([])
    return read_again(
        store,
        lambda at: _before(metadata, cache, at, layout, rebuilt),
        is_sound=lambda found: found.entries is not None,
    )


def _before(
    metadata: RemoteLogSegmentMetadata,
    cache: RemoteLogMetadataCache,
    store: ObjectStore,
    layout: SegmentObjects,
    rebuilt: Mapping[str, bytes],
) -> EarlierProducers:
    candidates = [
        other.metadata
        for other in cache.list_remote_log_segments()
        if other.metadata.end_offset == metadata.start_offset - 1
        and other.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    ]
    if not candidates:
        return EarlierProducers(None, f"no segment in remote storage ends at offset {metadata.start_offset - 1}")
    epoch = _epoch_before(metadata, store, layout)
    if epoch is None:
        return EarlierProducers(None, "its leader-epoch checkpoint does not show which leader wrote what is before it")
    before = next((one for one in candidates if one.segment_leader_epochs[-1][0] == epoch), None)
    if before is None:
        why = f"the segment before it was not written in the expected leader epoch, {epoch}"
        return EarlierProducers(None, why)
    return _snapshot_of(before, store, layout, rebuilt.get(before.segment_id))


def _snapshot_of(
    segment: RemoteLogSegmentMetadata, store: ObjectStore, layout: SegmentObjects, rebuilt: bytes | None
) -> EarlierProducers:
    snapshot = f"the producer snapshot of segment {segment.segment_id}, which must be rebuilt first,"
    try:
        if rebuilt is None:
            rebuilt = layout.open_segment(store, segment).read(Part.PRODUCER_SNAPSHOT)
        entries = read_producer_snapshot(rebuilt)
    except DecodeError as error:
        return EarlierProducers(None, f"{snapshot} is damaged: {error.reason}")
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
        return EarlierProducers(None, f"{snapshot} is not in the store")
    if any(entry.last_offset > segment.end_offset for entry in entries):
        return EarlierProducers(None, f"{snapshot} was taken at a later offset")
    return EarlierProducers(entries)


def _epoch_before(metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: SegmentObjects) -> int | None:
    """The leader epoch of the offset before the segment's first, by the checkpoint copied with it; None where that is
    missing, damaged, or does not reach back that far."""
    try:
        entries = leader_epoch_entries(layout.open_segment(store, metadata).read(Part.LEADER_EPOCH))
    except DecodeError:
        return None
    except TieredctlError as error:
        if error.code is not ErrorCode.OBJECT_MISSING:
            raise
        return None
    if leader_epoch_contradiction(entries, metadata):
        return None
    return max((entry.epoch for entry in entries if entry.start_offset < metadata.start_offset), default=None)
