"""A finding about one part of a segment in a remote store, with the segment's identity in its evidence."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ports.layout import Part, SegmentIdentity


def key_holding(part: Part, keys: Mapping[Part, str]) -> str | None:
    """The key of the object that has a part, of the keys of a segment's objects: its own, that of all indexes, or the
    only one."""
    only = next(iter(keys.values())) if len(keys) == 1 else None
    return keys.get(part, keys.get(Part.INDEXES, only))


def part_finding(
    code: FindingCode,
    segment: SegmentIdentity,
    keys: Mapping[Part, str],
    part: Part,
    message: str,
    *,
    position: int | None = None,
    offsets: tuple[int, int] | None = None,
    severity: Severity | None = None,
    **evidence: object,
) -> Finding:
    """`keys` are of the segment's objects; `position` is a byte of the part, `offsets` the first and last (inclusive)
    at risk."""
    partition, key = segment.topic_id_partition, key_holding(part, keys)
    facts: dict[str, object] = {
        "topic": partition.topic,
        "topicId": partition.topic_id,
        "partition": partition.partition,
        "segmentId": segment.segment_id,
        "part": part.value,
        "key": key,
    }
    if position is not None:
        facts["position"] = position
    if offsets is not None:
        facts["offsets"] = list(offsets)
    subject = f"{partition.topic}-{partition.partition} {segment.segment_id} {part.value}"
    about = SegmentSubject(partition, offsets, segment.segment_id, part, key)
    return Finding(code, subject, message, facts | evidence, severity, about)
