"""`spark-submit` of the job `backfill` to a cluster of several processes: what is killed costs no record."""

from __future__ import annotations

from pathlib import Path

import pytest
import tieredctl_spark.jobs
from tieredctl_spark.tables.files import read_rows

from tests.records.captured_topics import captured_records
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.rigs.spark_cluster import SparkCluster
from tests.spark.cluster.submitted_jobs import DRIVER_CREDENTIALS, Store, held, kill_executors, summary_of
from tests.spark.damage import REMOTE
from tieredctl.errors import ExitCode
from tieredctl.records.request import Isolation, RecordRequest

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(2_400)]

JOB = Path(tieredctl_spark.jobs.__file__).with_name("backfill.py")
TOPIC, COLUMNS = "orders7", ("partition", "offset", "key", "value")


def test_executors_that_are_killed_cost_no_record(
    spark_cluster: SparkCluster, kafka_4: Path, tmp_path: Path, versitygw: ObjectServer
) -> None:
    store, output = Store(S3Bucket(versitygw.endpoint), "backfill"), tmp_path / "tables"
    store.hold(kafka_4 / REMOTE)
    with captured_records(kafka_4, TOPIC) as opened:
        request = RecordRequest(isolation=Isolation.READ_COMMITTED, columns=COLUMNS)
        expected = [
            row for one in opened.partitions for batch in opened.read(one, request) for row in batch.to_pylist()
        ]
    words = ["--log-dir", str(kafka_4 / "data"), "--layout", "local", "--topic", TOPIC, "--output", str(output)]

    with held(versitygw, ".log", first=1) as (endpoint, middle):
        given = [*words, *store.words(endpoint), "--isolation", "read_committed"]
        job = spark_cluster.submitted(JOB, given, {}, DRIVER_CREDENTIALS)
        middle.await_middle(job)
        kill_executors(spark_cluster)
        middle.release()
        summary = summary_of(job, ExitCode.CLEAN)

    rows = read_rows(str(output), "records").select(list(COLUMNS)).to_pylist()
    assert sorted(rows, key=lambda row: (row["partition"], row["offset"])) == expected
    assert (summary["records"], summary["lostOffsets"]) == (len(expected), 0)
