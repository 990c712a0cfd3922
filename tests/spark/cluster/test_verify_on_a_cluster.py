"""`spark-submit` of the job `verify` to a cluster of several processes, with nothing but the packed environment."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow.parquet as pq
import pytest
import tieredctl_spark.jobs
from tieredctl_spark.finding_rows import read_finding

from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer
from tests.rigs.ports import free_ports
from tests.rigs.spark_cluster import JOB_SECONDS, SparkCluster, SparkJob
from tests.rigs.waiting import wait_until
from tests.spark.damage import REMOTE, damaged
from tieredctl.errors import ExitCode

pytestmark = [pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(1_200)]

JOB = Path(tieredctl_spark.jobs.__file__).with_name("verify.py")
DRIVER_CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


@dataclass(frozen=True)
class Case:
    """A damaged cluster in a store, and how a command is told of both."""

    words: list[str]

    def job(self, output: Path) -> list[str]:
        return [*self.words, "--output", str(output)]

    def local(self) -> Any:
        """What the command line's engine finds there: its document."""
        command = [sys.executable, "-m", "tieredctl", "verify", *self.words, "-o", "json"]
        done = subprocess.run(
            command,
            env=os.environ | DRIVER_CREDENTIALS | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == ExitCode.CORRUPTION, done.stderr
        return json.loads(done.stdout)


def on_files(captured: Path, folder: Path) -> Case:
    cluster = damaged(captured, folder)
    return Case([*words(cluster), "--store", f"file:{cluster / REMOTE}"])


def on_s3(captured: Path, folder: Path, server: ObjectServer, endpoint: str) -> Case:
    """The same in a bucket, whose server is asked at `endpoint`."""
    cluster = damaged(captured, folder)
    bucket, prefix = S3Bucket(server.endpoint), folder.name
    options = bucket.options | {"endpoint": endpoint}
    for path in files_of(cluster / REMOTE):
        bucket.put(f"{prefix}/{path.relative_to(cluster / REMOTE)}", path.read_bytes())
    given = [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]
    return Case([*words(cluster), "--store", f"s3://{BUCKET}/{prefix}", *given])


def words(cluster: Path) -> list[str]:
    return ["--log-dir", str(cluster / "data"), "--layout", "local", "--level", "full"]


class Held:
    """Lets a server's answer about a segment's bytes wait, so that a job stands still in its middle."""

    def __init__(self, proxy: FaultyProxy, first: int) -> None:
        self.is_reached, self._goes_on = Event(), Event()
        proxy.rules.append(Rule(self._wait, "GET", path=".log", first=first))

    def _wait(self, request: Request, server: Server) -> Reply:
        self.is_reached.set()
        self._goes_on.wait(JOB_SECONDS)
        return server(request)

    def release(self) -> None:
        self._goes_on.set()

    def await_middle(self, job: SparkJob) -> None:
        wait_until(
            lambda: self.is_reached.is_set() or job.process.poll() is not None,
            "an executor reads a segment",
            JOB_SECONDS,
        )
        assert self.is_reached.is_set(), job.log()


@contextmanager
def held(server: ObjectServer, first: int = 1) -> Iterator[tuple[str, Held]]:
    """A way to the server, and what holds up the answers from the `first` that concerns a log."""
    with FaultyProxy(server.endpoint) as proxy:
        middle = Held(proxy, first)
        try:
            yield proxy.endpoint, middle
        finally:
            middle.release()


def demand_equal(output: Path, job: SparkJob, local: Any) -> None:
    """The job ended as the command line does: the same code, counts and findings, in the same order."""
    said, _ = job.process.communicate(timeout=JOB_SECONDS)
    assert job.process.returncode == ExitCode.CORRUPTION, said + job.log()
    summary = json.loads(said)["summary"]
    rows = pq.read_table(output / f"findings/run={summary['run']}", partitioning=None).to_pylist()
    found = [read_finding(row).document() for row in rows]
    assert local["summary"].items() <= summary.items()
    assert [(one["code"], one["subject"], one["message"]) for one in found] == [
        (one["code"], one["subject"], one["message"]) for one in local["items"]
    ]


def test_workers_with_nothing_installed_find_what_the_local_engine_finds(
    spark_cluster: SparkCluster, captures: Path, tmp_path: Path
) -> None:
    case, output = on_files(captures / "kafka-3.9.1", tmp_path), tmp_path / "output"

    job = spark_cluster.submitted(JOB, case.job(output), {}, {})

    demand_equal(output, job, case.local())


def test_a_killed_executor_costs_no_result_and_no_secret_is_written_or_shown(
    spark_cluster: SparkCluster, captures: Path, tmp_path: Path, versitygw: ObjectServer
) -> None:
    events, output = tmp_path / "events", tmp_path / "output"
    events.mkdir()
    (port,) = free_ports(1)
    settings = {
        "spark.ui.port": str(port),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.as_uri(),
        "spark.eventLog.compress": "false",
    }
    with held(versitygw, first=5) as (endpoint, middle):
        case = on_s3(captures / "kafka-4.3.1", tmp_path, versitygw, endpoint)

        job = spark_cluster.submitted(JOB, case.job(output), settings, DRIVER_CREDENTIALS)
        middle.await_middle(job)
        shown = shown_by_spark(f"http://127.0.0.1:{port}", spark_cluster)
        (killed, *_) = spark_cluster.executors()
        os.kill(killed, signal.SIGKILL)
        wait_until(lambda: killed not in spark_cluster.executors(), "the executor has ended", JOB_SECONDS)
        middle.release()

        demand_equal(output, job, case.local())
    written = [path for folder in (events, output, spark_cluster.folder / "work") for path in files_of(folder)]
    logged = b"".join(path.read_bytes() for path in files_of(events))
    assert b'"Event":"SparkListenerExecutorRemoved"' in logged
    assert endpoint in shown
    assert SECRET_KEY not in shown
    assert [path for path in written if SECRET_KEY.encode() in path.read_bytes()] == []


def files_of(folder: Path) -> list[Path]:
    """All files below, without the packed environment, which was there before."""
    return [path for path in folder.rglob("*") if path.is_file() and ".whl" not in str(path)]


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
    commands = [line for line in processes.splitlines() if "spark" in line]
    return "\n".join([*map(read, pages), *commands])


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def test_a_killed_job_run_again_ends_with_the_same_results(
    spark_cluster: SparkCluster, captures: Path, tmp_path: Path, versitygw: ObjectServer
) -> None:
    output = tmp_path / "output"
    with held(versitygw, first=5) as (endpoint, middle):
        case = on_s3(captures / "kafka-4.3.1", tmp_path, versitygw, endpoint)
        job = spark_cluster.submitted(JOB, case.job(output), {}, DRIVER_CREDENTIALS)
        middle.await_middle(job)

        job.kill()
        wait_until(lambda: not spark_cluster.executors(), "the cluster has ended the job's executors", JOB_SECONDS)
        middle.release()
        again = spark_cluster.submitted(JOB, case.job(output), {}, DRIVER_CREDENTIALS)

        demand_equal(output, again, case.local())
