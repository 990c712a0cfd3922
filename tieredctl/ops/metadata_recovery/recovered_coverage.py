"""Offsets that neither a remote segment nor the local log has."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.leader_log import LeaderLog


def coverage_findings(
    partition: TopicIdPartition, segments: Sequence[RemoteLogSegmentMetadata], log: LeaderLog | None
) -> Iterator[Finding]:
    """The holes between segments, and up to the first local offset where the leader's log is known.

    `segments` are those that the metadata has once all is recovered.
    """
    covered: int | None = None
    for one in sorted(segments, key=lambda segment: segment.start_offset):
        if covered is not None and one.start_offset > covered + 1:
            said = "are in no segment that can be recovered"
            yield _gap(FindingCode.OFFSET_GAP, partition, covered + 1, one.start_offset - 1, said)
        covered = one.end_offset if covered is None else max(covered, one.end_offset)
    if covered is None or log is None:
        return
    first_needed = max(covered + 1, log.log_start_offset)
    if log.local_log_start_offset > first_needed:
        said = "lie behind the last remote segment and before the local log"
        yield _gap(FindingCode.LOCAL_REMOTE_GAP, partition, first_needed, log.local_log_start_offset - 1, said)


def _gap(code: FindingCode, partition: TopicIdPartition, first: int, last: int, said: str) -> Finding:
    evidence: dict[str, object] = {
        "topic": partition.topic,
        "partition": partition.partition,
        "offsets": [first, last],
    }
    return Finding(code, str(partition), f"offsets {first} to {last} {said}", evidence)
