"""The pipeline beside three brokers that never rest, while brokers, drivers and workers are killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from tieredctl_spark.tables.files import read_rows
from tieredctl_spark.tables.manifest import Manifest
from tieredctl_spark.tables.table_store import TablesPlace, demand_current

from tests.cli.command_line import Outcome, environment, this_process
from tests.rigs.churn import churning
from tests.rigs.driven_brokers import jars_of
from tests.rigs.small_spark import INTERPRETED, SMALL
from tests.rigs.three_brokers import NODE_IDS, ThreeBrokers, three_brokers
from tests.rigs.waiting import wait_until
from tests.spark.segment_documents import documents_of
from tieredctl.errors import ExitCode
from tieredctl.formats.committed_offsets import CommittedOffsets, CommittedOffsetsForm, encode_committed_offsets

CHURN_SECONDS = int(os.environ.get("TIEREDCTL_PIPELINE_CHURN_SECONDS", "0"))
"""No round is begun after so much time; each way to kill comes once at least."""
pytestmark = [
    *(pytest.mark.spark, pytest.mark.integration, pytest.mark.timeout(CHURN_SECONDS + 1500)),
    pytest.mark.usefixtures("spark"),
]
SECONDS = 300
TOPICS: dict[str, dict[str, str]] = {"quick": {"retention.ms": "20000"}, "steady": {"retention.ms": "3600000"}}
FAULT = "has a fault"
SETTINGS = {"spark.master": "local[2]", "spark.driver.memory": "1g"} | SMALL | INTERPRETED


@dataclass
class MovingPipeline:
    """Tables of a cluster that moves."""

    brokers: ThreeBrokers
    tables: Path

    @property
    def cluster(self) -> tuple[str, ...]:
        return ("--bootstrap-server", self.brokers.bootstrap_servers)

    @property
    def places(self) -> tuple[str, ...]:
        return (*self.cluster, "--store", f"file:{self.brokers.nodes[1].remote_dir}", "--layout", "local")

    @property
    def words(self) -> tuple[str, ...]:
        """Of the command that runs it."""
        return ("pipeline", "run", *self.places, "--tables", str(self.tables), "--list-every", "0s", "-o", "json")

    def run(self) -> None:
        """A run that nothing disturbs, in the session of this process."""
        ended = this_process(*self.words)
        assert ended.out, ended.err
        assert FAULT not in ended.err, ended.err

    def run_while(self, meanwhile: Callable[[subprocess.Popen[str]], object]) -> None:
        """A run in a process and a session of its own, with something that is done to it or to the cluster."""
        conf = [word for name, value in SETTINGS.items() for word in ("--spark-conf", f"{name}={value}")]
        with subprocess.Popen(
            [sys.executable, "-m", "tieredctl", *self.words, *conf],
            env=environment(),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        ) as process:
            doing = threading.Thread(target=meanwhile, args=(process,))
            doing.start()
            try:
                out, err = process.communicate(timeout=SECONDS)
            finally:
                kill_all(process)
                doing.join()
        if process.returncode != -signal.SIGKILL:
            assert out or process.returncode == ExitCode.FAILURE, err
            assert FAULT not in err, err

    @property
    def manifest(self) -> Manifest:
        return demand_current(TablesPlace.given(str(self.tables), {}).open())

    def rows(self, name: str) -> list[dict[str, Any]]:
        own = ("clusterId", "runId", "schemaVersion", "day")
        rows = read_rows(str(self.tables), name).to_pylist()
        return [{column: row[column] for column in row if column not in own} for row in rows]

    def metadata(self, verb: str, as_of: Path) -> list[dict[str, Any]]:
        """What a command says of the metadata as it was at some offsets."""
        answers: list[Outcome] = []

        def is_told() -> bool:
            answers.append(this_process("metadata", verb, *self.cluster, "--as-of", as_of, "-o", "jsonl"))
            return answers[-1].exit_code == ExitCode.CLEAN

        # A broker may be on its way back.
        wait_until(is_told, f"metadata {verb} is told", SECONDS, lambda: answers[-1].err)
        return answers[-1].lines()

    def verified(self) -> set[str]:
        """The codes of what `verify` finds now."""
        return {one["code"] for one in this_process("verify", *self.places, "-o", "json").document()["items"]}

    def graves(self) -> set[tuple[str, str]]:
        """What the tables say is wrong now."""
        found = [row for row in self.rows("findings") if row["resolved"] is None and row["severity"] != "info"]
        return {(row["code"], row["subject"]) for row in found if not row["code"].startswith("topic-config-")}


def kill_all(process: subprocess.Popen[str]) -> None:
    """The driver and all that it started."""
    subprocess.run(["pkill", "-KILL", "-s", str(process.pid)], check=False)


def workers_of(process: subprocess.Popen[str]) -> list[int]:
    """The Python workers of a driver: those that a daemon of its session forked."""
    listed = ["ps", "-ww", "-s", str(process.pid), "-o", "pid=,ppid=,args="]
    found = subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    daemons = dict(line.split()[:2] for line in found.splitlines() if "pyspark.daemon" in line)
    return [int(pid) for pid, parent in daemons.items() if parent in daemons]


def await_or_end(process: subprocess.Popen[str], condition: Callable[[], bool], description: str) -> bool:
    """Whether it came true before the process ended."""
    wait_until(lambda: process.poll() is not None or condition(), description, SECONDS)
    return process.poll() is None


@dataclass
class Kills:
    """The ways in which a run is disturbed."""

    pipeline: MovingPipeline
    broker: Iterator[int] = field(default_factory=lambda: cycle(NODE_IDS[1:]))
    done: list[str] = field(default_factory=list)

    def driver(self, process: subprocess.Popen[str]) -> None:
        """As soon as it has written something."""
        before = self._files()
        if await_or_end(process, lambda: self._files() > before, "a file is written"):
            kill_all(process)
            self.done.append("driver")

    def worker(self, process: subprocess.Popen[str]) -> None:
        if await_or_end(process, lambda: bool(workers_of(process)), "a Python worker works"):
            for one in workers_of(process):
                with suppress(ProcessLookupError):
                    os.kill(one, signal.SIGKILL)
            self.done.append("worker")

    def broker_dies(self, process: subprocess.Popen[str]) -> None:
        """While executors work; and it comes back."""
        node = self.pipeline.brokers.nodes[next(self.broker)]
        await_or_end(process, lambda: bool(workers_of(process)), "a Python worker works")
        node.kill()
        node.start()
        self.done.append("broker")

    def _files(self) -> int:
        return sum(1 for _ in self.pipeline.tables.rglob("*.parquet"))


@pytest.fixture(scope="module")
def brokers() -> Iterator[ThreeBrokers]:
    with three_brokers(jars_of("4.3.1")) as started:
        yield started


def demand_equal(pipeline: MovingPipeline, as_of: Path) -> None:
    """Segments and events are those of the commands at the offsets that the tables name."""
    offsets = {int(number): end - 1 for number, (start, end) in pipeline.manifest.looked.offsets.items() if end > start}
    as_of.write_bytes(encode_committed_offsets(CommittedOffsets(CommittedOffsetsForm.KAFKA, offsets)))
    assert documents_of(pipeline.rows("segments")) == pipeline.metadata("segments", as_of)
    events = [(row["metadataPartition"], row["metadataOffset"]) for row in pipeline.rows("events")]
    formatted = pipeline.metadata("format", as_of)
    assert sorted(events) == sorted((one["metadataPartition"], one["metadataOffset"]) for one in formatted)


def test_tables_say_what_commands_say_whatever_is_killed(brokers: ThreeBrokers, tmp_path: Path) -> None:
    pipeline = MovingPipeline(brokers, tmp_path / "tables")
    kills, seen = Kills(pipeline), set[tuple[str, str]]()
    began = time.monotonic()
    with churning(brokers, TOPICS, seconds_a_leader=3) as churn:
        wait_until(lambda: churn.gone > 0 and churn.moves > 1, "leaders move, and topics go", SECONDS)
        pipeline.run()
        for way in cycle((kills.driver, kills.broker_dies, kills.worker)):
            pipeline.run_while(way)
            demand_equal(pipeline, tmp_path / "offsets")
            seen |= pipeline.graves()
            if len(set(kills.done)) == 3 and time.monotonic() - began > CHURN_SECONDS:
                break
    brokers.await_whole()

    # Retention goes on: what it takes between two looks is in one of them alone.
    before, verified = None, pipeline.verified()
    while before != verified:
        before = verified
        pipeline.run()
        verified = pipeline.verified()

    demand_equal(pipeline, tmp_path / "offsets")
    assert seen <= pipeline.graves()
    assert {row["code"] for row in pipeline.rows("findings") if row["resolved"] is None} == verified
