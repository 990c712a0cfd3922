"""Whether the metadata topic has as many partitions as brokers expect: one whose count is another ends while it
starts, and events would lie where nobody looks for them."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.errors import TieredctlError
from tieredctl.kafka.cluster import Cluster, ConfigValue
from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.ops.doctor.broker_settings import METADATA_PARTITIONS, BrokerSettings, as_number


def demand_configured_partitions(cluster: Cluster, found: int, stated: int | None) -> None:
    """Returns where the topic's count is what brokers are configured with.

    `stated` is what the user says that is, for brokers that do not tell. Raises TieredctlError `metadata-partitions`
    where it is another, or where nobody tells; and as the cluster does.
    """
    for who, told in _told_by_brokers(cluster, stated):
        configured = stated if told is None else told
        if None not in (stated, told) and stated != told:
            message = f"{METADATA_PARTITIONS} of {who} is {told}, not {stated}."
            raise TieredctlError("metadata-partitions", message)
        if configured is None:
            hint = "Say with --metadata-partitions how many it is configured with."
            raise TieredctlError("metadata-partitions", f"{who} does not tell its {METADATA_PARTITIONS}.", hint=hint)
        if configured != found:
            message = f"{METADATA_TOPIC} has {found} partitions, and {METADATA_PARTITIONS} of {who} is {configured}."
            raise TieredctlError("metadata-partitions", message)


def _told_by_brokers(cluster: Cluster, stated: int | None) -> list[tuple[str, int | None]]:
    """What each broker tells. Brokers show no setting of a plugin's: of that they tell nothing."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.kind.code != "broker-refused" or stated is None:
            raise
        return [("every broker", None)]
    return [(f"broker {node}", _told(one)) for node, one in configs.items()]


def _told(configs: Mapping[str, ConfigValue]) -> int | None:
    values = {name: one.value for name, one in configs.items()}
    settings = BrokerSettings("", values)
    return as_number(values.get(settings.metadata_name(METADATA_PARTITIONS)))
