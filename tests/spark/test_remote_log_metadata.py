"""The DataFrame of events holds what the plain readers give."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col
from pyspark.sql.types import IntegerType, StringType, StructType
from tieredctl_spark.arrow.event_table import EVENT_TABLE_SCHEMA, event_table
from tieredctl_spark.finding_rows import read_finding
from tieredctl_spark.remote_log_metadata import RemoteLogMetadata
from tieredctl_spark.schemas import spark_schema

from tests.metadata_logs import metadata_batches, started, write_events, write_log
from tests.shares import divided
from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import RecordForm
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA, record_table
from tieredctl.ports.metadata_source import MetadataSource

pytestmark = pytest.mark.spark

ORDER = ("metadataPartition", "metadataOffset")


def read(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("remote_log_metadata").options(**options).load()


def read_findings(spark: SparkSession, **options: str) -> DataFrame:
    return spark.read.format("tiered_findings").options(**options).load()


def source(**options: str) -> RemoteLogMetadata:
    """As Spark makes it, which takes names of options in lower case."""
    return RemoteLogMetadata({name.lower(): value for name, value in options.items()})


def records_of(frame: DataFrame) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = frame.orderBy(*ORDER).toArrow().to_pylist()
    return rows


def findings_of(frame: DataFrame) -> list[Finding]:
    rows = frame.drop(*ORDER).toArrow().to_pylist()
    return sorted(map(read_finding, rows), key=repr)


def plainly_read(source: MetadataSource) -> tuple[list[dict[str, Any]], list[Finding]]:
    stream = EventStream(source)
    tables = [event_table(record_table(stream, partition, chunk)) for partition, chunk in stream.chunks()]
    return pa.concat_tables(tables).to_pylist(), sorted(stream.findings, key=repr)


@pytest.mark.parametrize("capture", divided(["kafka-4.3.1", "kafka-3.9.1", "rlmm-3.4.1", "aiven-zstd-encrypted-4.3.1"]))
def test_a_captured_topic_is_read_as_plainly(spark: SparkSession, captures: Path, capture: str) -> None:
    log_dir = captures / capture / "data"
    records, findings = plainly_read(LogDirectories([log_dir]))

    frame = read(spark, logDir=str(log_dir))

    assert len(records) > 100
    assert records_of(frame) == records
    assert findings_of(read_findings(spark, logDir=str(log_dir))) == findings
    assert frame.rdd.getNumPartitions() == len({record["metadataPartition"] for record in records} | {0, 1, 2, 3})


def test_names_are_kafkas_own_and_times_are_instants(spark: SparkSession, captures: Path) -> None:
    frame = read(spark, logDir=str(captures / "kafka-4.3.1/data"))

    assert frame.columns == [name.removesuffix("Ms") for name in RECORD_TABLE_SCHEMA.names]
    instants = {name for name, kind in frame.dtypes if kind == "timestamp"}
    assert instants == {"timestamp", "maxTimestamp", "eventTimestamp"}
    assert instants == {name.removesuffix("Ms") for name in RECORD_TABLE_SCHEMA.names if name.endswith("Ms")}


def test_ids_keep_their_dashes_and_underscores(spark: SparkSession, captures: Path) -> None:
    log_dir = captures / "kafka-4.3.1/data"
    plain = {row["segmentId"] for row in plainly_read(LogDirectories([log_dir]))[0]}
    odd = {segment_id for segment_id in plain if "-" in segment_id and "_" in segment_id}

    found = read(spark, logDir=str(log_dir)).where(col("segmentId").isin(odd)).select("segmentId").distinct().toArrow()

    assert len(odd) > 3
    assert set(found["segmentId"].to_pylist()) == odd


def test_replicas_are_one_log(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    log_dir = captures / "kafka-4.3.1/data"
    shutil.copytree(log_dir, tmp_path / "other")

    frame = read(spark, logDir=f"{log_dir},{tmp_path / 'other'}")

    assert records_of(frame) == plainly_read(LogDirectories([log_dir]))[0]


def test_an_export_is_a_source_too(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    source = LogDirectories([captures / "kafka-4.3.1/data"])
    export_metadata(EventStream(source), tmp_path / "topic.parquet", force=False)

    assert records_of(read(spark, export=str(tmp_path / "topic.parquet"))) == plainly_read(source)[0]


def test_what_is_odd_has_a_table_of_its_own(spark: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path, started(1, 0, 9), b"\x09no event", None, started(2, 10, 19, form=RecordForm.KIP_405))
    write_log(tmp_path, 7, metadata_batches([started(3, 0, 9)], first_offset=40), first_offset=40)
    (tmp_path / f"__remote_log_metadata-3.{'0' * 32}-future").mkdir()
    damaged = write_log(tmp_path, 9, metadata_batches([started(4, 0, 9), started(5, 10, 19), started(6, 20, 29)]))
    data = bytearray(damaged.read_bytes())
    data[len(data) // 2] ^= 1
    damaged.write_bytes(data)
    records, findings = plainly_read(LogDirectories([tmp_path]))

    found = read_findings(spark, logDir=str(tmp_path))

    assert {finding.code for finding in findings} == {
        "event-undecodable",
        "metadata-truncated",
        "folder-passed-over",
        "batch-corrupt",
        "metadata-partition-missing",
    }
    assert findings_of(found) == findings
    assert records_of(read(spark, logDir=str(tmp_path))) == records
    undecodable = found.where("code = 'event-undecodable'").select(*ORDER, "evidence").toArrow()
    assert undecodable.num_rows == 2
    assert {json.loads(evidence)["metadataOffset"] for evidence in undecodable["evidence"].to_pylist()} == {1, 2}
    assert undecodable["metadataOffset"].to_pylist() == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "There is nothing to read metadata from: give log-dir, bootstrap-server or export."),
        ({"logDir": "/a", "export": "/b"}, "exclude each other."),
        ({"log-dir": "/nowhere/at/all"}, "There is no /nowhere/at/all."),
        ({"bootstrap-server": "127.0.0.1:1"}, "127.0.0.1:1 cannot be reached: connection refused."),
        ({"command-config": "/client.properties"}, "command-config is for bootstrap-server."),
        ({"logDir": "/a", "logdirs": "/b"}, "remote_log_metadata has no option 'logdirs'; its options are log-dir, "),
        ({"logDir": "/a", "logDir.name": "/b"}, "remote_log_metadata has no option 'logdir.name'"),
        ({"logDir": "/a", "max-rows-per-batch": "9"}, "has no option 'max-rows-per-batch'"),
    ],
)
def test_a_source_that_cannot_be_read_says_why(options: dict[str, str], said: str) -> None:
    with pytest.raises(TieredctlError, match=re.escape(said)):
        source(**options).reader(spark_schema(EVENT_TABLE_SCHEMA)).partitions()


def test_spark_says_so_without_a_traceback(spark: SparkSession) -> None:
    with pytest.raises(PySparkException, match=re.escape("There is no /nowhere/at/all.")) as raised:
        read(spark, logDir="/nowhere/at/all").count()

    assert "Traceback" not in str(raised.value)


def test_what_cannot_be_read_on_an_executor_is_said_without_a_traceback(spark: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path, *(started(number, number, number) for number in range(100)))
    export = tmp_path / "topic.jsonl"
    export_metadata(EventStream(LogDirectories([tmp_path])), export, force=False)
    export.write_bytes(export.read_bytes()[:-9])

    with pytest.raises(PySparkException, match="it is cut short") as raised:
        read(spark, export=str(export)).count()

    assert "Traceback" not in str(raised.value)


def test_a_given_schema_names_the_columns_that_are_wanted(spark: SparkSession, captures: Path) -> None:
    log_dir = captures / "kafka-4.3.1/data"
    epochs = "segmentLeaderEpochs array<struct<leaderEpoch: int, offset: bigint>>"

    frame = spark.read.format("remote_log_metadata").schema(f"{epochs}, topic string, metadataOffset bigint")
    rows = frame.load(logDir=str(log_dir)).toArrow()

    plain = pa.Table.from_pylist(plainly_read(LogDirectories([log_dir]))[0])
    wanted = plain.select(["segmentLeaderEpochs", "topic", "metadataOffset"])
    assert rows.column_names == wanted.column_names
    assert sorted(rows.to_pylist(), key=repr) == sorted(wanted.to_pylist(), key=repr)


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            StructType().add("topik", StringType()),
            "remote_log_metadata has no column 'topik'; its columns are metadataPartition, ",
        ),
        (StructType().add("topic", IntegerType()), "The column topic of remote_log_metadata is string, not int."),
    ],
)
def test_a_schema_of_other_columns_is_refused(tmp_path: Path, schema: StructType, said: str) -> None:
    write_events(tmp_path, started(1, 0, 9))

    with pytest.raises(TieredctlError, match=re.escape(said)):
        source(logDir=str(tmp_path)).reader(schema)


@pytest.fixture
def pushing_filters(spark: SparkSession) -> Iterator[None]:
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    yield
    spark.conf.unset("spark.sql.python.filterPushdown.enabled")


@pytest.mark.usefixtures("pushing_filters")
def test_filters_of_one_query_do_not_reach_another(spark: SparkSession, captures: Path) -> None:
    frame = read(spark, logDir=str(captures / "kafka-4.3.1/data"))
    first, second = frame.where("metadataPartition = 0"), frame.where("metadataPartition = 1")

    assert (first.count(), second.count()) == (398, 60)
    assert first.union(second).count() == 398 + 60
    assert (first.count(), frame.count()) == (398, 680)


@pytest.mark.parametrize(
    ("options", "condition"),
    [
        ({"metadata-partition": "1"}, "metadataPartition = 1"),
        ({"topic": "orders7"}, "topic = 'orders7'"),
        ({"topic": "orders7", "partition": "1"}, "topic = 'orders7' and partition = 1"),
        ({"topicId": "AAAAAAAAAAAAAAAAAAAAAA"}, "false"),
    ],
)
def test_options_select_what_is_read(
    spark: SparkSession, captures: Path, options: dict[str, str], condition: str
) -> None:
    log_dir = str(captures / "kafka-4.3.1/data")

    found = records_of(read(spark, logDir=log_dir, **options))

    assert found == records_of(read(spark, logDir=log_dir).where(condition))


def test_findings_are_given_whatever_is_selected(spark: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path, started(1, 0, 9), b"\x09no event")

    rows = read_findings(spark, logDir=str(tmp_path), topic="another").toArrow().to_pylist()

    assert [row["code"] for row in rows] == ["event-undecodable"]
    assert not records_of(read(spark, logDir=str(tmp_path), topic="another"))


def test_an_empty_topic_is_an_answer(spark: SparkSession, tmp_path: Path) -> None:
    write_log(tmp_path, 0, ())
    empty: Sequence[object] = []

    assert records_of(read(spark, logDir=str(tmp_path))) == empty
