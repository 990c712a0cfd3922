"""The live topic, held to what every source of metadata has to do."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.refusals import refused_with
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.topics import create_topics, delete_topic
from tieredctl.errors import ErrorCode
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.kafka.live_topic import LiveTopic
from tieredctl.testing.metadata_sources import EVENTS, FIRST, MetadataSourceContract, records_of

pytestmark = pytest.mark.integration

PARTITIONS = 3


@dataclass
class LiveMetadata:
    """A metadata topic on a broker that tiers nothing, so that it may be written and made again."""

    broker: KafkaBroker
    topic_id: str
    partition_count: int | None = PARTITIONS
    is_followed: bool = True

    @property
    def cluster_id(self) -> str:
        return self.broker.cluster_id

    def write(self, metadata_partition: int, values: Sequence[bytes]) -> None:
        """In batches of two records."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_server, "linger.ms": 10_000, "log_level": 0})
        for start in range(0, len(values), 2):
            for value in values[start : start + 2]:
                producer.produce(METADATA_TOPIC, value, partition=metadata_partition)
            assert producer.flush(30) == 0

    def open(self) -> LiveTopic:
        return LiveTopic(self.broker.bootstrap_server)


OLDER = pytest.param("3.9.1", marks=pytest.mark.exhaustive("a live metadata topic of 3.9.1"))


@pytest.fixture(scope="module", params=["4.3.1", OLDER])
def untiered(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    properties = {"remote.log.storage.system.enable": "false"}
    with KafkaBroker(jars_of(request.param), properties=properties) as broker:
        yield broker


def made_topic(broker: KafkaBroker) -> str:
    """Makes the metadata topic: its id."""
    create_topics(broker.bootstrap_server, NewTopic(METADATA_TOPIC, PARTITIONS, 1))
    with closing(LiveCluster(broker.bootstrap_server)) as cluster:
        return cluster.topic(METADATA_TOPIC).topic_id


class TestLiveTopic(MetadataSourceContract):
    @pytest.fixture
    def metadata(self, untiered: KafkaBroker) -> Iterator[LiveMetadata]:
        yield LiveMetadata(untiered, made_topic(untiered))
        delete_topic(untiered.bootstrap_server, METADATA_TOPIC)

    def test_a_topic_that_was_deleted_and_made_again_is_another_one(
        self, metadata: LiveMetadata, untiered: KafkaBroker
    ) -> None:
        metadata.write(FIRST, EVENTS[:4])
        with closing(metadata.open()) as source:
            delete_topic(untiered.bootstrap_server, METADATA_TOPIC)
            topic_id = made_topic(untiered)
            metadata.write(FIRST, EVENTS[4:10])

            with refused_with(ErrorCode.WORLD_CHANGED):
                records_of(source, FIRST)
            assert source.advance()
            assert source.metadata_topic_id == topic_id != metadata.topic_id
