"""Sessions that tieredctl makes for itself, each in a process of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.rigs.waiting import wait_until
from tests.spark.damage import REMOTE
from tests.spark.same_answers import answer
from tieredctl.errors import ExitCode

pytestmark = pytest.mark.spark

ENVIRONMENT = environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
SLOWLY = """
import sys, time
from pathlib import Path
from tests.metadata_logs import started
from tieredctl.ports.layout import Part
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.storage.memory import MemoryStore
from tieredctl_local.layout import LocalLayout
from tieredctl_spark.engine import SparkEngine

def slow_layout(marker):
    class Slow(LocalLayout):
        def open_segment(self, store, segment):
            marker.touch()
            time.sleep(900)
    return Slow()

asked = [SegmentTask(started(number, 0, 9), {Part.LOG: "x"}, Level.FULL) for number in range(9)]
try:
    list(SparkEngine({"spark.master": "local[2]"}).check_segments(asked, MemoryStore(), slow_layout(Path(sys.argv[1]))))
except KeyboardInterrupt:
    sys.exit(130)
"""


def verify(cluster: Path, *more: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [
        *(sys.executable, "-m", "tieredctl", "verify", "--level", "full", "-o", "json", "--layout", "local"),
        *("--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}"),
    ]
    return subprocess.run(
        [*command, *more], env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=300, check=False
    )


@pytest.mark.exhaustive
def test_the_command_line_says_the_same_with_either_engine(spark: object, captures: Path) -> None:
    cluster = captures / "kafka-3.9.1"
    local, remote = verify(cluster), verify(cluster, "--engine", "spark", "--progress", "none")

    document, here = answer(remote.stdout), answer(local.stdout)
    assert remote.returncode == local.returncode == ExitCode.CLEAN
    assert remote.stderr == ""
    assert json.loads(remote.stdout)["source"]["engine"] == "spark"
    assert document.items() <= here.items()


def test_a_missing_or_old_java_is_one_sentence(captures: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    java = tmp_path / "old" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\" 2019-01-15' >&2\nexit 1\n")
    java.chmod(0o755)

    for home in ("/nowhere/at/all", str(tmp_path / "old")):
        ended = verify(captures / "kafka-4.3.1", "--engine", "spark", JAVA_HOME=home)

        assert (ended.returncode, ended.stdout) == (ExitCode.FAILURE, ""), home
        sentence, hint = ended.stderr.splitlines()
        assert "Spark needs Java 17 or later" in sentence
        assert "--engine local" in hint


@pytest.mark.exhaustive
def test_an_interrupt_ends_the_job_at_once(spark: object, tmp_path: Path) -> None:
    marker = tmp_path / "reading"
    process = subprocess.Popen([sys.executable, "-c", SLOWLY, str(marker)], env=ENVIRONMENT, stderr=subprocess.PIPE)
    with process:
        wait_until(lambda: marker.exists() or process.poll() is not None, "the job reads a segment", 300)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate()

    assert process.returncode == ExitCode.INTERRUPTED, said.decode()
    assert b"Traceback" not in said


def test_an_interrupt_while_java_starts_leaves_neither_a_process_nor_a_file(captures: Path, tmp_path: Path) -> None:
    cluster = captures / "kafka-3.9.1"
    words = ["verify", "--level", "full", "--layout", "local", "--log-dir", str(cluster / "data"), "--engine", "spark"]
    command = [sys.executable, "-m", "tieredctl", *words, "--store", f"file:{cluster / REMOTE}"]
    environment = ENVIRONMENT | {"TMPDIR": str(tmp_path)}

    with subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL) as process:
        wait_until(lambda: processes_with(f"TMPDIR={tmp_path}") - {process.pid} != set(), "Java starts", 120)
        process.send_signal(signal.SIGTERM)
        said = process.communicate()[1].decode()

    assert process.returncode == ExitCode.INTERRUPTED, said
    wait_until(lambda: not processes_with(f"TMPDIR={tmp_path}"), "Java ends", 60)
    assert not list(tmp_path.glob("tieredctl-*"))


def processes_with(variable: str) -> set[int]:
    """The ids of the processes that have a variable in their environment, and run."""
    found: set[int] = set()
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if variable.encode() in (folder / "environ").read_bytes().split(b"\0"):
                found.add(int(folder.name))
    return found
