"""A live cluster, held to what every `Cluster` has to do."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.kafka.cluster_contract import ClusterContract, KnownCluster
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.own_topic import OwnTopic, own_topic
from tieredctl.kafka.consumer_groups import LiveClusterWithGroups
from tieredctl.kafka.kafka_python_client import KafkaPythonClient
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.ports.cluster import OffsetSpec

pytestmark = pytest.mark.integration

SECONDS = 4
"""For a request: a topic that is not there is waited for as long before its settings are said not to be changed."""


OLDER = pytest.param("kafka_3", marks=pytest.mark.exhaustive("a live cluster of 3.9.1"))


@pytest.fixture(scope="module", params=["kafka_4", OLDER])
def release(request: pytest.FixtureRequest) -> DrivenBroker:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


@pytest.fixture(scope="module")
def written(release: DrivenBroker) -> Iterator[OwnTopic]:
    with own_topic(release.broker) as topic:
        topic.write(2)
        yield topic


@pytest.fixture(scope="module", params=[LiveCluster, LiveClusterWithGroups], ids=lambda one: one.__name__)
def known(request: pytest.FixtureRequest, release: DrivenBroker, written: OwnTopic) -> Iterator[KnownCluster]:
    unknown = () if release.broker.jars.release >= (4, 2) else (OffsetSpec.EARLIEST_PENDING_UPLOAD,)

    def opened() -> LiveCluster:
        made: LiveCluster = request.param(release.broker.bootstrap_server, request_timeout_seconds=SECONDS)
        return made

    with closing(opened()) as cluster:
        yield KnownCluster(cluster, release.broker.cluster_id, written.name, frozenset(unknown), opened)


class TestLiveCluster(ClusterContract):
    """Those of both clients, on both releases."""


def test_a_broker_that_hangs_is_passed_over_by_whoever_asks_one_of_several(release: DrivenBroker) -> None:
    """As kafka-python does, which waits for the one that it drew."""
    with closing(socket.create_server(("127.0.0.1", 0))) as hanging:
        servers = f"127.0.0.1:{hanging.getsockname()[1]},{release.broker.bootstrap_server}"
        for _ in range(6):
            with closing(KafkaPythonClient(servers, {}, SECONDS)) as client:
                assert client.broker_ids()
