"""The data source on a live cluster: the same events as in its log directory, in a batch and as a stream."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import own_topic
from tests.rigs.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.integration]

SECONDS = 60
SEGMENTS, MOST_ROWS = 8, 10
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
    assert len(rows) == 2 * SEGMENTS
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
