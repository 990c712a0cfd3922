"""Three brokers that never rest: records arrive, segments roll, are copied and expire, and leaders move."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from itertools import cycle

from confluent_kafka import ElectionType, KafkaException, Producer
from confluent_kafka import TopicPartition as Elected
from confluent_kafka.cimpl import NewTopic
from kafka import KafkaAdminClient, TopicPartition
from kafka.errors import KafkaError

from .three_brokers import NODE_IDS, ThreeBrokers
from .topics import admin_client, create_topics

PARTITIONS = 3
RECORDS_A_BURST, RECORD_BYTES = 15, 200
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
        self._is_paused = threading.Event()
        self._topics, self._seconds_a_leader = topics, seconds_a_leader
        self._ends = threading.Event()
        settings = {name: {**SETTINGS, **own} for name, own in topics.items()}
        create_topics(
            brokers.bootstrap_servers,
            *(NewTopic(name, PARTITIONS, len(NODE_IDS), config=config) for name, config in settings.items()),
        )
        self._threads = [threading.Thread(target=self._write), threading.Thread(target=self._move)]

    def begin(self) -> None:
        for thread in self._threads:
            thread.start()

    def end(self) -> None:
        self._ends.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Nothing is written and no leader is moved, but for what is under way; retention goes on."""
        self._is_paused.set()
        try:
            yield
        finally:
            self._is_paused.clear()

    def _write(self) -> None:
        """A burst a moment, so that each begins with a roll."""
        producer = Producer({"bootstrap.servers": self.brokers.bootstrap_servers, "log_level": 0, "linger.ms": 1})
        while not self._ends.wait(1.0):
            if self._is_paused.is_set():
                continue
            for name in self._topics:
                for partition in range(PARTITIONS):
                    for _ in range(RECORDS_A_BURST):
                        with suppress(BufferError):
                            producer.produce(name, b"." * RECORD_BYTES, partition=partition)
            producer.flush(5)
        producer.flush(_ANSWER_SECONDS)

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
