"""Where a segment's producer snapshot and leader-epoch checkpoint must agree with its metadata."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from struct import calcsize

from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint
from tieredctl.formats.producer_snapshot import PRODUCER_ENTRY, PRODUCER_SNAPSHOT_HEADER, ProducerEntry
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity
from tieredctl.ops.verification.producers_check import ProducersCheck, WrongProducer
from tieredctl.ops.verification.report import SegmentFindings
from tieredctl.ops.verification.transactions import TRANSACTION_ENTRY_BYTES
from tieredctl.ports.layout import Part

_NO_NEXT = 1 << 63
_SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES = map(
    calcsize, (PRODUCER_SNAPSHOT_HEADER.fixed_format, PRODUCER_ENTRY.fixed_format)
)
_SHORTEST_CHECKPOINT = len(encode_leader_epoch_checkpoint([EpochEntry(0, 0)]))


def sizes_are_possible(size: Callable[[Part], int | None]) -> bool:
    """Whether a broker may write a small part of this size; `size` is None for one that is missing."""
    snapshot, checkpoint, aborted = map(size, (Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH, Part.TRANSACTION_INDEX))
    producers = None if snapshot is None else divmod(snapshot - _SNAPSHOT_HEADER_BYTES, _ENTRY_BYTES)
    return (
        (producers is None or (producers[0] >= 0 and not producers[1]))
        and (checkpoint is None or checkpoint >= _SHORTEST_CHECKPOINT)
        and (aborted is None or (aborted > 0 and not aborted % TRANSACTION_ENTRY_BYTES))
    )


def report_producers(entries: Sequence[ProducerEntry], check: ProducersCheck | None, findings: SegmentFindings) -> bool:
    """The first producer in a snapshot with an offset after the segment's end, or that contradicts the log; without a
    `check`, the log is unknown. Returns whether there was a finding."""
    end, copied_ms = findings.metadata.end_offset, findings.metadata.event_timestamp_ms
    beyond = next((number for number, entry in enumerate(entries) if entry.last_offset > end), None)
    wrong: WrongProducer | None = None
    if beyond is not None:
        entry = entries[beyond]
        message = f"producer {entry.producer_id} has offset {entry.last_offset}, after the segment's end {end}"
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
    """How a checkpoint copied with a segment contradicts the segment's leader epochs; None where it does not.

    It holds the lineage up to the segment's end. Its epochs before the segment are not checked.
    """
    said = [
        (entry.epoch, max(entry.start_offset, metadata.start_offset))
        for entry, following in pairwise([*entries, EpochEntry(-1, _NO_NEXT)])
        if following.start_offset > metadata.start_offset
    ]
    for (epoch, offset), (claimed_epoch, claimed_offset) in zip(said, metadata.segment_leader_epochs, strict=False):
        if (epoch, offset) != (claimed_epoch, claimed_offset):
            claim = f"epoch {claimed_epoch} at offset {claimed_offset}"
            return f"it has leader epoch {epoch} at offset {offset}, but the metadata has {claim}"
    if len(said) != len(metadata.segment_leader_epochs):
        promised = len(metadata.segment_leader_epochs)
        return f"it has {len(said)} of the segment's leader epochs, but the metadata has {promised}"
    return None
