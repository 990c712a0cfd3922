"""One topic whose settings the user may not see does not hide the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pytest

from tests.tiering.model_cluster import TOPIC, ModelCluster
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.cluster.topic_settings import readable_topic_configs, unreadable_settings
from tieredctl.ops.tiering.topic_status import topic_list
from tieredctl.ports.cluster import ConfigValue
from tieredctl.ports.metadata_source import METADATA_TOPIC


@dataclass
class Guarded(ModelCluster):
    """A cluster that refuses a request about a topic whose settings the user may not see, as LiveCluster does."""

    closed: frozenset[str] = frozenset()
    names: Sequence[str] = (METADATA_TOPIC, TOPIC)
    asked: list[Sequence[str]] = field(default_factory=list)

    def topic_names(self) -> Sequence[str]:
        return self.names

    def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
        self.asked.append(names)
        for name in names:
            if name in self.closed:
                hint = f"The user needs the operation DescribeConfigs on topic {name}."
                raise TieredctlError(ErrorCode.BROKER_REFUSED, f"The user may not look at topic {name}.", hint=hint)
        return {name: {"remote.storage.enable": ConfigValue("true", "DYNAMIC_TOPIC_CONFIG")} for name in names}


def test_topic_list_shows_the_others_and_says_which_it_could_not_see() -> None:
    cluster = Guarded(names=("a", "b", "c"), closed=frozenset({"b"}))

    rows, findings = topic_list(cluster, {})

    assert [(row.topic, row.tiering) for row in rows] == [("a", "on"), ("b", "unknown"), ("c", "on")]
    (finding,) = findings
    assert (finding.code, finding.subject) == ("check-not-made", "settings of topic b")
    assert "DescribeConfigs on topic b" in finding.message


def test_whichever_are_closed_the_others_are_seen() -> None:
    # Where all may be seen they are asked for at once.
    cluster = Guarded(names=[str(number) for number in range(100)])
    assert unreadable_settings(readable_topic_configs(cluster, cluster.names).denied) == []
    assert len(cluster.asked) == 1
    cases: list[set[str]] = [{"0"}, {"99"}, {"7", "8", "70"}, {str(number) for number in range(100)}]
    for closed in cases:
        names = [str(number) for number in range(100)]
        cluster = Guarded(names=names, closed=frozenset(closed))
        found = readable_topic_configs(cluster, names)
        assert set(found.denied) == closed, closed
        assert set(found.settings) == {*names} - closed, closed


def test_a_cluster_that_does_not_answer_is_not_a_refusal() -> None:
    class Silent(Guarded):
        def topic_configs(self, names: Sequence[str]) -> Mapping[str, Mapping[str, ConfigValue]]:
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, "No answer came.")

    with pytest.raises(TieredctlError) as raised:
        readable_topic_configs(Silent(), ["a"])

    assert raised.value.code == "broker-unreachable"
