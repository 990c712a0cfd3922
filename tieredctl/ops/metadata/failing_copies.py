"""Partitions whose leader tries to copy the same offset again and again, and fails."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import age_text
from tieredctl.ops.documents import partition_document
from tieredctl.rlmm.failed_copies import FailingCopy
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_TRIES = 3
_NOT_SINCE_MS = 3_600_000
"""Leaders try every remote.log.manager.task.interval.ms, 30 s by default. Who has not tried for so long has stopped:
the topic was deleted, or its leader is gone."""


def failing_copies(metadata: ReplayedMetadata, now_ms: int) -> list[FailingCopy]:
    """The partitions that now fail, by topic, topic id, partition: one failure or two may pass."""
    tried = metadata.failing_copies(at_least=_TRIES)
    return sorted((one for one in tried if now_ms - one.last_ms <= _NOT_SINCE_MS), key=lambda one: one.partition)


def failing_finding(copy: FailingCopy, now_ms: int) -> Finding:
    """Such a partition as a finding."""
    age_ms, last_ms = max(0, now_ms - copy.since_ms), max(0, now_ms - copy.last_ms)  # one may come while this is read
    return Finding(
        FindingCode.COPY_FAILING,
        f"{copy.partition.topic}-{copy.partition.partition}",
        f"the copy at offset {copy.start_offset} has failed {copy.tries} times in {age_text(age_ms)}, the last "
        f"{age_text(last_ms)} ago by broker {copy.author}, and none has finished since",
        {
            **partition_document(copy.partition),
            "segmentId": copy.segment_id,
            "startOffset": copy.start_offset,
            "endOffset": copy.end_offset,
            "brokerId": copy.author,
            "ageMs": age_ms,
            "tries": copy.tries,
            "sinceMs": copy.since_ms,
            "lastMs": copy.last_ms,
        },
        about=PartitionSubject(copy.partition, (copy.start_offset, copy.end_offset)),
    )
