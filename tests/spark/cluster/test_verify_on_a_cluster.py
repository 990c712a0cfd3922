"""`spark-submit` of the job `verify` to a cluster of several processes, with nothing but the packed environment."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import tieredctl_spark.jobs
from tieredctl_spark.finding_rows import read_finding

from tests.cli.command_line import own_process
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import AZURE_KEY, SECRET_KEY, ObjectServer
from tests.rigs.ports import free_ports
from tests.rigs.spark_cluster import JOB_SECONDS, ROOT, SparkCluster, SparkJob
from tests.rigs.waiting import wait_until
from tests.spark.cluster.submitted_jobs import (
    DRIVER_CREDENTIALS,
    Store,
    bucket_on,
    files_of,
    held,
    kill_executors,
    summary_of,
)
from tests.spark.damage import REMOTE, damaged
from tieredctl.errors import ExitCode

pytestmark = [
    *(pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(2_400)),
    pytest.mark.exhaustive("a standalone cluster"),
]

JOB = Path(tieredctl_spark.jobs.__file__).with_name("verify.py")


@dataclass(frozen=True)
class Case:
    """A cluster in a store, and how a command is told of both."""

    words: list[str]

    def job(self, output: Path) -> list[str]:
        return [*self.words, "--output", str(output)]

    def local(self) -> Any:
        """What the command line's engine finds there: its document."""
        done = own_process("verify", *self.words, "-o", "json", **DRIVER_CREDENTIALS)
        assert done.exit_code == ExitCode.CORRUPTION, done.err
        return done.document()


def words(cluster: Path) -> list[str]:
    return ["--log-dir", str(cluster / "data"), "--layout", "local", "--level", "full"]


def demand_equal(output: Path, job: SparkJob, local: Any) -> dict[str, Any]:
    """The job ended as the command line does: the same code, counts and findings, in the same order. Its summary."""
    summary = summary_of(job, ExitCode.CORRUPTION)
    rows = pq.read_table(output / f"findings/run={summary['run']}", partitioning=None).to_pylist()
    found = [read_finding(row).document() for row in rows]
    assert local["summary"].items() <= summary.items()
    assert [(one["code"], one["subject"], one["message"]) for one in found] == [
        (one["code"], one["subject"], one["message"]) for one in local["items"]
    ]
    return summary


def test_workers_with_nothing_installed_find_what_is_damaged_though_killed_and_show_no_secret(
    spark_cluster: SparkCluster, captures: Path, tmp_path: Path, server: ObjectServer
) -> None:
    cluster, output, events = damaged(captures / "kafka-3.9.1", tmp_path), tmp_path / "output", tmp_path / "events"
    store = Store(bucket_on(server), "damaged")
    store.hold(cluster / REMOTE)
    events.mkdir()
    (port,) = free_ports(1)
    settings = {
        "spark.ui.enabled": "true",
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }

    with held(server, ".log", first=1) as (endpoint, middle):
        through = Case([*words(cluster), *store.words(endpoint)])
        job = spark_cluster.submitted(JOB, through.job(output), settings, DRIVER_CREDENTIALS, sends_archive=True)
        middle.await_middle(job)
        shown = shown_by_spark(f"http://127.0.0.1:{port}", spark_cluster)
        kill_executors(spark_cluster)
        middle.release()
        demand_equal(output, job, Case([*words(cluster), *store.words(server.endpoint)]).local())

    written = [path for one in (events, output, spark_cluster.folder / "work") for path in files_of(one)]
    assert b'"Event":"SparkListenerExecutorRemoved"' in b"".join(path.read_bytes() for path in files_of(events))
    assert endpoint in shown
    for secret in (SECRET_KEY, AZURE_KEY):
        assert secret not in shown
        assert [path for path in written if secret.encode() in path.read_bytes()] == []


def test_runs_into_one_folder_go_on_after_kills_and_find_what_was_damaged_and_mended_since(
    spark_cluster: SparkCluster, captures: Path, tmp_path: Path, versitygw: ObjectServer
) -> None:
    cluster, output, store = captures / "kafka-4.3.1", tmp_path / "output", Store(S3Bucket(versitygw.endpoint), "runs")
    sound, spoilt = cluster / REMOTE, damaged(cluster, tmp_path) / REMOTE
    store.hold(sound)
    case = Case([*words(cluster), *store.words(versitygw.endpoint)])

    # The driver is killed, and the job is run again.
    with held(versitygw, ".log", first=5) as (endpoint, middle):
        through = Case([*words(cluster), *store.words(endpoint)])
        killed = spark_cluster.submitted(JOB, through.job(output), {}, DRIVER_CREDENTIALS)
        middle.await_middle(killed)
        killed.kill()
        wait_until(lambda: not spark_cluster.executors(), "the cluster has ended the job's executors", JOB_SECONDS)
    again = summary_of(spark_cluster.submitted(JOB, case.job(output), {}, DRIVER_CREDENTIALS), ExitCode.CLEAN)

    damages = store.hold(spoilt, instead_of=sound)
    with held(versitygw, ".log", first=1) as (endpoint, middle):
        through = Case([*words(cluster), *store.words(endpoint)])
        job = spark_cluster.submitted(JOB, through.job(output), {}, DRIVER_CREDENTIALS)
        middle.await_middle(job)
        kill_executors(spark_cluster)
        middle.release()
        found = demand_equal(output, job, case.local())

    store.hold(sound, instead_of=spoilt)
    mended = summary_of(spark_cluster.submitted(JOB, case.job(output), {}, DRIVER_CREDENTIALS), ExitCode.CLEAN)

    assert damages == 8
    assert found["resumed"] == found["segments"] - damages
    assert mended["segments"] == again["segments"]
    assert mended["resumed"] == mended["segments"] - damages
    assert mended["records"] == again["records"]


def shown_by_spark(ui: str, cluster: SparkCluster) -> str:
    """What anyone can see while an application runs: its pages, those of the master, and command lines."""
    (application,) = json.loads(read(f"{ui}/api/v1/applications"))
    about = f"{ui}/api/v1/applications/{application['id']}"
    pages = [
        f"{ui}/environment/",
        f"{ui}/jobs/",
        f"{ui}/stages/",
        f"{ui}/SQL/",
        cluster.web_ui,
        f"{cluster.web_ui}/json/",
    ]
    pages += [f"{about}/{name}" for name in ("environment", "executors", "jobs", "stages", "sql?details=true")]
    processes = subprocess.run(["ps", "-A", "-ww", "-o", "args"], capture_output=True, text=True, check=True).stdout
    commands = [line for line in processes.splitlines() if "spark" in line.replace(str(ROOT), "")]
    return "\n".join([*map(read, pages), *commands])


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text
