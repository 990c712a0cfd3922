"""Which consumer groups depend on remote storage, and which come too late: good to know before a broker is moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ports.consumer_groups import CommittedOffset

_Behind = tuple[CommittedOffset, PartitionFacts]


def group_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """A finding for each group and tiered topic whose committed offsets are in remote storage only, or deleted."""
    facts = {(one.partition.topic, one.partition.partition): one for one in cluster.partitions}
    expired: dict[tuple[str, str], list[_Behind]] = defaultdict(list)
    tiered: dict[tuple[str, str], list[_Behind]] = defaultdict(list)
    for committed in cluster.group_offsets:
        known = facts.get((committed.topic, committed.partition))
        if known is None or known.earliest is None:
            continue
        if committed.offset < known.earliest:
            expired[committed.group, committed.topic].append((committed, known))
        elif known.earliest_local is not None and committed.offset < known.earliest_local:
            tiered[committed.group, committed.topic].append((committed, known))
    for (group, topic), behind in expired.items():
        lost = sum((known.earliest or 0) - committed.offset for committed, known in behind)
        lost_offsets = counted(lost, "offset was", "offsets were")
        message = f"its offsets in {_partitions(behind)} are below the log start: {lost_offsets} deleted unread"
        yield _finding(FindingCode.GROUP_OFFSET_BELOW_LOG_START, group, topic, message, behind)
    for (group, topic), behind in tiered.items():
        remote = sum((known.earliest_local or 0) - committed.offset for committed, known in behind)
        offsets = counted(remote, "offset lies", "offsets lie")
        message = f"it reads {_partitions(behind)} from remote storage: {offsets} before the local logs"
        yield _finding(FindingCode.GROUP_READS_REMOTE, group, topic, message, behind)


def _partitions(behind: Sequence[_Behind]) -> str:
    return counted(len(behind), "partition")


def _finding(code: FindingCode, group: str, topic: str, message: str, behind: Sequence[_Behind]) -> Finding:
    partitions = [
        {
            "partition": committed.partition,
            "committedOffset": committed.offset,
            "earliest": known.earliest,
            "earliestLocal": known.earliest_local,
        }
        for committed, known in behind
    ]
    return Finding(
        code, f"group {group}, topic {topic}", message, {"group": group, "topic": topic, "partitions": partitions}
    )
