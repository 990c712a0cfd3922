"""A cluster by a node's metadata log answers as the live cluster does, or not at all."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.refusals import refused_with
from tests.rigs.driven_brokers import DrivenBroker
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.ops.cluster.offline_cluster import ImageCluster
from tieredctl.ports.cluster import Cluster, OffsetSpec
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

OWN = "DYNAMIC_TOPIC_CONFIG"


def own(cluster: Cluster) -> dict[str, dict[str, str | None]]:
    configs = cluster.topic_configs([*cluster.topic_names(), "no-such-topic"])
    return {
        topic: {name: one.value for name, one in settings.items() if one.source == OWN}
        for topic, settings in configs.items()
    }


@pytest.mark.integration
def test_what_the_log_has_is_what_the_live_cluster_says(driven: DrivenBroker) -> None:
    image = ImageCluster(OfflineClusterPlace(driven.broker.log_dir).read())
    with closing(LiveCluster(driven.broker.bootstrap_server)) as live:
        assert image.cluster_id == live.cluster_id == driven.broker.cluster_id
        assert list(image.topic_names()) == list(live.topic_names())
        assert [image.topic(name) for name in image.topic_names()] == [live.topic(name) for name in live.topic_names()]
        assert own(image) == own(live)
        assert image.broker_features().keys() == live.broker_features().keys()
        for node, features in live.broker_features().items():
            assert image.broker_features()[node].finalized["metadata.version"] == features.finalized["metadata.version"]
            assert image.broker_features()[node].supported["metadata.version"] == features.supported["metadata.version"]
        assert list(image.offline.voters) == [voter.node_id for voter in live.quorum().voters]


REFUSED: dict[str, Callable[[Cluster], object]] = {
    "broker settings": lambda cluster: cluster.broker_configs(),
    "bytes": lambda cluster: cluster.replica_bytes([METADATA_TOPIC]),
    "free bytes": lambda cluster: cluster.free_bytes([METADATA_TOPIC]),
    "a change": lambda cluster: cluster.alter_topic_configs(METADATA_TOPIC, {}, validate_only=True),
    "the quorum": lambda cluster: cluster.quorum(),
    "an epoch": lambda cluster: cluster.epoch_end_offset(cluster.topic(METADATA_TOPIC), 0, 0),
}


@pytest.fixture
def stopped(captures: Path) -> ImageCluster:
    return ImageCluster(OfflineClusterPlace(captures / "kafka-4.3.1/data").read())


def test_what_the_log_does_not_have_is_refused(stopped: ImageCluster) -> None:
    for what, ask in REFUSED.items():
        with pytest.raises(TieredctlError) as refused:
            ask(stopped)
        assert refused.value.code is ErrorCode.BROKER_REFUSED, what
    # No leader gives offsets.
    answers = stopped.list_offsets(stopped.topic("orders7"), OffsetSpec.LATEST)
    assert {(answer.offset, answer.error) for answer in answers.values()} == {(None, "BROKER_NOT_AVAILABLE")}
    # An unknown topic is refused by name.
    with refused_with(ErrorCode.UNKNOWN_TOPIC):
        stopped.topic("gone7")
