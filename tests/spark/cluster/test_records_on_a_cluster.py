"""A topic's records on a cluster of several processes, by the job `backfill` and as a stream: what is killed costs
none."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tieredctl_spark.jobs
from tieredctl_spark.tables.files import read_rows

from tests.records.captured_topics import captured_records
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.rigs.spark_cluster import SparkCluster
from tests.spark.cluster import stream_records
from tests.spark.cluster.submitted_jobs import DRIVER_CREDENTIALS, Store, held, kill_executors, summary_of
from tests.spark.damage import REMOTE
from tieredctl.errors import ExitCode
from tieredctl.records.request import Isolation, RecordRequest

pytestmark = [
    *(pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(2_400)),
    pytest.mark.exhaustive("a standalone cluster"),
]

BACKFILL, STREAM = Path(tieredctl_spark.jobs.__file__).with_name("backfill.py"), Path(stream_records.__file__)
TOPIC, COLUMNS = "orders7", ("partition", "offset", "key", "value")


@pytest.fixture
def expected(kafka_4: Path) -> list[dict[str, Any]]:
    """The rows that the library reads."""
    request = RecordRequest(isolation=Isolation.READ_COMMITTED, columns=COLUMNS)
    with captured_records(kafka_4, TOPIC) as opened:
        return [row for one in opened.partitions for batch in opened.read(one, request) for row in batch.to_pylist()]


def through_killed_executors(
    cluster: SparkCluster, server: ObjectServer, program: Path, words: Callable[[str], list[str]]
) -> dict[str, Any]:
    """Submits a program, and kills all executors while they read: its summary."""
    with held(server, ".log", first=1) as (endpoint, middle):
        job = cluster.submitted(program, words(endpoint), {}, DRIVER_CREDENTIALS)
        middle.await_middle(job)
        kill_executors(cluster)
        middle.release()
        return summary_of(job, ExitCode.CLEAN)


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = table.select(list(COLUMNS)).to_pylist()
    return sorted(rows, key=lambda row: (row["partition"], row["offset"]))


@pytest.fixture
def store(kafka_4: Path, versitygw: ObjectServer) -> Store:
    found = Store(S3Bucket(versitygw.endpoint), "records")
    found.hold(kafka_4 / REMOTE)
    return found


def test_a_backfill_has_each_record_once(
    spark_cluster: SparkCluster,
    kafka_4: Path,
    tmp_path: Path,
    versitygw: ObjectServer,
    store: Store,
    expected: list[dict[str, Any]],
) -> None:
    words = ["--log-dir", str(kafka_4 / "data"), "--layout", "local", "--topic", TOPIC, "--output", str(tmp_path)]

    def given(endpoint: str) -> list[str]:
        return [*words, *store.words(endpoint), "--isolation", "read_committed"]

    summary = through_killed_executors(spark_cluster, versitygw, BACKFILL, given)

    assert rows_of(read_rows(str(tmp_path), "records")) == expected
    assert (summary["records"], summary["lostOffsets"]) == (len(expected), 0)


def test_a_stream_has_each_record_once(
    spark_cluster: SparkCluster,
    kafka_4: Path,
    tmp_path: Path,
    versitygw: ObjectServer,
    store: Store,
    expected: list[dict[str, Any]],
) -> None:
    options = {"log-dir": str(kafka_4 / "data"), "topic": TOPIC, "isolation": "read_committed"}

    def given(endpoint: str) -> list[str]:
        return [json.dumps(options | store.source_options(endpoint)), str(tmp_path)]

    summary = through_killed_executors(spark_cluster, versitygw, STREAM, given)

    assert rows_of(pq.read_table(tmp_path / "rows")) == expected
    assert sum(summary["rows"]) == len(expected)
