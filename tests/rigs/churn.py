"""Three brokers that never rest: records arrive, are read and committed, segments roll, are copied and expire, leaders
move, and topics come and go."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import count, cycle

from confluent_kafka import Consumer, ElectionType, KafkaException, Producer
from confluent_kafka import TopicPartition as Elected
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from .three_brokers import NODE_IDS, ThreeBrokers
from .topics import admin_client, create_topics, delete_topic

PARTITIONS = 3
RECORDS_A_BURST, RECORD_BYTES = 15, 200
BURSTS_OF_ONE_THAT_GOES = 6
SETTINGS: Mapping[str, str] = {
    "remote.storage.enable": "true",
    "segment.ms": "800",
    "local.retention.ms": "1500",
    "retention.ms": "60000",
}
_ANSWER_SECONDS = 30


class Churn:
    """What goes on in topics while the threads of `churning` run."""

    def __init__(self, brokers: ThreeBrokers, topics: Mapping[str, Mapping[str, str]], seconds_a_leader: float) -> None:
        self.brokers = brokers
        self.moves = 0
        """Elections so far that gave every partition another leader."""
        self.gone = 0
        """Topics besides that were made, tiered and deleted so far."""
        self._is_paused = threading.Event()
        self._topics, self._seconds_a_leader = topics, seconds_a_leader
        self._ends = threading.Event()
        settings = {name: {**SETTINGS, **own} for name, own in topics.items()}
        create_topics(
            brokers.bootstrap_servers,
            *(NewTopic(name, PARTITIONS, len(NODE_IDS), config=config) for name, config in settings.items()),
        )
        work = (self._write, self._read, self._move, self._come_and_go)
        self._threads = [threading.Thread(target=one) for one in work]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is written, no leader is moved and no topic made, but for what is under way; retention goes on."""
        self._is_paused.set()
        try:
            yield
        finally:
            self._is_paused.clear()

    def _write(self) -> None:
        """A burst a moment, so that each begins with a roll."""
        producer = self._producer()
        while not self._ends.wait(1.0):
            if not self._is_paused.is_set():
                for name in self._topics:
                    _burst(producer, name)
        producer.flush(_ANSWER_SECONDS)

    def _read(self) -> None:
        """A group reads what arrives, and commits how far it is."""
        settings = {"group.id": "reads-on", "auto.offset.reset": "earliest", "auto.commit.interval.ms": 500}
        servers = {"bootstrap.servers": self.brokers.bootstrap_servers, "log_level": 0}
        with closing(Consumer(servers | settings)) as consumer:
            consumer.subscribe(list(self._topics))
            while not self._ends.is_set():
                consumer.poll(0.5)

    def _come_and_go(self) -> None:
        """One topic after the other is made, tiered, and deleted."""
        servers, producer = self.brokers.bootstrap_servers, self._producer()
        for number in count():
            if self._ends.wait(1.0):
                return
            if self._is_paused.is_set():
                continue
            topic = NewTopic(f"passing-{number}", PARTITIONS, len(NODE_IDS), config=dict(SETTINGS))
            # A broker that dies meanwhile may leave it half made.
            with suppress(KafkaException):
                create_topics(servers, topic)
                for _ in range(BURSTS_OF_ONE_THAT_GOES):
                    _burst(producer, topic.topic)
                    self._ends.wait(1.0)
                delete_topic(servers, topic.topic)
                self.gone += 1

    def _producer(self) -> Producer:
        return Producer({"bootstrap.servers": self.brokers.bootstrap_servers, "log_level": 0, "linger.ms": 1})

    def _move(self) -> None:
        """Turns the order of each partition's replicas, and has the first of them lead."""
        electing = admin_client(self.brokers.bootstrap_servers)
        partitions = [TopicPartition(name, number) for name in self._topics for number in range(PARTITIONS)]
        with closing(KafkaAdminClient(bootstrap_servers=self.brokers.bootstrap_servers.split(","))) as admin:
            for shift in cycle(range(len(NODE_IDS))):
                if self._ends.wait(self._seconds_a_leader):
                    return
                if self._is_paused.is_set():
                    continue
                # A broker that restarts leaves a partition with the leader that it has.
                with suppress(KafkaError, KafkaException):
                    turned = {one: _turned(shift + one.partition) for one in partitions}
                    admin.alter_partition_reassignments(turned)
                    chosen = [Elected(one.topic, one.partition) for one in partitions]
                    electing.elect_leaders(ElectionType.PREFERRED, chosen).result(_ANSWER_SECONDS)
                    self.moves += 1


def _burst(producer: Producer, topic: str) -> None:
    for partition in range(PARTITIONS):
        for _ in range(RECORDS_A_BURST):
            with suppress(BufferError):
                producer.produce(topic, b"." * RECORD_BYTES, partition=partition)
    producer.flush(5)


def _turned(by: int) -> list[int]:
    by %= len(NODE_IDS)
    return [*NODE_IDS[by:], *NODE_IDS[:by]]


@contextmanager
def churning(
    brokers: ThreeBrokers, topics: Mapping[str, Mapping[str, str]], *, seconds_a_leader: float = 5.0
) -> Iterator[Churn]:
    """Makes tiered topics with settings of their own, by name, and keeps them moving until the end."""
    churn = Churn(brokers, topics, seconds_a_leader)
    churn.begin()
    try:
        yield churn
    finally:
        churn.end()
