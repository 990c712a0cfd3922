"""`--metrics-file`: text that every collector reads, of each command that has it."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.cli.openmetrics import Sample, read_metrics
from tieredctl.errors import ExitCode
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.process.metrics_text import metrics_text

METADATA, STORE = ("--log-dir", "DATA"), ("--store", "STORE")
COMMANDS: Mapping[str, Sequence[str]] = {
    "metadata segments": METADATA,
    "metadata stuck": (*METADATA, "--older-than", "0s"),
    "metadata stats": METADATA,
    "remote du": STORE,
    "verify": (*METADATA, *STORE),
    "orphans scan": (*METADATA, *STORE, "--min-age", "0s"),
    "store check": ("DATA",),
    "doctor config": ("SERVER",),
}


@pytest.fixture
def cluster(captures: Path, tmp_path: Path) -> Path:
    shutil.copytree(captures / "kafka-4.3.1", tmp_path / "cluster")
    (tmp_path / "cluster" / "server.properties").write_text("remote.log.storage.system.enable=ture\n")
    return tmp_path / "cluster"


def measured(tieredctl: Tieredctl, cluster: Path, command: str) -> tuple[int, list[Sample]]:
    """Exit code and metrics of a command."""
    store, metrics = cluster / "remote" / "kafka-tiered-storage", cluster / "metrics.prom"
    files = {"DATA": cluster / "data", "STORE": f"file:{store}", "SERVER": cluster / "server.properties"}
    words = [str(files.get(word, word)) for word in COMMANDS[command]]
    metrics.unlink(missing_ok=True)
    outcome = tieredctl(*command.split(), *words, "--metrics-file", metrics, "--quiet")
    return outcome.exit_code, read_metrics(metrics.read_text())


def test_the_metrics_of_a_command_are_read_by_a_strict_parser(tieredctl: Tieredctl, cluster: Path) -> None:
    for is_damaged in (False, True):
        if is_damaged:
            for log in (cluster / "remote").rglob("*.log"):
                log.unlink()
            with next((cluster / "data" / "__remote_log_metadata-0").glob("*.log")).open("r+b") as file:
                file.seek(30)
                file.write(b"\xff\xff\xff")
        for command in COMMANDS:
            exit_code, samples = measured(tieredctl, cluster, command)

            assert {dict(sample.labels)["command"] for sample in samples} == {command}
            exit_codes = [sample.value for sample in samples if sample.family == "tieredctl_exit_code"]
            assert exit_codes == [exit_code], (command, is_damaged)


def test_a_scan_has_objects_and_bytes_by_status_and_cause(tieredctl: Tieredctl, cluster: Path) -> None:
    stray = cluster / "remote" / "kafka-tiered-storage" / "stray"
    stray.write_bytes(b"123")

    _, samples = measured(tieredctl, cluster, "orphans scan")

    found = {(sample.family, *sorted(dict(sample.labels).items())): sample.value for sample in samples}
    scan = ("command", "orphans scan")
    assert found["tieredctl_objects_by_status", scan, ("status", "unknown")] == 1
    assert found["tieredctl_bytes_by_status", scan, ("status", "unknown")] == 3
    assert found["tieredctl_objects_by_cause", ("cause", "topic-gone"), scan] == 0
    assert found["tieredctl_objects_by_status", scan, ("status", "owned")] > 0


def test_whatever_a_summary_has_the_text_is_sound() -> None:
    finding = Finding(FindingCode.BATCH_CORRUPT, "x", "y", {})
    odd = {"nested": {"a": 1, "b-c": 2, "d": None, "e": {"f": 1}}, "list": [1], "text": "1"}
    summaries: list[dict[str, Any]] = [
        {"findings": 3, "exitCode": 1, "lastRunTimestampSeconds": 2},
        {"n": float("nan"), "i": float("inf"), "small": 1e-9, "big": 1 << 70, "yes": True},
        {**odd, "with space": 1, "Ünlaut": 1},
        {"status": {'a"\\\n': {"objects": 1}}, "causes": {}},
    ]
    for summary in summaries:
        samples = read_metrics(metrics_text('a "command"\\\n', summary, [finding, finding], ExitCode.FINDINGS))

        assert {dict(sample.labels)["command"] for sample in samples} == {'a "command"\\\n'}, summary
        assert [sample.value for sample in samples if sample.family == "tieredctl_findings"] == [2], summary


def test_a_whole_number_is_written_as_one() -> None:
    for value, written in (
        (115, "115"),
        (0, "0"),
        (-2.0, "-2"),
        (1_790_012_345, "1790012345"),
        (True, "1"),
        (0.25, "0.25"),
        (1 << 70, "1.1805916207174113e+21"),
        (float("inf"), "+Inf"),
    ):
        text = metrics_text("x 1.0", {"objects": value, "status": {"odd 1.0": {"bytes": 3}}}, [], ExitCode.CLEAN)

        assert f'tieredctl_objects{{command="x 1.0"}} {written}\n' in text
        assert 'status="odd 1.0"} 3\n' in text
        assert re.search(r"^tieredctl_last_run_timestamp_seconds.* \d{10}$", text, re.MULTILINE)
        assert read_metrics(text)
