"""`recover metadata` objects to a metadata topic that was made again and would not keep what is written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.tiering.model_cluster import METADATA_SETTINGS, ModelCluster
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.ops.metadata_recovery.known_metadata import demand_lasting, metadata_topic_faults
from tieredctl.ports.cluster import ConfigValue
from tieredctl.ports.metadata_source import METADATA_TOPIC

TIERED = {"remote.storage.enable": "true"}


@dataclass
class Remade(ModelCluster):
    """A cluster whose metadata topic has other settings."""

    settings: Mapping[str, str] = field(default_factory=dict)

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        found = dict(super().topic_configs(names))
        if METADATA_TOPIC in found:
            values = {**METADATA_SETTINGS, **self.settings}
            found[METADATA_TOPIC] = {name: ConfigValue(value, "DEFAULT_CONFIG") for name, value in values.items()}
        return found


def test_a_topic_that_would_lose_what_is_written_is_refused() -> None:
    # A topic that keeps all is taken.
    faults = metadata_topic_faults(Remade(own=TIERED))
    demand_lasting(faults)
    assert faults == []
    cases: list[tuple[Mapping[str, str], str]] = [
        ({"retention.ms": "604800000"}, "metadata is deleted after 604800000 ms"),
        ({"retention.bytes": "1000000"}, "retention.bytes is 1000000"),
        ({"cleanup.policy": "compact"}, "cleanup.policy is compact"),
        ({"cleanup.policy": "compact,delete"}, "cleanup.policy is compact,delete"),
    ]
    for settings, said in cases:
        faults = metadata_topic_faults(Remade(own=TIERED, settings=settings))
        with pytest.raises(TieredctlError) as refused:
            demand_lasting(faults)
        assert (refused.value.code, refused.value.exit_code) == ("metadata-topic-unsafe", ExitCode.USAGE), settings
        assert said in refused.value.message, (settings, said)
    # Fewer replicas than there are brokers for are found and refuse nothing.
    faults = metadata_topic_faults(Remade(own=TIERED, metadata_replicas=1))
    demand_lasting(faults)
    assert [one.code for one in faults] == ["topic-config-metadata-replication"]


def test_settings_that_may_not_be_seen_are_reported() -> None:
    class Closed(Remade):
        def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
            if METADATA_TOPIC in names:
                raise TieredctlError(ErrorCode.BROKER_REFUSED, "The user may not look at it.", hint="")
            return super().topic_configs(names)

    faults = metadata_topic_faults(Closed(own=TIERED))

    demand_lasting(faults)
    assert [one.code for one in faults] == ["check-not-made"]
