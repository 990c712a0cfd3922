"""The state of a partition's producers at a segment's start, which only the segment before it has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.producer_snapshot import ProducerEntry, read_producer_snapshot
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.verification.small_parts import leader_epoch_contradiction
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import RemoteLogMetadataCache


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
    layout: Layout,
    rebuilt: Mapping[str, bytes] = NOTHING_REBUILT,
) -> EarlierProducers:
    """A broker copies with each segment the snapshot that it took after the segment's last offset. So this is the
    snapshot of the previous segment, if that ends where this one begins and the same leaders wrote it.

    `rebuilt` has snapshots that are rebuilt in the same plan, by segment id: each stands for one that is missing or
    damaged."""
    if metadata.start_offset == 0:
        return EarlierProducers([])
    candidates = [
        known.metadata
        for known in cache.list_remote_log_segments()
        if known.metadata.end_offset == metadata.start_offset - 1
        and known.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
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
    segment: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, rebuilt: bytes | None
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


def _epoch_before(metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout) -> int | None:
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
