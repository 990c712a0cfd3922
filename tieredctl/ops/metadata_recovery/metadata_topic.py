"""Whether the metadata topic, which may have been made again, is fit to be recovered into.

With another count of partitions than brokers expect, a broker ends while it starts, and events would lie where nobody
looks for them. With a retention that is the brokers' default, or compaction, what is recovered would go again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.cluster import Cluster, ConfigValue
from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.model.clock import Clock
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.broker_settings import METADATA_PARTITIONS, BrokerSettings, as_number
from tieredctl.ops.doctor.gathering import METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS, gather_settings
from tieredctl.ops.doctor.metadata_topic_rules import metadata_topic_findings

_RETENTION, _REPLICATION = FindingCode.TOPIC_CONFIG_METADATA_RETENTION, FindingCode.TOPIC_CONFIG_METADATA_REPLICATION
_NO_CLOCK = Clock(0, 0)


def demand_configured_partitions(cluster: Cluster, found: int, stated: int | None) -> None:
    """Returns where the topic's count is what brokers are configured with.

    `stated` is what the user says that is, for brokers that do not tell. Raises TieredctlError `metadata-partitions`
    where it is another, or where nobody tells; and as the cluster does.
    """
    for who, told in _told_by_brokers(cluster, stated):
        configured = stated if told is None else told
        if None not in (stated, told) and stated != told:
            message = f"{METADATA_PARTITIONS} of {who} is {told}, not {stated}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)
        if configured is None:
            hint = "Say with --metadata-partitions how many it is configured with."
            raise TieredctlError(
                ErrorCode.METADATA_PARTITIONS, f"{who} does not tell its {METADATA_PARTITIONS}.", hint=hint
            )
        if configured != found:
            message = f"{METADATA_TOPIC} has {found} partitions, and {METADATA_PARTITIONS} of {who} is {configured}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)


def metadata_topic_faults(cluster: Cluster) -> list[Finding]:
    """What would let recovered metadata go again: retention, compaction, and fewer replicas than there are brokers for.
    Raises TieredctlError as the cluster does."""
    snapshot = gather_settings(cluster, _NO_CLOCK, None)
    topic = snapshot.metadata_topic
    found = [one for one in metadata_topic_findings(snapshot) if one.code in (_RETENTION, _REPLICATION)]
    replicas = 0 if topic is None else min((len(one.replicas) for one in topic.description.partitions), default=0)
    could_have_more = len(snapshot.broker_releases) > replicas
    unseen = [one for one in snapshot.not_looked_at if one.subject in (METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS)]
    return [*(one for one in found if one.code == _RETENTION or could_have_more), *unseen]


def demand_lasting(faults: Sequence[Finding]) -> None:
    """Raises TieredctlError `metadata-topic-unsafe` where what is written would be deleted or refused."""
    said = [one.message for one in faults if one.code == _RETENTION]
    if said:
        raise TieredctlError(
            ErrorCode.METADATA_TOPIC_UNSAFE, f"{METADATA_TOPIC} does not keep what is written: {said[0]}."
        )


def _told_by_brokers(cluster: Cluster, stated: int | None) -> list[tuple[str, int | None]]:
    """What each broker tells. Brokers show no setting of a plugin's: of that they tell nothing."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED or stated is None:
            raise
        return [("every broker", None)]
    return [(f"broker {node}", _told(one)) for node, one in configs.items()]


def _told(configs: Mapping[str, ConfigValue]) -> int | None:
    values = {name: one.value for name, one in configs.items()}
    settings = BrokerSettings("", values)
    return as_number(values.get(settings.metadata_name(METADATA_PARTITIONS)))
