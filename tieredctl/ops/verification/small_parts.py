"""What a segment's producer snapshot and leader-epoch checkpoint must agree with its metadata in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from struct import calcsize

from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.producer_snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT_HEADER, ProducerEntry
from tieredctl.layouts.protocol import Part
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.producers_check import ProducersCheck, WrongProducer
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES

_NO_NEXT = 1 << 63
_SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES = map(
    calcsize, (PRODUCER_SNAPSHOT_HEADER.fixed_format, PRODUCER_ENTRY.fixed_format)
)
_SHORTEST_CHECKPOINT = len(encode_leader_epoch_checkpoint([EpochEntry(0, 0)]))


def sizes_are_possible(size: Callable[[Part], int | None]) -> bool:
    """Whether a broker writes small parts of so many bytes; `size` is None for one that is not there."""
    snapshot, checkpoint, aborted = map(size, (Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH, Part.TRANSACTION_INDEX))
    producers = None if snapshot is None else divmod(snapshot - _SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES)
    return (
        (producers is None or (producers[0] >= 0 and not producers[1]))
        and (checkpoint is None or checkpoint >= _SHORTEST_CHECKPOINT)
        and (aborted is None or (aborted > 0 and not aborted % TRANSACTION_ENTRY_BYTES))
    )


def report_producers(entries: Sequence[ProducerEntry], check: ProducersCheck | None, findings: SegmentFindings) -> bool:
    """The first producer of a snapshot that is said to have written behind the segment's end, or not to have written
    what the log has of it; without a `check`, nothing of the log is known. Whether there was a finding."""
    end, copied_ms = findings.metadata.end_offset, findings.metadata.event_timestamp_ms
    beyond = next((number for number, entry in enumerate(entries) if entry.last_offset > end), None)
    wrong: WrongProducer | None = None
    if beyond is not None:
        entry = entries[beyond]
        message = f"producer {entry.producer_id} has offset {entry.last_offset}, behind the segment's end {end}"
        wrong = WrongProducer(beyond, message)
    elif check:
        wrong = check.first_wrong(entries, copied_ms)
    if wrong:
        position = _SNAPSHOT_HEADER_BYTES + wrong.number * _ENTRY_BYTES
        severity = None if wrong.certain else Severity.WARNING
        part = Part.PRODUCER_SNAPSHOT
        findings.add(FindingCode.PRODUCER_SNAPSHOT_DAMAGED, part, wrong.message, position=position, severity=severity)
    return wrong is not None


def report_leader_epochs(entries: Sequence[EpochEntry], findings: SegmentFindings) -> None:
    """Where a segment's checkpoint contradicts its metadata."""
    contradiction = leader_epoch_contradiction(entries, findings.metadata)
    if contradiction:
        findings.add(FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED, Part.LEADER_EPOCH, contradiction)


def leader_epoch_contradiction(entries: Sequence[EpochEntry], metadata: RemoteLogSegmentMetadata) -> str | None:
    """How a checkpoint that was copied with a segment contradicts the segment's leader epochs; None where it does not.

    It holds the lineage up to the segment's end. What it says of epochs before the segment is not looked at.
    """
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
