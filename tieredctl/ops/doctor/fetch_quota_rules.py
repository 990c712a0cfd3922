"""Whether consumers that are behind may read as fast from remote storage as it grows (KIP-956)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import ceil

from tieredctl.model.clock import is_dated
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.cluster.broker_settings import FETCH_QUOTA, REPLICA_SELECTOR, UNLIMITED, BrokerSettings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.doctor.low_quotas import low_quota

_LEAST_SECONDS = 3_600
"""Over less, a burst would pass for what is produced all the time."""


def fetch_quota_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Brokers that lead partitions which groups have to read from remote storage, and which grow there faster than the
    broker may read. What is unknown of a partition counts as nothing. Where followers may serve consumers (KIP-392), it
    is unknown whose quota counts: then all quotas together are compared with all that is read."""
    read = _read_remotely(cluster)
    for broker, settings in sorted(cluster.brokers.items()):
        quota = settings.fetch_quota
        if quota is None or _may_send_to_followers(settings):
            continue
        rates = _rates((facts for facts in read if facts.leader == broker), cluster)
        rate = int(sum(rates))
        if rate > quota:
            message = _too_slow(f"{counted(len(rates), 'partition')} that it leads", rate, "it", quota)
            yield _finding(settings, message, len(rates), rate)
    yield from _together_too_low(cluster, _rates(read, cluster))


def _together_too_low(cluster: ClusterSnapshot, rates: Sequence[float]) -> Iterator[Finding]:
    """Brokers with less than an even share of what all of them together would have to read."""
    brokers = cluster.brokers
    if not brokers.keys() >= cluster.broker_releases.keys() or not all(map(_may_send_to_followers, brokers.values())):
        return
    rate, together = int(sum(rates)), sum(settings.fetch_quota or UNLIMITED for settings in brokers.values())
    if rate <= together:
        return
    share = ceil(rate / len(brokers))
    message = _too_slow(counted(len(rates), "partition"), rate, "all brokers together", together)
    for _, settings in sorted(brokers.items()):
        if (settings.fetch_quota or UNLIMITED) < share:
            yield _finding(settings, message, len(rates), share)


def _may_send_to_followers(settings: BrokerSettings) -> bool:
    return bool(settings.text(REPLICA_SELECTOR)) or settings.is_hidden(REPLICA_SELECTOR)


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


def _rates(read: Iterable[PartitionFacts], cluster: ClusterSnapshot) -> Sequence[float]:
    """How fast each partition of which that is known grows in remote storage, in bytes a second."""
    rates = (_growth(facts, cluster.clock.now_ms) for facts in read)
    return [rate for rate in rates if rate is not None]


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


def _too_slow(what: str, rate: int, who: str, quota: int) -> str:
    return (
        f"groups have to read {what} from remote storage, where about {size_text(rate)} a second come together, but "
        f"{who} may read {size_text(quota)} a second: they never catch up"
    )


def _finding(settings: BrokerSettings, message: str, partitions: int, rate: int) -> Finding:
    """`rate` is what is needed of this broker, in bytes a second."""
    return low_quota(FindingCode.FETCH_QUOTA_TOO_LOW, FETCH_QUOTA, settings, message, {"partitions": partitions}, rate)
