"""Whether the metadata topic, which may have been recreated, is fit to recover into.

With another partition count than brokers expect, a broker exits at startup, and events would be where no broker looks
for them. With the brokers' default retention, or compaction, recovered metadata would be deleted again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.broker_settings import METADATA_PARTITIONS, BrokerSettings, as_number
from tieredctl.ops.doctor.gathering import METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS, gather_settings
from tieredctl.ops.doctor.metadata_topic_rules import metadata_topic_findings
from tieredctl.ports.cluster import Cluster, ConfigValue
from tieredctl.ports.metadata_source import METADATA_TOPIC

_RETENTION, _REPLICATION = FindingCode.TOPIC_CONFIG_METADATA_RETENTION, FindingCode.TOPIC_CONFIG_METADATA_REPLICATION
_NO_CLOCK = Clock(0, 0)


def demand_configured_partitions(cluster: Cluster, found: int, stated: int | None) -> None:
    """Returns if the topic has as many partitions as brokers are configured with.

    `stated` is the user's word for that count, for brokers that do not report it. Raises TieredctlError
    `metadata-partitions` if the counts differ, or if the count is not known; and as the cluster does.
    """
    for who, reported in _reported_by_brokers(cluster, stated):
        configured = stated if reported is None else reported
        if None not in (stated, reported) and stated != reported:
            message = f"{METADATA_PARTITIONS} of {who} is {reported}, not {stated}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)
        if configured is None:
            hint = "Give the configured count with --metadata-partitions."
            raise TieredctlError(
                ErrorCode.METADATA_PARTITIONS, f"{who} does not report its {METADATA_PARTITIONS}.", hint=hint
            )
        if configured != found:
            partitions = counted(found, "partition")
            message = f"{METADATA_TOPIC} has {partitions}, but {METADATA_PARTITIONS} of {who} is {configured}."
            raise TieredctlError(ErrorCode.METADATA_PARTITIONS, message)


def metadata_topic_faults(cluster: Cluster) -> list[Finding]:
    """What would lose recovered metadata again: retention, compaction, and fewer replicas than the brokers allow.
    Raises TieredctlError as the cluster does."""
    snapshot = gather_settings(cluster, _NO_CLOCK, None)
    topic = snapshot.metadata_topic
    found = [one for one in metadata_topic_findings(snapshot) if one.code in (_RETENTION, _REPLICATION)]
    replicas = 0 if topic is None else min((len(one.replicas) for one in topic.description.partitions), default=0)
    could_have_more = len(snapshot.broker_releases) > replicas
    unseen = [one for one in snapshot.not_looked_at if one.subject in (METADATA_TOPIC_SETTINGS, TOPIC_SETTINGS)]
    return [*(one for one in found if one.code == _RETENTION or could_have_more), *unseen]


def demand_lasting(faults: Sequence[Finding]) -> None:
    """Raises TieredctlError `metadata-topic-unsafe` if what is written would be deleted or refused."""
    messages = [one.message for one in faults if one.code == _RETENTION]
    if messages:
        raise TieredctlError(
            ErrorCode.METADATA_TOPIC_UNSAFE, f"{METADATA_TOPIC} does not keep what is written: {messages[0]}."
        )


def _reported_by_brokers(cluster: Cluster, stated: int | None) -> list[tuple[str, int | None]]:
    """What each broker reports. Brokers do not show a plugin's settings: then nothing is reported."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED or stated is None:
            raise
        return [("every broker", None)]
    return [(f"broker {node}", _reported(one)) for node, one in configs.items()]


def _reported(configs: Mapping[str, ConfigValue]) -> int | None:
    values = {name: one.value for name, one in configs.items()}
    settings = BrokerSettings("", values)
    return as_number(values.get(settings.metadata_name(METADATA_PARTITIONS)))
