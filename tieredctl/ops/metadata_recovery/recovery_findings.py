"""What a recovery says of segments that it leaves out, and of offsets that stay lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LeaderLog
from tieredctl.ops.documents import partition_document
from tieredctl.ops.metadata_recovery.segment_judgement import Fate, JudgedSegment
from tieredctl.rlmm.cache import DeletedOffsets

_NORMAL = (Fate.DELETED, Fate.SUPERSEDED, Fate.COPY_NOT_FINISHED, Fate.NOT_IN_LINEAGE)
"""Kafka would not use them either."""
_REPORTED_ELSEWHERE = (Fate.RECOVER, Fate.IN_METADATA, Fate.BELOW_LOG_START)


def segment_findings(partition: TopicIdPartition, segments: Sequence[JudgedSegment]) -> Iterator[Finding]:
    """One for each segment that is left out, except those below the log start, for which the partition has one. An
    unknown topic is reported once."""
    unknown = [one for one in segments if one.fate is Fate.TOPIC_UNKNOWN]
    if unknown:
        message = f"{counted(len(unknown), 'segment is', 'segments are')} not recovered: {unknown[0].reason}"
        yield Finding(FindingCode.TOPIC_NOT_IN_CLUSTER, str(partition), message, partition_document(partition))
    for one in segments:
        if one.fate is Fate.RECOVER and one.lacks:
            yield _without_indexes(partition, one)
        if one.fate in _REPORTED_ELSEWHERE or one.fate is Fate.TOPIC_UNKNOWN:
            continue
        identity = one.stored.identity
        evidence = partition_document(partition) | {
            "segmentId": identity.segment_id,
            "startOffset": identity.start_offset,
            "reason": one.fate.value,
        }
        severity = Severity.INFO if one.fate in _NORMAL else None
        subject = f"{partition.topic}-{partition.partition} {identity.segment_id}"
        yield Finding(FindingCode.SEGMENT_NOT_RECOVERED, subject, f"{one.fate}: {one.reason}", evidence, severity)


def _without_indexes(partition: TopicIdPartition, segment: JudgedSegment) -> Finding:
    """No record is lost, but brokers read none of the segment before its indexes are back."""
    identity, lacks = segment.stored.identity, [part.value for part in segment.lacks]
    message = f"the store lacks its {', '.join(lacks)}: rebuild them once the segment is recovered"
    evidence = partition_document(partition) | {"segmentId": identity.segment_id, "startOffset": identity.start_offset}
    subject = f"{partition.topic}-{partition.partition} {identity.segment_id}"
    about = SegmentSubject(partition, None, identity.segment_id, lacks[0])
    return Finding(FindingCode.OBJECT_MISSING, subject, message, evidence | {"parts": lacks}, Severity.WARNING, about)


def coverage_findings(
    partition: TopicIdPartition,
    segments: Sequence[RemoteLogSegmentMetadata],
    log: LeaderLog | None,
    deleted: DeletedOffsets,
) -> Iterator[Finding]:
    """The gaps between segments, and up to the first local offset if the leader's log is known.

    `segments` are those in the metadata once all are recovered. What was `deleted` by the metadata is no gap; nor is
    what lies below the log start.
    """
    first_kept = 0 if log is None else log.log_start_offset
    covered: int | None = None
    for one in sorted(segments, key=lambda segment: segment.start_offset):
        if covered is not None and one.start_offset > covered + 1:
            where = "are in no segment that can be recovered"
            for lost in deleted.not_among(max(covered + 1, first_kept), one.start_offset - 1):
                yield _gap(FindingCode.OFFSET_GAP, partition, lost, where)
        covered = one.end_offset if covered is None else max(covered, one.end_offset)
    if covered is None or log is None:
        return
    where = "are after the last remote segment and before the local log"
    for lost in deleted.not_among(max(covered + 1, first_kept), log.local_log_start_offset - 1):
        yield _gap(FindingCode.LOCAL_REMOTE_GAP, partition, lost, where)


def _gap(code: FindingCode, partition: TopicIdPartition, offsets: tuple[int, int], where: str) -> Finding:
    evidence: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offsets": list(offsets),
    }
    about = PartitionSubject(partition, offsets)
    return Finding(code, str(partition), f"offsets {offsets[0]} to {offsets[1]} {where}", evidence, about=about)
