"""A broker that tiered a topic, and loses the metadata topic: while it runs, or while it is stopped."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaError, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.cimpl import NewTopic

from .access_rules import AUTHORIZER
from .broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from .maven import KafkaJars
from .remote_segments import RemoteSegments
from .topics import TO_THE_END, answered, create_topics
from .waiting import wait_until

ORDERS, PARTITIONS = "orders", 2
_RECORDS, _RECORD_BYTES = 12, 300_000
_SETTLE_SECONDS = 60
_SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
}


class ReadRecord(NamedTuple):
    """What a consumer got."""

    partition: int
    offset: int
    value: bytes


@dataclass(frozen=True)
class ForgetfulCluster:
    """A running broker. All but the last records of each partition of `orders` are in remote storage alone."""

    broker: KafkaBroker
    written: Sequence[ReadRecord]
    """What a consumer of committed records gets."""

    def read(self) -> list[ReadRecord]:
        """What a consumer gets from the earliest offsets on, by partition."""
        found: list[ReadRecord] = []
        settings = {
            "group.id": "rig",
            "enable.auto.commit": False,
            **TO_THE_END,
            "auto.offset.reset": "error",
        }
        with closing(Consumer(_client(self.broker) | settings)) as consumer:
            beginnings = [TopicPartition(ORDERS, number, OFFSET_BEGINNING) for number in range(PARTITIONS)]
            consumer.assign(beginnings)
            ended: set[int] = set()

            def all_read() -> bool:
                for message in consumer.consume(100, 0.2):
                    partition, offset = message.partition(), message.offset()
                    assert partition is not None
                    error = message.error()
                    if error is None and offset is not None:
                        found.append(ReadRecord(partition, offset, message.value() or b""))
                    elif error is not None and error.code() == KafkaError._PARTITION_EOF:
                        ended.add(partition)
                    else:  # a broker that has just started does not know yet what is in remote storage
                        found.clear()
                        ended.clear()
                        consumer.assign(beginnings)
                        break  # what came with the error is read once more
                return len(ended) == PARTITIONS

            wait_until(all_read, f"{ORDERS} is read", _SETTLE_SECONDS, lambda: f"{len(found)} records")
        return sorted(found)

    def log_starts(self) -> list[int]:
        """The earliest offset of each partition."""
        earliest: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
        asked = {TopicPartition(ORDERS, number): earliest for number in range(PARTITIONS)}
        admin = _admin(self.broker)
        return answered(lambda: [told.result(timeout=30).offset for told in admin.list_offsets(asked).values()])

    def local_starts(self) -> list[int]:
        """The base offset of each partition's first local segment."""
        folders = [self.broker.log_dir / f"{ORDERS}-{number}" for number in range(PARTITIONS)]
        return [min(int(file.stem) for file in folder.glob("*.log")) for folder in folders]

    def objects(self) -> set[str]:
        return {str(file.relative_to(self.broker.remote_dir)) for file in self.broker.remote_dir.glob(f"{ORDERS}-*/*")}

    def forget_while_it_runs(self) -> None:
        """Takes all events out of the metadata topic, as retention would. The broker keeps what it read of them."""
        whole = [TopicPartition(METADATA_TOPIC, number, -1) for number in range(METADATA_PARTITIONS)]
        admin = _admin(self.broker)
        answered(lambda: [deleted.result(timeout=30) for deleted in admin.delete_records(whole).values()])

    def forget_while_it_is_stopped(self) -> None:
        """Loses the metadata topic's folders; the broker runs again afterwards, and has moved its log starts."""
        self.broker.stop()
        self._lose_metadata()
        self.broker.start()
        wait_until(lambda: self.log_starts() == self.local_starts(), "the log starts have moved", _SETTLE_SECONDS)

    def forget_caches(self) -> None:
        """Takes the indexes that the stopped broker has cached of remote segments."""
        shutil.rmtree(self.broker.log_dir / "remote-log-index-cache", ignore_errors=True)

    def hold_back(self, properties: Sequence[str]) -> None:
        """For the next start."""
        self._settings_file.write_text(self._settings_text + "".join(f"{line}\n" for line in properties))

    def let_go(self) -> None:
        """The same without these."""
        self._settings_file.write_text(self._settings_text)

    def _lose_metadata(self) -> None:
        for folder in self.broker.log_dir.glob(f"{METADATA_TOPIC}-*"):
            shutil.rmtree(folder)

    @property
    def _settings_file(self) -> Any:
        return self.broker.work_dir / "server.properties"

    @property
    def _settings_text(self) -> str:
        kept = [line for line in self._settings_file.read_text().splitlines() if "metadata.common.client" not in line]
        return "".join(f"{line}\n" for line in kept if "initialization.retry" not in line)


@contextmanager
def forgetful_cluster(jars: KafkaJars) -> Iterator[ForgetfulCluster]:
    """A fresh broker with `orders` copied, and gone from its own disk but for the last records."""
    with KafkaBroker(jars, secure=True, properties=AUTHORIZER) as broker:
        topic = NewTopic(ORDERS, num_partitions=PARTITIONS, replication_factor=1, config=_SETTINGS)
        create_topics(broker.bootstrap_server, topic)
        _produce(broker, "aborted", commit=False)
        _produce(broker, "committed", commit=True)
        _await_tiered(broker)
        yield ForgetfulCluster(broker, ForgetfulCluster(broker, []).read())


def _await_tiered(broker: KafkaBroker) -> None:
    """Returns once each partition has one segment on the disk, and no copy is under way."""
    folders = [broker.log_dir / f"{ORDERS}-{number}" for number in range(PARTITIONS)]
    with RemoteSegments(broker.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

        def is_tiered() -> bool:
            known.refresh()
            return known.counts()["COPY_SEGMENT_STARTED"] == 0 and all(
                len(list(folder.glob("*.log"))) == 1 for folder in folders
            )

        wait_until(is_tiered, f"{ORDERS} is tiered", _SETTLE_SECONDS, lambda: json.dumps(known.counts()))


def _produce(broker: KafkaBroker, name: str, *, commit: bool) -> None:
    """One transaction over all partitions, of bytes that no two records share."""
    producer = Producer(_client(broker) | {"transactional.id": name, "batch.size": 400_000})
    producer.init_transactions(60)
    producer.begin_transaction()
    for number in range(_RECORDS):
        for partition in range(PARTITIONS):
            producer.produce(ORDERS, os.urandom(_RECORD_BYTES), key=f"{name}-{number}", partition=partition)
        producer.flush(30)
    (producer.commit_transaction if commit else producer.abort_transaction)(60)


def _client(broker: KafkaBroker) -> dict[str, str | int | float | bool]:
    return {"bootstrap.servers": broker.bootstrap_server, "log_level": 2}


def _admin(broker: KafkaBroker) -> AdminClient:
    return AdminClient(_client(broker))
