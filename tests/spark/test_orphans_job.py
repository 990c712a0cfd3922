"""The job `orphans`: it marks what the local engine calls orphaned, and of its mark a plan is made."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tieredctl_spark.jobs import orphans as job

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import (
    AGED,
    CAPTURE,
    CLUSTER_ID,
    ENOUGH,
    CrashedClusterOnDisk,
    crashed_cluster_on_disk,
    planned_keys,
    put,
)
from tieredctl.cli.main import run as run_command_line
from tieredctl.errors import ExitCode
from tieredctl.ops.orphans.verdict_rows import verdict_document

pytestmark = pytest.mark.spark

NOT_UTF_8 = "tiered/orders33-G4i52LJdRBel-FDnehx_Kw/0/\udcff.log"


@pytest.fixture
def tieredctl(capsys: pytest.CaptureFixture[str]) -> Tieredctl:
    def run_words(*words: str | Path) -> Outcome:
        exit_code = run_command_line([str(word) for word in words])
        return Outcome(exit_code, *capsys.readouterr())

    return run_words


@pytest.fixture
def cluster(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> CrashedClusterOnDisk:
    """A crashed cluster whose store may be changed, with an object whose name is not UTF-8."""
    copied = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    put(copied, NOT_UTF_8)
    return copied


def run(cluster: CrashedClusterOnDisk, output: Path, log_dir: Path | None = None) -> int:
    where = ("--store", f"file:{cluster.bucket}", "--layout", "aiven", "--output", str(output))
    return job.main([*where, "--log-dir", str(log_dir or cluster.log_dir), "--min-age", "1h"])


def summary_in(output: Path) -> Mapping[str, Any]:
    found = output / "summary.json"
    text = found.read_text() if found.is_file() else next(found.glob("part-*")).read_text()
    document: Mapping[str, Any] = json.loads(text)
    return document


@pytest.mark.usefixtures("spark")
def test_a_mark_is_what_a_scan_finds_until_another_begins(
    cluster: CrashedClusterOnDisk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = tmp_path / "mark"

    code = run(cluster, output)

    said = json.loads(capsys.readouterr().out)
    local = cluster.scan("--min-age", "1h", "-o", "json").document()
    orphans = [one for one in local["items"] if one["status"] == "orphan"]
    candidates = [verdict_document(row) for row in pq.read_table(output / "candidates").to_pylist()]
    assert code == ExitCode.FINDINGS
    assert sorted(candidates, key=lambda one: one["key"]) == orphans
    assert summary_in(output) == said
    assert said["source"]["clusterId"] == CLUSTER_ID
    for name in ("objects", "bytes", "status", "causes", "storageClasses", "complete", "gone"):
        assert said["summary"][name] == local["summary"][name]
    assert said["summary"]["candidates"] == len(orphans) == local["summary"]["status"]["orphan"]["objects"]

    cluster.plan(*AGED, *ENOUGH)
    expected = planned_keys(cluster.plan_file)
    planned = cluster.plan(*AGED, *ENOUGH, "--force", "--from", output)
    assert planned.exit_code == ExitCode.CLEAN, planned.err
    assert planned_keys(cluster.plan_file) == expected

    # From its first moment on, another run takes the mark back that it is about to replace.
    assert run(cluster, output, tmp_path / "nowhere") == ExitCode.USAGE
    refused = cluster.plan(*AGED, *ENOUGH, "--force", "--from", output)
    assert refused.exit_code == ExitCode.USAGE
    assert "not finished" in refused.err
