"""Log directories: segments that a broker cannot copy to remote storage."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.local_log import LocalReplica
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts


def disk_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Of every replica of a tiered partition."""
    facts = {one.partition: one for one in cluster.partitions}
    for replica in cluster.replicas or ():
        known = facts.get(replica.partition)
        if known is not None and not cluster.topics[replica.partition.topic].is_true(names.COPY_DISABLE):
            yield from _without_snapshot(replica, known)


def _without_snapshot(replica: LocalReplica, facts: PartitionFacts) -> Iterator[Finding]:
    """Segments that are not copied yet and have no producer snapshot at their end: the leader takes one for granted
    (RemoteLogManager.copyLogSegment), writes that the copy began, and fails, again and again."""
    tiered_end = -1 if facts.tiered_end is None else facts.tiered_end
    from_offset = max(tiered_end + 1, facts.earliest or 0)
    waiting = [(one, later.base_offset) for one, later in pairwise(replica.segments) if later.base_offset > from_offset]
    missing = [(one, end) for one, end in waiting if end not in replica.snapshot_offsets]
    if missing:
        partition = replica.partition
        (first, _), (_, behind) = missing[0], missing[-1]
        evidence = {
            "topic": partition.topic,
            "topicId": partition.topic_id,
            "partition": partition.partition,
            "logDir": replica.folder,
            "offsets": [first.base_offset, behind - 1],
            "segments": len(missing),
            "bytes": sum(one.size for one, _ in missing),
            "deleteRecordsOffset": behind,
        }
        segments = counted(len(missing), "segment has", "segments have")
        message = (
            f"{segments} no producer snapshot (offsets {first.base_offset} to {behind - 1}): "
            "while this broker leads, neither they nor later segments are tiered"
        )
        yield Finding(
            FindingCode.PRODUCER_SNAPSHOT_MISSING,
            f"{partition.topic}-{partition.partition} in {replica.folder}",
            message,
            evidence,
        )
