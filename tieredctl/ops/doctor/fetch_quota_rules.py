"""Whether consumers that are behind may read as fast from remote storage as it grows (KIP-956)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.model.clock import is_dated
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.cluster.broker_settings import FETCH_QUOTA, REPLICA_SELECTOR, BrokerSettings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.doctor.low_quotas import low_quota

_LEAST_SECONDS = 3_600
"""Over less, a burst would pass for what is produced all the time."""


def fetch_quota_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Brokers that lead partitions which groups have to read from remote storage, and which grow there faster than the
    broker may read. What is unknown of a partition counts as nothing. Where followers may serve consumers (KIP-392), it
    is unknown whose quota counts."""
    read = _read_remotely(cluster)
    for broker, settings in sorted(cluster.brokers.items()):
        quota = settings.fetch_quota
        if quota is None or settings.text(REPLICA_SELECTOR) or settings.is_hidden(REPLICA_SELECTOR):
            continue
        rates = [_growth(facts, cluster.clock.now_ms) for facts in read if facts.leader == broker]
        yield from _too_low(settings, quota, [rate for rate in rates if rate is not None])


def _read_remotely(cluster: ClusterSnapshot) -> Sequence[PartitionFacts]:
    """The partitions of which some group's next record is in remote storage only."""
    places = {(facts.partition.topic, facts.partition.partition): facts for facts in cluster.partitions}
    lagging = {
        key: facts
        for committed in cluster.group_offsets
        if (facts := places.get(key := (committed.topic, committed.partition))) is not None
        and facts.earliest is not None
        and facts.earliest_local is not None
        and facts.earliest <= committed.offset < facts.earliest_local
    }
    return list(lagging.values())


def _growth(facts: PartitionFacts, now_ms: int) -> float | None:
    """Bytes in remote storage that came together in a second, on average since the first segment was full; None where
    too little is known of it."""
    dated = [one for one in facts.finished if is_dated(one.max_timestamp_ms, now_ms)]
    if not dated:
        return None
    first = min(dated, key=lambda segment: segment.start_offset)
    seconds = (now_ms - first.max_timestamp_ms) / 1_000
    later = [one for one in facts.finished if one.start_offset > first.end_offset]
    if seconds < _LEAST_SECONDS:
        return None
    return sum(one.known_size or 0 for one in later) / seconds


def _too_low(settings: BrokerSettings, quota: int, rates: Sequence[float]) -> Iterator[Finding]:
    rate = int(sum(rates))
    if rate <= quota:
        return
    message = (
        f"groups have to read {counted(len(rates), 'partition')} that it leads from remote storage, where about "
        f"{size_text(rate)} a second come together, but it may read {size_text(quota)} a second: they never catch up"
    )
    counts = {"partitions": len(rates)}
    yield low_quota(FindingCode.FETCH_QUOTA_TOO_LOW, FETCH_QUOTA, settings, message, counts, rate)
