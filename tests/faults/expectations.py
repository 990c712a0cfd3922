"""What a fault must lead to: its finding, with evidence of where, and no other."""

from __future__ import annotations

from collections.abc import Mapping

from tests.faults.cluster import Cluster, exit_code, key_of
from tieredctl.errors import ExitCode
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.verification.report import Level
from tieredctl.ports.layout import Part

DAMAGE = {
    Part.LOG: "batch-corrupt",
    Part.OFFSET_INDEX: "index-damaged",
    Part.TIME_INDEX: "index-damaged",
    Part.TRANSACTION_INDEX: "index-damaged",
    Part.PRODUCER_SNAPSHOT: "producer-snapshot-damaged",
    Part.LEADER_EPOCH: "leader-epoch-checkpoint-damaged",
}
"""By part, what other bytes in it are found as."""


def only_finding(
    cluster: Cluster, code: str, exits: ExitCode = ExitCode.CORRUPTION, level: Level = Level.FULL
) -> Mapping[str, object]:
    """The evidence of the one finding that the whole cluster gives, which has this code and exit code."""
    findings = cluster.findings(level)
    assert [finding.code for finding in findings] == [code], findings
    assert exit_code(findings) is exits
    return findings[0].evidence


def part_finding(
    cluster: Cluster,
    code: str,
    metadata: RemoteLogSegmentMetadata,
    part: Part,
    exits: ExitCode = ExitCode.CORRUPTION,
    level: Level = Level.FULL,
) -> Mapping[str, object]:
    """The same, about one part of one segment, which the evidence names."""
    evidence = only_finding(cluster, code, exits, level)
    assert evidence["segmentId"] == metadata.segment_id
    assert evidence["part"] == part
    assert evidence["key"] == key_of(metadata, part)
    return evidence
