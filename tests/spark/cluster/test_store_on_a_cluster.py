"""`spark-submit` of the jobs about a whole store, `orphans` and `usage`: a live cluster's, in a bucket."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tieredctl_spark.jobs
from tieredctl_spark.verdict_rows import verdict_document

from tests.cli.command_line import own_process
from tests.rigs.broker import KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.object_servers import ObjectServer
from tests.rigs.spark_cluster import SparkCluster
from tests.spark.cluster.submitted_jobs import (
    DRIVER_CREDENTIALS,
    LISTINGS,
    Store,
    bucket_on,
    held,
    kill_executors,
    summary_of,
)
from tests.spark.deleted_segments import deleted_segments
from tieredctl.errors import ExitCode
from tieredctl.layouts.registry import layout_named
from tieredctl.ports.layout import Part
from tieredctl.wiring.places import MetadataPlace

pytestmark = [
    *(pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(2_400)),
    pytest.mark.exhaustive("a standalone cluster"),
]

JOBS = Path(tieredctl_spark.jobs.__file__).parent
LAYOUT = layout_named("local")
STRAYS = 5


@dataclass(frozen=True)
class LiveStore:
    """A running broker's objects in a bucket, among them some that nobody owns."""

    broker: KafkaBroker
    store: Store

    def words(self, endpoint: str) -> list[str]:
        return ["--bootstrap-server", self.broker.bootstrap_server, "--layout", "local", *self.store.words(endpoint)]

    def scanned(self, endpoint: str) -> Any:
        """What the command line's engine finds there."""
        words = [*self.words(endpoint), "--min-age", "0s", "-o", "json"]
        done = own_process("orphans", "scan", *words, **DRIVER_CREDENTIALS)
        assert done.exit_code == ExitCode.FINDINGS, done.err
        return done.document()


@pytest.fixture(scope="module")
def live(kafka_3: DrivenBroker, server: ObjectServer) -> LiveStore:
    bucket, folder = bucket_on(server), kafka_3.broker.remote_dir
    Store(bucket, "live").hold(folder)
    deleted = deleted_segments(MetadataPlace((kafka_3.broker.log_dir,)))
    for one in deleted[:STRAYS]:
        bucket.put(f"live/{LAYOUT.promised_objects(one)[Part.LOG]}", b"put back by whom?")
    return LiveStore(kafka_3.broker, Store(bucket, "live"))


@pytest.mark.parametrize("name", ["orphans", "usage"])
def test_executors_that_are_killed_cost_no_row(
    spark_cluster: SparkCluster, live: LiveStore, server: ObjectServer, tmp_path: Path, name: str
) -> None:
    output, options = tmp_path / "output", ["--min-age", "0s"] if name == "orphans" else []
    # The driver lists first, to find ranges of keys.
    with held(server, LISTINGS[live.store.bucket.scheme], first=2) as (endpoint, middle):
        words = [*live.words(endpoint), *options, "--output", str(output)]
        job = spark_cluster.submitted(JOBS / f"{name}.py", words, {}, DRIVER_CREDENTIALS)
        middle.await_middle(job)
        kill_executors(spark_cluster)
        middle.release()
        summary = summary_of(job, ExitCode.FINDINGS if name == "orphans" else ExitCode.CLEAN)

    local = live.scanned(server.endpoint)
    assert (summary["objects"], summary["bytes"]) == (local["summary"]["objects"], local["summary"]["bytes"])
    if name == "orphans":
        found = [verdict_document(row) for row in pq.read_table(output / "candidates").to_pylist()]
        orphans = [one for one in local["items"] if one["status"] == "orphan"]
        assert len(orphans) >= STRAYS
        assert sorted(found, key=itemgetter("key")) == sorted(orphans, key=itemgetter("key"))
    else:
        rows = pq.read_table(output / "usage").to_pylist()
        by_partition = Counter[tuple[str, int]]()
        for row in rows:
            by_partition[row["topicId"], row["partition"]] += row["objects"]
        assert by_partition == Counter((one["topicId"], one["partition"]) for one in local["items"])
        assert 1 in {row["brokerId"] for row in rows} <= {1, None}
