"""What is said of segments that are not recovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment

_NORMAL = (Fate.DELETED, Fate.SUPERSEDED, Fate.COPY_NOT_FINISHED, Fate.NOT_IN_LINEAGE)
"""Kafka would not use them either."""
_SAID_OTHERWISE = (Fate.RECOVER, Fate.IN_METADATA, Fate.BELOW_LOG_START)


def segment_findings(partition: TopicIdPartition, segments: Sequence[JudgedSegment]) -> Iterator[Finding]:
    """One for each segment that is left out, but for those below the log start: of these the partition tells. A topic
    that is unknown is said once."""
    unknown = [one for one in segments if one.fate is Fate.TOPIC_UNKNOWN]
    if unknown:
        message = f"{len(unknown)} segments are not recovered: {unknown[0].reason}"
        yield Finding(FindingCode.TOPIC_NOT_IN_CLUSTER, str(partition), message, _evidence(partition))
    for one in segments:
        if one.fate in _SAID_OTHERWISE or one.fate is Fate.TOPIC_UNKNOWN:
            continue
        identity = one.stored.identity
        evidence = _evidence(partition) | {
            "segmentId": identity.segment_id,
            "startOffset": identity.start_offset,
            "reason": one.fate.value,
        }
        severity = Severity.INFO if one.fate in _NORMAL else None
        subject = f"{partition.topic}-{partition.partition} {identity.segment_id}"
        yield Finding(FindingCode.SEGMENT_NOT_RECOVERED, subject, f"{one.fate}: {one.reason}", evidence, severity)


def _evidence(partition: TopicIdPartition) -> dict[str, object]:
    return {"topic": partition.topic, "topicId": partition.topic_id, "partition": partition.partition}
