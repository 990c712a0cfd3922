"""Offsets below the leader's local log that no segment of the metadata holds, though the log start promises them.

Leaders trim their disks after they copied, and raise the log start before they delete. So the local log start is asked
for before the metadata is read, and the log start again after it: a segment that is copied or expires meanwhile leaves
no gap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.cluster.leader import only_partition, read_leader_log
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.ops.verification.lineage_check import EpochRanges
from tieredctl.ops.verification.partition_check import findings_along
from tieredctl.ports.cluster import Cluster, OffsetSpec, TopicDescription
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED


def gaps_of_topic(
    cluster: Cluster, name: str, partitions: Sequence[PartitionFacts], stores: Sequence[ReplayedMetadata]
) -> list[Finding]:
    """The gaps of a topic's partitions, whose offsets were asked for before all of the metadata was read into `stores`.

    Leaders are asked again only where there seems to be a gap. Raises TieredctlError as the cluster does, and
    `broker-unreachable` where a leader does not answer then.
    """
    doubtful = [facts for facts in partitions if _seems_to_have_a_gap(facts, stores)]
    if not doubtful:
        return []
    topic = cluster.topic(name)
    log_starts = _offsets(cluster, topic, OffsetSpec.EARLIEST)
    local_starts = _offsets(cluster, topic, OffsetSpec.EARLIEST_LOCAL)
    findings: list[Finding] = []
    for facts in doubtful:
        partition = facts.partition
        if topic.topic_id != partition.topic_id or facts.earliest_local is None:
            continue  # recreated meanwhile
        number = partition.partition
        if number not in log_starts or number not in local_starts:
            message = f"The leader of {name}-{number} did not report where its log begins."
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message, hint="")
        # A leader that was elected meanwhile may have more on its disk.
        local_start = min(facts.earliest_local, local_starts[number])
        metadata, rows = _finished(partition, stores)
        log = LocalLog((), local_start, log_starts[number])
        if len(rows):
            led = read_leader_log(cluster, only_partition(topic, number)).log
            log = LocalLog(led.leader_epochs, local_start, led.log_start_offset)
        findings += _gaps(partition, metadata, rows, log)
    return findings


def _offsets(cluster: Cluster, topic: TopicDescription, spec: OffsetSpec) -> dict[int, int]:
    answers = cluster.list_offsets(topic, spec)
    return {number: answer.offset for number, answer in answers.items() if answer.offset is not None}


def _seems_to_have_a_gap(facts: PartitionFacts, stores: Sequence[ReplayedMetadata]) -> bool:
    if facts.earliest is None or facts.earliest_local is None or facts.earliest >= facts.earliest_local:
        return False
    metadata, rows = _finished(facts.partition, stores)
    # The leader's epochs are many requests: where those of the segments fit together, they do.
    epochs = EpochRanges.of(metadata, rows).joined() if metadata is not None else ()
    log = LocalLog(epochs, facts.earliest_local, facts.earliest)
    return bool(findings_along(facts.partition, metadata, rows, log))


def _finished(partition: TopicIdPartition, stores: Sequence[ReplayedMetadata]) -> tuple[ReplayedMetadata | None, Ints]:
    metadata = next((store for store in stores if partition in store.caches), None)
    if metadata is None:
        return None, np.zeros(0, np.int64)
    rows = metadata.rows_of(partition)
    return metadata, rows[metadata.rows.states[rows] == _FINISHED]


def _gaps(
    partition: TopicIdPartition, metadata: ReplayedMetadata | None, rows: Ints, log: LocalLog
) -> Iterator[Finding]:
    for finding in findings_along(partition, metadata, rows, log):
        offsets = finding.about.offsets if isinstance(finding.about, PartitionSubject) else None
        if finding.severity is Severity.CRITICAL and offsets is not None and offsets[0] < log.local_start_offset:
            yield finding
