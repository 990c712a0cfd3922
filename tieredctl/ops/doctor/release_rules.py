"""What follows from the releases that a cluster's brokers run."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.known_bugs import bug_findings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot
from tieredctl.ops.cluster.topic_settings import RETENTION_BYTES

_PRODUCTION_READY = (3, 9)


def release_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Whether the release is known, the same everywhere, finalized, ready for production, and which bugs it has."""
    yield from _differences(cluster)
    if cluster.release is None:
        message = "the release cannot be determined from the brokers' metadata versions"
        yield Finding(FindingCode.RELEASE_UNKNOWN, "the cluster", message)
        return
    evidence: dict[str, object] = {"release": str(cluster.release)}
    if cluster.release.line < _PRODUCTION_READY:
        message = f"Kafka {cluster.release}: tiered storage was in early access before 3.9"
        yield Finding(FindingCode.RELEASE_EARLY_ACCESS, "the cluster", message, evidence)
    has_size_retention = any(
        topic.is_known(RETENTION_BYTES) and topic.number(RETENTION_BYTES) >= 0 for topic in cluster.topics.values()
    )
    yield from bug_findings(cluster.release, has_size_retention=has_size_retention)


def _differences(cluster: ClusterSnapshot) -> Iterator[Finding]:
    lines = {broker: str(release) for broker, release in cluster.broker_releases.items() if release is not None}
    if len(set(lines.values())) > 1:
        said = ", ".join(f"broker {broker} runs {line}" for broker, line in lines.items())
        yield Finding(
            FindingCode.RELEASE_MIXED, "the cluster", said, {"releases": {str(key): lines[key] for key in lines}}
        )
    finalized, oldest = cluster.finalized_release, min(lines.values(), default=None)
    if finalized is not None and oldest is not None and str(finalized) != oldest and len(set(lines.values())) == 1:
        message = f"brokers run {oldest}, but the metadata version is that of {finalized}: newer features are off"
        evidence = {"release": oldest, "finalized": str(finalized)}
        yield Finding(FindingCode.RELEASE_MIXED, "the cluster", message, evidence, Severity.INFO)
