"""`partition remove` on a cluster of three brokers, while the leader of the events' metadata partition goes away."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import pytest
from confluent_kafka.admin._metadata import PartitionMetadata

from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.joining_broker import NODE_ID, JoiningBroker
from tests.rigs.leftovers import ORDERS, STUCK, Leftovers, leftovers, written_values
from tests.rigs.topics import cluster_metadata, known_topics
from tests.rigs.waiting import wait_until
from tieredctl.cli.arguments import clock_ms
from tieredctl.kafka.live_topic import LiveTopic
from tieredctl.kafka.metadata_producer import MetadataProducer
from tieredctl.layouts.registry import layout_named
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.topic_removal.remover import RemotePartitionRemover
from tieredctl.ops.topic_removal.topic_metadata import TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import RemovalScope, plan_removal
from tieredctl.ports.object_store import Deletion, StoredObject
from tieredctl.storage.file import FileStore

pytestmark = pytest.mark.integration

THIRD_NODE_ID = 3
SECONDS = 90
REASSIGNMENT = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"


@dataclass(frozen=True)
class Cluster:
    """Three brokers, the first of which leads every topic but, by a test's wish, metadata partitions."""

    leftovers: Leftovers
    second: JoiningBroker

    def leader(self, metadata_partition: int) -> int:
        return int(self._described(metadata_partition).leader)

    def give_to_the_second(self, metadata_partition: int) -> None:
        """Makes the second broker the leader of a metadata partition, and both others its followers."""
        # A leader stays one while it is a replica.
        for replicas in ([NODE_ID, THIRD_NODE_ID], [NODE_ID, THIRD_NODE_ID, 1]):
            self._reassign(metadata_partition, replicas)
        assert self.leader(metadata_partition) == NODE_ID

    def _reassign(self, metadata_partition: int, replicas: list[int]) -> None:
        wanted = [{"topic": METADATA_TOPIC, "partition": metadata_partition, "replicas": replicas}]
        plan = self.second.work_dir / "metadata-reassignment.json"
        plan.write_text(json.dumps({"version": 1, "partitions": wanted}), encoding="utf-8")
        done = self.leftovers.broker.tool(REASSIGNMENT, "--reassignment-json-file", str(plan), "--execute")
        assert done.returncode == 0, done.stderr
        wait_until(
            lambda: sorted(self._described(metadata_partition).isrs) == sorted(replicas),
            f"{replicas} are in sync",
            SECONDS,
        )

    def _described(self, metadata_partition: int) -> PartitionMetadata:
        return known_topics(self.leftovers.broker.bootstrap_server)[METADATA_TOPIC].partitions[metadata_partition]


@dataclass(frozen=True)
class InterruptedStore(FileStore):
    """A store during whose first deletion something happens to the cluster."""

    happens: Callable[[], None] = lambda: None

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        self.happens()
        return super().delete(objects)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with (
        leftovers(jars_of("4.3.1")) as made,
        JoiningBroker(made.broker) as second,
        JoiningBroker(made.broker, {"node.id": str(THIRD_NODE_ID)}) as third,
    ):
        wait_until(lambda: joined(made.broker, third), "the third broker has joined", SECONDS)
        yield Cluster(made, second)


def joined(first: KafkaBroker, third: KafkaBroker) -> bool:
    assert third.running, third.log_tail()
    return THIRD_NODE_ID in cluster_metadata(first.bootstrap_server).brokers


def test_events_follow_the_leader_of_their_metadata_partition(cluster: Cluster) -> None:
    first = cluster.leftovers.broker
    metadata = TopicMetadata(
        cluster.leftovers.topic_ids[STUCK], None, FollowedMetadata(partial(LiveTopic, first.bootstrap_server))
    )
    metadata.refresh()
    (partition,) = metadata.partitions()
    place = metadata.state(partition).metadata_partition
    cluster.give_to_the_second(place)
    store = InterruptedStore(str(first.remote_dir), cluster.second.stop)

    with (
        lease_held(store, "a test", clock_ms) as lease,
        closing(MetadataProducer(first.bootstrap_server)) as producer,
    ):
        layout, scope = layout_named("local"), RemovalScope()
        plans = plan_removal(metadata, store, layout, scope)
        outcome = RemotePartitionRemover(plans, metadata, store, layout, producer, lease, lambda: 0, scope).run()

    assert outcome.stopped is None
    assert outcome.is_complete
    assert cluster.leader(place) != NODE_ID
    assert metadata_of(first, partition.topic_id).state(partition).is_removed
    assert list(store.list(layout.partition_prefix(partition))) == []
    assert cluster.leftovers.values(ORDERS) == written_values(ORDERS)


def metadata_of(broker: KafkaBroker, topic_id: str) -> TopicMetadata:
    metadata = TopicMetadata(topic_id, None, FollowedMetadata(partial(LiveTopic, broker.bootstrap_server)))
    metadata.refresh()
    return metadata
