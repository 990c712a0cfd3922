"""`--spark-conf spark.remote=sc://…`: the work is done by a Spark Connect server, and no Spark starts here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from tests.cli.command_line import environment
from tests.shares import divided
from tests.spark.damage import REMOTE
from tests.spark.same_answers import answer
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError

ENVIRONMENT = environment(PYTHONPATH=os.pathsep.join(filter(None, sys.path)))
NO_JAVA = {"JAVA_HOME": "/nowhere/at/all"}
SCENARIOS = {
    "orphans scan": ("orphans", "scan", "--min-age", "0s"),
    "verify": ("verify", "--level", "full"),
    "the job orphans": ("--min-age", "0s"),
    "the job usage": (),
    "the job verify": ("--level", "full"),
}


def where(cluster: Path) -> list[str]:
    return ["--log-dir", str(cluster / "data"), "--store", f"file:{cluster / REMOTE}", "--layout", "local"]


def answered(cluster: Path, words: Sequence[str], *conf: str, **environment: str) -> subprocess.CompletedProcess[str]:
    spark = ["--engine", "spark", *(word for one in conf for word in ("--spark-conf", one))] if conf else []
    command = [sys.executable, "-m", "tieredctl", *words, *where(cluster), "-o", "json", *spark]
    return subprocess.run(
        command, env=ENVIRONMENT | environment, capture_output=True, text=True, timeout=300, check=False
    )


@cache
def locally(cluster: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """What the local engine answers, asked once."""
    return answered(cluster, words)


def demand_the_command_answers_alike(url: str, cluster: Path, words: Sequence[str]) -> None:
    local = locally(cluster, *words)
    remote = answered(cluster, words, f"spark.remote={url}", "spark.sql.shuffle.partitions=2", **NO_JAVA)

    assert (remote.returncode, "Traceback" in remote.stderr) == (local.returncode, False), remote.stderr
    assert answer(remote.stdout) == answer(local.stdout)


def demand_the_job_counts_alike(url: str, cluster: Path, output: Path, name: str, words: Sequence[str]) -> None:
    command = [sys.executable, "-m", f"tieredctl_spark.jobs.{name}", *where(cluster), *words]
    environment = ENVIRONMENT | NO_JAVA | {"SPARK_REMOTE": url}

    done = subprocess.run(
        [*command, "--output", str(output)], env=environment, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode in (ExitCode.CLEAN, ExitCode.FINDINGS), done.stderr
    summary = json.loads(done.stdout)["summary"]
    noun = ("verify",) if name == "verify" else ("orphans", "scan")
    local = json.loads(locally(cluster, *noun, *words).stdout)["summary"]
    same = summary.keys() & local.keys()
    assert {"objects"} <= same
    assert {name: summary[name] for name in same} == {name: local[name] for name in same}


@pytest.mark.spark
def test_a_connect_server_answers_what_the_local_engine_does(
    connect_server: str, kafka_4: Path, tmp_path: Path
) -> None:
    for scenario in divided([*SCENARIOS]):
        words, job = SCENARIOS[scenario], scenario.removeprefix("the job ")
        if job == scenario:
            demand_the_command_answers_alike(connect_server, kafka_4, words)
        else:
            demand_the_job_counts_alike(connect_server, kafka_4, tmp_path / job, job, words)


@pytest.mark.parametrize("is_listening", [False, True], ids=["nothing there", "mute"])
def test_a_server_that_does_not_answer_is_given_up(kafka_4: Path, is_listening: bool) -> None:
    pytest.importorskip("pyspark")
    soon = "import sys; from tieredctl.cli.main import run; from tieredctl_spark import session"
    soon = f"{soon}; session._ANSWER_SECONDS = 1; sys.exit(run(sys.argv[1:]))"
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not is_listening:
            server.close()
        words = ["verify", *where(kafka_4), "--engine", "spark", "--spark-conf", f"spark.remote=sc://127.0.0.1:{port}"]
        done = subprocess.run(
            [sys.executable, "-c", soon, *words],
            env=ENVIRONMENT,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    assert done.returncode == ExitCode.FAILURE
    assert f"No Spark Connect server answers at 127.0.0.1:{port} within 1 s." in done.stderr
    assert "Traceback" not in done.stderr


def test_what_is_no_address_of_a_connect_server_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    session = pytest.importorskip("tieredctl_spark.session")
    monkeypatch.setattr(session.SparkSession, "getActiveSession", lambda: None)
    for settings in (
        {"spark.remote": "local[2]"},
        {"spark.remote": "sc://h:x"},
        {"spark.remote": "sc://h:1", "spark.master": "local"},
    ):
        with pytest.raises(TieredctlError) as refusal, session.spark_session(settings):
            pass

        assert refusal.value.code is ErrorCode.USAGE, settings


def test_missing_packages_of_spark_connect_are_named(kafka_4: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    (tmp_path / "grpc.py").write_text("raise ImportError\n")
    path = os.pathsep.join([str(tmp_path), ENVIRONMENT["PYTHONPATH"]])

    refused = answered(kafka_4, ["verify", "--level", "full"], "spark.remote=sc://127.0.0.1:9", PYTHONPATH=path)

    assert refused.returncode == ExitCode.FAILURE
    assert "spark.remote needs more packages" in refused.stderr
    assert "pip install 'pyspark[connect]'" in refused.stderr
