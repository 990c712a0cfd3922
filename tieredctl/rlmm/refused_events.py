"""Findings about events that Kafka would not take, or that cannot be right."""

from __future__ import annotations

from enum import IntEnum

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.rlmm.states import Refusal


def refused_event(
    metadata_partition: int,
    metadata_offset: int,
    subject: str,
    states: tuple[IntEnum | None, IntEnum],
    refusal: Refusal,
    segment_id: str | None = None,
) -> Finding:
    """An event that is not taken: `states` are the state before it, and the one that it claims. Only informational for
    what is late where the deletion has finished."""
    before, after = states
    evidence: dict[str, object] = {
        "metadataPartition": metadata_partition,
        "metadataOffset": metadata_offset,
        "before": before.name if before is not None else None,
        "after": after.name,
    }
    if segment_id is not None:
        evidence["segmentId"] = segment_id
    about = MetadataSubject(metadata_partition, metadata_offset, segment_id=segment_id)
    said = f"{before.name if before is not None else 'nothing'} to {after.name}"
    severity = Severity.INFO if refusal is Refusal.DELETED_ALREADY else None
    return Finding(FindingCode.EVENT_ILLEGAL, subject, f"{said}: {refusal.value}", evidence, severity, about)


def unknown_size(metadata: RemoteLogSegmentMetadata, metadata_partition: int, metadata_offset: int) -> Finding:
    """A segment with a negative size, which Kafka takes: its last event is there."""
    evidence: dict[str, object] = {
        "segmentId": metadata.segment_id,
        "segmentSizeInBytes": metadata.segment_size_in_bytes,
        "metadataPartition": metadata_partition,
        "metadataOffset": metadata_offset,
    }
    about = MetadataSubject(metadata_partition, metadata_offset, segment_id=metadata.segment_id)
    message = f"the metadata gives it {metadata.segment_size_in_bytes} bytes: its size is unknown, and left out of sums"
    subject = f"segment {metadata.segment_id}"
    return Finding(FindingCode.SEGMENT_SIZE_UNKNOWN, subject, message, evidence, about=about)


def misplaced_event(metadata_partition: int, metadata_offset: int) -> Finding:
    """A record of a kind that brokers keep elsewhere."""
    return Finding(
        FindingCode.EVENT_UNDECODABLE,
        f"__remote_log_metadata-{metadata_partition}@{metadata_offset}",
        "a snapshot record does not belong in the topic: Kafka's reader of this topic stops here",
        {"metadataPartition": metadata_partition, "metadataOffset": metadata_offset},
        about=MetadataSubject(metadata_partition, metadata_offset),
    )
