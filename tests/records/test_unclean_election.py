"""After an unclean election remote storage has finished copies of what the log lost: consumers do not get it, nor does
whoever reads past the brokers."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic

from tests.records.consumed_records import Row, consumed
from tests.records.kafka_records import rows_of
from tests.rigs.broker import METADATA_PARTITIONS, METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.joining_broker import JoiningBroker
from tests.rigs.remote_segments import COPIED, RemoteSegments
from tests.rigs.topics import create_topics, known_topics
from tests.rigs.waiting import wait_until
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import Isolation, RecordRequest
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records

pytestmark = [pytest.mark.integration, pytest.mark.exhaustive]

TOPIC, SECONDS = "forked", 90
RECORD_BYTES, OF_SEGMENT = 300_000, 3
"""Each record is a batch, and so many fill a segment: histories part where a segment ends."""
SHARED, LOST, ADDED = 4 * OF_SEGMENT, 3 * OF_SEGMENT, 5 * OF_SEGMENT
SETTINGS = {
    "remote.storage.enable": "true",
    "segment.bytes": str(1 << 20),
    "local.retention.bytes": "1",
    "retention.ms": "-1",
    "unclean.leader.election.enable": "true",
}
CONTROLLER = {"broker.session.timeout.ms": "3000", "broker.heartbeat.interval.ms": "500"}


class Forked(NamedTuple):
    """A running cluster whose leader lost the last records of the leader before it, after they were copied."""

    server: str
    store: StorePlace
    copied: dict[str, list[tuple[int, int]]]
    """The offsets of finished copies: before the election, and after it."""

    @property
    def metadata(self) -> MetadataPlace:
        return MetadataPlace(cluster=ClusterPlace(self.server))


@pytest.fixture(scope="module", params=["4.3.1", "3.9.1"])
def forked(request: pytest.FixtureRequest) -> Iterator[Forked]:
    with KafkaBroker(jars_of(request.param), properties=CONTROLLER) as first:
        # It is to be on the one that stays.
        wait_until(lambda: METADATA_TOPIC in known_topics(first.bootstrap_server), "it has metadata topics", SECONDS)
        with JoiningBroker(first) as ahead, JoiningBroker(first, node_id=3) as behind:
            create_topics(
                ",".join(one.bootstrap_server for one in (first, ahead, behind)),
                NewTopic(
                    TOPIC, num_partitions=1, replica_assignment=[[ahead.node_id, behind.node_id]], config=SETTINGS
                ),
            )
            _produce(first, "shared", SHARED)
            _await_copied(first, SHARED - OF_SEGMENT)
            behind.stop()
            _produce(first, "lost", LOST)
            before = _await_copied(first, SHARED + LOST - OF_SEGMENT)
            ahead.kill()
            behind.start()
            wait_until(lambda: _leader(first) == behind.node_id, "the one that is behind leads", SECONDS)
            _produce(first, "added", ADDED)
            after = _await_copied(first, SHARED + ADDED - OF_SEGMENT)
            store = StorePlace(f"file:{first.remote_dir}")
            yield Forked(first.bootstrap_server, store, {"before": before, "after": after})


def _leader(first: KafkaBroker) -> int:
    return int(known_topics(first.bootstrap_server)[TOPIC].partitions[0].leader)


def _produce(first: KafkaBroker, name: str, count: int) -> None:
    producer = Producer({"bootstrap.servers": first.bootstrap_server, "log_level": 2, "acks": "all"})
    for number in range(count):
        key = f"{name}-{number}"
        producer.produce(TOPIC, key.encode() * (RECORD_BYTES // len(key)), key=key, partition=0)
        assert producer.flush(SECONDS) == 0


def _await_copied(first: KafkaBroker, until: int) -> list[tuple[int, int]]:
    """Returns once what lies below an offset is copied, and no copy is under way: the offsets of all that finished."""
    with RemoteSegments(first.bootstrap_server, METADATA_TOPIC, METADATA_PARTITIONS) as known:

        def copies() -> list[tuple[int, int]]:
            known.refresh()
            found = [one for one in known.of_topic(TOPIC) if one.state == COPIED]
            return sorted((one.start_offset, one.end_offset) for one in found)

        def is_copied() -> bool:
            reached = max((end for _, end in copies()), default=-1)
            return reached >= until - 1 and known.counts()["COPY_SEGMENT_STARTED"] == 0

        wait_until(is_copied, f"offsets below {until} are copied", SECONDS, lambda: str(copies()))
        return copies()


def test_the_rows_are_a_consumers_and_none_of_what_the_log_lost(forked: Forked) -> None:
    expected = consumed(forked.server, TOPIC, 0, Isolation.READ_UNCOMMITTED)
    lost = [one for one in forked.copied["before"] if one[0] >= SHARED]
    assert lost
    assert set(lost) <= set(forked.copied["after"])

    for with_local in (False, True):
        rows, end = _read(forked, with_local=with_local)

        assert rows == [row for row in expected if with_local or row[0] < end]
        assert len(rows) >= SHARED + ADDED - OF_SEGMENT
        assert not [row for row in rows if row[3].startswith(b"lost")]


def _read(forked: Forked, *, with_local: bool) -> tuple[list[Row], int]:
    with topic_records(forked.metadata, forked.store, Selection.of(TOPIC), with_local=with_local) as opened:
        (partition,) = opened.partitions
        records = opened.read(partition, RecordRequest())
        rows = [row[:7] for row in rows_of(records)]
        assert (records.findings, records.lost_offsets) == ([], 0)
        return rows, records.next_offset or 0
