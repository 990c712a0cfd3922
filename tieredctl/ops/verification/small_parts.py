"""What a segment's producer snapshot and leader-epoch checkpoint must agree with its metadata in."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from struct import calcsize

from tieredctl.formats.checkpoints import EpochEntry
from tieredctl.formats.producer_snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT_HEADER, ProducerEntry
from tieredctl.layouts.protocol import Part
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.verification.report import SegmentFindings

_NO_NEXT = 1 << 63


def report_producers(entries: Sequence[ProducerEntry], findings: SegmentFindings) -> None:
    """Where a producer is said to have written behind the segment's end."""
    for number, entry in enumerate(entries):
        if entry.last_offset > findings.metadata.end_offset:
            message = f"producer {entry.producer_id} has offset {entry.last_offset}, which is beyond the segment"
            position = calcsize(PRODUCER_SNAPSHOT_HEADER.fixed_format) + number * calcsize(PRODUCER_ENTRY.fixed_format)
            findings.add("producer-snapshot-damaged", Part.PRODUCER_SNAPSHOT, message, position=position)
            return


def report_leader_epochs(entries: Sequence[EpochEntry], findings: SegmentFindings) -> None:
    """Where a segment's checkpoint contradicts its metadata."""
    contradiction = leader_epoch_contradiction(entries, findings.metadata)
    if contradiction:
        findings.add("leader-epoch-checkpoint-damaged", Part.LEADER_EPOCH, contradiction)


def leader_epoch_contradiction(entries: Sequence[EpochEntry], metadata: RemoteLogSegmentMetadata) -> str | None:
    """How a checkpoint that was copied with a segment contradicts the segment's leader epochs; None where it does not.

    It holds the lineage up to the segment's end. What it says of epochs before the segment must rise, no more.
    """
    if any(later.epoch <= one.epoch or later.start_offset <= one.start_offset for one, later in pairwise(entries)):
        return "its leader epochs and start offsets do not rise"
    said = [
        (entry.epoch, max(entry.start_offset, metadata.start_offset))
        for entry, following in pairwise([*entries, EpochEntry(-1, _NO_NEXT)])
        if following.start_offset > metadata.start_offset
    ]
    for (epoch, offset), (claimed_epoch, claimed_offset) in zip(said, metadata.segment_leader_epochs, strict=False):
        if (epoch, offset) != (claimed_epoch, claimed_offset):
            claim = f"epoch {claimed_epoch} at offset {claimed_offset}"
            return f"it has leader epoch {epoch} at offset {offset} where the metadata has {claim}"
    if len(said) != len(metadata.segment_leader_epochs):
        return f"it has {len(said)} leader epochs of the segment, the metadata {len(metadata.segment_leader_epochs)}"
    return None
