"""A segment's leader-epoch checkpoint, from the metadata and the checkpoints that were copied beside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.segment_parts import leader_epoch_entries
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.verification.small_parts import leader_epoch_contradiction
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.rlmm.cache import RemoteLogMetadataCache

_LATER_LOOKED_AT = 8


def leader_epoch_checkpoint(
    metadata: RemoteLogSegmentMetadata, cache: RemoteLogMetadataCache, store: ObjectStore, layout: SegmentObjects
) -> bytes | None:
    """What a broker copies with a segment: the lineage up to the segment's end, from where the log began then. None
    where nothing shows that.

    The segment's own epochs are in its metadata. Those before it are in the checkpoint of the segment before, or of a
    later one that holds the same epochs for this segment; else in the metadata of all segments from offset 0 on.
    Source: RemoteLogManager.getLeaderEpochEntries.
    """
    own = [EpochEntry(epoch, offset) for epoch, offset in metadata.segment_leader_epochs]
    for entries in _checkpoints_beside(metadata, cache, store, layout):
        earlier = [entry for entry in entries if entry.start_offset < metadata.start_offset]
        continues = bool(earlier) and earlier[-1].epoch == own[0].epoch
        if not earlier or earlier[-1].epoch > own[0].epoch:
            continue
        whole = [*earlier, *(own[1:] if continues else own)]
        if leader_epoch_contradiction(whole, metadata) is None:
            return encode_leader_epoch_checkpoint(whole)
    lineage = _lineage_from_the_start(metadata, _finished(cache))
    return None if lineage is None else encode_leader_epoch_checkpoint(lineage)


def _lineage_from_the_start(
    metadata: RemoteLogSegmentMetadata, finished: Sequence[RemoteLogSegmentMetadata]
) -> list[EpochEntry] | None:
    """By the segments that follow one another from offset 0 to this one; None where one is missing, or where it is open
    which of two it is."""
    ending_at: dict[int, list[RemoteLogSegmentMetadata]] = {}
    for one in finished:
        ending_at.setdefault(one.end_offset, []).append(one)
    chain = [metadata]
    while chain[-1].start_offset > 0:
        before = ending_at.get(chain[-1].start_offset - 1, [])
        if len(before) != 1:
            return None
        chain.append(before[0])
    lineage: list[EpochEntry] = []
    for epoch, offset in (entry for one in reversed(chain) for entry in one.segment_leader_epochs):
        if lineage and epoch < lineage[-1].epoch:
            return None
        if not lineage or epoch > lineage[-1].epoch:
            lineage.append(EpochEntry(epoch, offset))
    return lineage


def _finished(cache: RemoteLogMetadataCache) -> list[RemoteLogSegmentMetadata]:
    return [
        one.metadata
        for one in cache.list_remote_log_segments()
        if one.metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED
    ]


def _checkpoints_beside(
    metadata: RemoteLogSegmentMetadata, cache: RemoteLogMetadataCache, store: ObjectStore, layout: SegmentObjects
) -> Iterator[list[EpochEntry]]:
    finished = _finished(cache)
    before = [one for one in finished if one.end_offset == metadata.start_offset - 1]
    after = sorted(
        (one for one in finished if one.start_offset > metadata.end_offset), key=lambda one: one.start_offset
    )
    # Of several that end there, one may be another lineage's.
    for other in [*(before if len(before) == 1 else []), *after[:_LATER_LOOKED_AT]]:
        try:
            entries = leader_epoch_entries(layout.open_segment(store, other).read(Part.LEADER_EPOCH))
        except DecodeError:
            continue
        except TieredctlError as error:
            if error.code is not ErrorCode.OBJECT_MISSING:
                raise
            continue
        if leader_epoch_contradiction(entries, other) is not None:
            continue
        if other in before:
            yield entries
            continue
        until = [entry for entry in entries if entry.start_offset <= metadata.end_offset]
        if until and leader_epoch_contradiction(until, metadata) is None:
            yield until
