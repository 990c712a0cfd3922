"""Data sources on a live cluster: the same events as in its log directory, in a batch and as a stream; and a stream of
records, of which a consumer gets the same."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.cimpl import NewTopic
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tests.records.consumed_records import consumed
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import own_topic
from tests.rigs.topics import create_topics
from tests.rigs.waiting import wait_until
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.ports.cluster import OffsetSpec
from tieredctl.records.request import Isolation

pytestmark = [pytest.mark.spark, pytest.mark.integration]

SECONDS = 180
SEGMENTS, MOST_ROWS = 8, 10
STREAMED, RECORDS, PARTITIONS = "streamed", 150, 2
TIERED = {"remote_storage_enable": "true", "retention_ms": "-1", "local_retention_bytes": "1"}


@pytest.fixture(scope="module")
def broker() -> Iterator[KafkaBroker]:
    """A broker that has copied some segments."""
    with KafkaBroker(jars_of("3.9.1"), secure=True) as started, own_topic(started, "orders", **TIERED) as topic:
        topic.write(SEGMENTS + 1)
        wait_until(lambda: len(topic.copied()) == SEGMENTS, "closed segments are tiered", SECONDS)
        yield started


@pytest.fixture
def client_properties(broker: KafkaBroker, tmp_path: Path) -> Path:
    file = tmp_path / "client.properties"
    file.write_text(
        "security.protocol=SASL_SSL\nsasl.mechanism=PLAIN\n"
        "sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required "
        f'username="{broker.secure_listeners.username}" password="{broker.secure_listeners.password}";\n'
        f"ssl.truststore.type=PEM\nssl.truststore.location={broker.secure_listeners.certificate}\n"
    )
    return file


@pytest.fixture
def logged(spark: SparkSession, broker: KafkaBroker) -> list[str]:
    """The rows of the broker's log directory."""
    rows = spark.read.format("remote_log_metadata").load(**{"log-dir": str(broker.log_dir)}).toArrow().to_pylist()
    assert len(rows) >= 2 * SEGMENTS
    return sorted(map(repr, rows))


@pytest.fixture
def in_a_table(spark: SparkSession, tmp_path: Path) -> Iterator[Path]:
    yield tmp_path / "table"
    for query in spark.streams.active:
        query.stop()


def test_a_live_topic_is_read_with_client_properties_of_a_file(
    spark: SparkSession, broker: KafkaBroker, client_properties: Path, logged: Sequence[str]
) -> None:
    live = {"bootstrap-server": broker.secure_listeners.sasl_ssl, "command-config": str(client_properties)}

    rows = spark.read.format("remote_log_metadata").options(**live).load().toArrow().to_pylist()

    assert sorted(map(repr, rows)) == logged


def test_a_live_topic_becomes_a_table_batch_by_batch(
    spark: SparkSession, broker: KafkaBroker, in_a_table: Path, logged: Sequence[str]
) -> None:
    live = {"bootstrapServer": broker.bootstrap_server, "maxRowsPerBatch": str(MOST_ROWS)}
    frame = spark.readStream.format("remote_log_metadata").options(**live).load()
    table = frame.writeStream.format("parquet").option("checkpointLocation", str(in_a_table.parent / "checkpoint"))

    query = table.trigger(availableNow=True).start(str(in_a_table))
    query.awaitTermination()

    assert max(progress.numInputRows for progress in query.recentProgress) == MOST_ROWS
    rows = spark.read.schema(frame.schema).parquet(str(in_a_table)).toArrow().to_pylist()
    assert sorted(map(repr, rows)) == logged


def write_records(broker: KafkaBroker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_server, "log_level": 0, "batch.num.messages": 10})
    for number in range(count):
        headers: list[tuple[str, str | bytes | None]] = [("n", str(number)), ("n", None)]
        producer.produce(STREAMED, bytes(500), b"%d" % number, number % PARTITIONS, headers=headers)
    producer.flush(SECONDS)


def copied_ends(broker: KafkaBroker) -> list[int]:
    """The offset after the last one in remote storage, by partition."""
    with closing(LiveCluster(broker.bootstrap_server)) as cluster:
        found = cluster.list_offsets(cluster.topic(STREAMED), OffsetSpec.LATEST_TIERED)
    return [-1 if one.offset is None else one.offset + 1 for one in found.values()]


def reached(query: StreamingQuery) -> list[int]:
    """Up to where a query has written, by partition."""
    assert query.exception() is None
    last = query.lastProgress
    offset = None if last is None else last.sources[0].endOffset
    return [] if not offset else list(json.loads(offset)["nextOffsets"].values())


def test_a_stream_has_the_records_of_a_consumer_while_segments_are_copied_and_across_a_restart(
    spark: SparkSession, broker: KafkaBroker, in_a_table: Path
) -> None:
    config = TIERED | {"segment_bytes": "20000"}
    create_topics(
        broker.bootstrap_server,
        NewTopic(STREAMED, PARTITIONS, 1, config={name.replace("_", "."): to for name, to in config.items()}),
    )
    given = {"bootstrapServer": broker.bootstrap_server, "store": f"file:{broker.remote_dir}", "topic": STREAMED}

    def started() -> StreamingQuery:
        frame = spark.readStream.format("tiered_log").options(**given, maxOffsetsPerTrigger="40").load()
        writer = frame.writeStream.option("checkpointLocation", str(in_a_table.parent / "checkpoint"))
        return writer.start(str(in_a_table))

    write_records(broker, RECORDS)
    wait_until(lambda: min(copied_ends(broker)) > 0, "both partitions have segments in remote storage", SECONDS)
    first = started()
    write_records(broker, RECORDS)
    wait_until(lambda: sum(reached(first)) > 40, "two batches are written", SECONDS)
    first.stop()
    before = reached(first)
    write_records(broker, RECORDS)
    wait_until(lambda: sum(copied_ends(broker)) > sum(before), "more segments are in remote storage", SECONDS)
    ends = copied_ends(broker)
    second = started()
    wait_until(lambda: sum(reached(second)) >= sum(ends), "the stream has read them", SECONDS)
    second.stop()

    rows = spark.read.parquet(str(in_a_table)).orderBy("offset").toArrow().to_pylist()
    for number, end in enumerate(ends):
        found = [
            (row["offset"], row["key"], row["value"], tuple((one["key"], one["value"]) for one in row["headers"]))
            for row in rows
            if row["partition"] == number
        ]
        whole = consumed(broker.bootstrap_server, STREAMED, number, Isolation.READ_UNCOMMITTED)
        expected = [(row[0], row[3], row[4], row[5]) for row in whole]
        assert found == expected[: len(found)]
        assert end <= len(found) < len(expected)
