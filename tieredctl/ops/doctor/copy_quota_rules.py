"""Whether brokers may copy as fast as their partitions grow (KIP-956)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tieredctl.model.clock import is_dated
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.broker_settings import COPY_QUOTA, BrokerSettings
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.doctor.low_quotas import low_quota
from tieredctl.ops.doctor.partition_rules import is_behind, untiered

_LEAST_SECONDS = 60
"""Over less, a burst would pass for what is produced all the time."""


class _Backlog(NamedTuple):
    """What of a partition waits to be copied, and how fast that came together; estimates."""

    bytes: int
    bytes_per_second: float
    is_behind: bool


def copy_quota_findings(cluster: ClusterSnapshot) -> Iterator[Finding]:
    """Brokers that are behind and grow faster than they may copy. What is unknown of a partition counts as nothing, so
    that a broker with a finding can surely not make up for it at this rate."""
    for broker, settings in sorted(cluster.brokers.items()):
        quota = settings.copy_quota
        if quota is None:
            continue
        led = (facts for facts in cluster.partitions if facts.leader == broker)
        known = (_backlog(facts, cluster.topics[facts.partition.topic], cluster.clock.now_ms) for facts in led)
        backlogs = [one for one in known if one is not None]
        if any(one.is_behind for one in backlogs):
            yield from _too_low(settings, quota, backlogs)


def _too_low(settings: BrokerSettings, quota: int, backlogs: Sequence[_Backlog]) -> Iterator[Finding]:
    rate = int(sum(one.bytes_per_second for one in backlogs))
    waiting = sum(one.bytes for one in backlogs)
    if rate <= quota:
        return
    message = (
        f"about {size_text(rate)} a second was written to the partitions that it leads since their last tiered record, "
        f"but it may copy {size_text(quota)} a second: the {size_text(waiting)} that are not tiered only become more"
    )
    yield low_quota(FindingCode.COPY_QUOTA_TOO_LOW, COPY_QUOTA, settings, message, {"bytes": waiting}, rate)


def _backlog(facts: PartitionFacts, settings: TopicSettings, now_ms: int) -> _Backlog | None:
    """None where nothing is to be copied, or since when is unknown."""
    waiting = None if settings.is_true(names.COPY_DISABLE) else untiered(facts, settings, facts.tiered_end)
    times = [one.max_timestamp_ms for one in facts.finished if is_dated(one.max_timestamp_ms, now_ms)]
    seconds = (now_ms - max(times)) / 1_000 if times else 0
    if waiting is None or seconds < _LEAST_SECONDS:
        return None
    size = waiting.waits + waiting.behind
    return _Backlog(size, size / seconds, is_behind(waiting, settings))
