"""Readers that go away, disks that are full, signals and faults: what is unfinished never looks finished."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.command_line import SECONDS, Tieredctl, environment
from tests.metadata_logs import copied, write_events
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Part

TIEREDCTL = f"{sys.executable} -m tieredctl"


@pytest.fixture
def verify(tmp_path: Path) -> str:
    """A command line that finds a loss: of a segment's objects one is left."""
    store, log_dir = tmp_path / "store", tmp_path / "data"
    store.mkdir()
    log_dir.mkdir()
    announced, finished = copied(1, 0, 9)
    write_events(log_dir, announced, finished)
    assert isinstance(announced, RemoteLogSegmentMetadata)
    left = store / layout_named("local").promised_objects(announced)[Part.OFFSET_INDEX]
    left.parent.mkdir()
    left.touch()
    return f"{TIEREDCTL} verify --level listing --layout local --store file:{store} --log-dir {log_dir}"


def in_bash(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "-c", script], capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False
    )


def test_a_loss_sets_the_exit_code_whoever_listens(verify: str) -> None:
    for redirection in ("| true", "2>&1 >/dev/null | true", "2>/dev/full | cat", "2>&- | cat"):
        done = in_bash(f"{verify} {redirection}; exit ${{PIPESTATUS[0]}}")

        assert (done.returncode, "Traceback" in done.stderr) == (4, False), redirection


@pytest.mark.parametrize(
    "words",
    ["--version", *(pytest.param(one, marks=pytest.mark.exhaustive) for one in ("--help", "completions bash"))],
)
def test_a_full_disk_is_a_failure_of_every_command_and_nobody_who_reads_is_not(words: str) -> None:
    full = in_bash(f"{TIEREDCTL} {words} > /dev/full")
    unread = in_bash(f"{TIEREDCTL} {words} | true; exit ${{PIPESTATUS[0]}}")

    assert (full.returncode, "No space left on device" in full.stderr) == (1, True)
    assert (unread.returncode, unread.stderr) == (0, "")


LESS_OFTEN = [pytest.param(one, marks=pytest.mark.exhaustive) for one in (signal.SIGINT, signal.SIGTERM)]


@pytest.mark.parametrize("number", [signal.SIGHUP, *LESS_OFTEN])
def test_an_export_that_is_ended_leaves_nothing(number: signal.Signals, tmp_path: Path) -> None:
    log_dir, folder = tmp_path / "data", tmp_path / "exports"
    log_dir.mkdir()
    folder.mkdir()
    write_events(log_dir, *copied(1, 0, 9))
    program = (
        "import os, sys\n"
        "from tieredctl.cli.main import main\n"
        "from tieredctl.ops.metadata import export as metadata_export\n"
        f"metadata_export.encode_header = lambda header: os.kill(os.getpid(), {int(number)}) or b''\n"
        "main(sys.argv[1:])"
    )

    words = ["metadata", "export", str(folder / "export.jsonl"), "--log-dir", str(log_dir)]
    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False)

    assert (done.returncode, done.stdout) == (130, "")
    assert done.stderr == "tieredctl: Interrupted.\n  Run it again: it starts from the beginning.\n"
    assert list(folder.iterdir()) == []


def test_what_nohup_ignores_stays_ignored() -> None:
    program = "import os, sys; from tieredctl.cli import main; main.run = lambda words: os.kill(os.getpid(), 1) or 0"

    done = in_bash(f"trap '' HUP; {sys.executable} -c '{program}; main.main([])'")

    assert (done.returncode, done.stderr) == (0, "")


def test_a_fault_is_a_sentence_with_its_place(monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl) -> None:
    def broken(*_: object) -> int:
        raise ZeroDivisionError("by \x1b[31mzero")

    monkeypatch.setattr("tieredctl.cli.commands.metadata_partition.metadata_partition", broken)
    outcome = tieredctl("metadata", "partition-of", "Ex-aw3fEQIi3do0H9Y7cKQ", "0")

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert "\x1b" not in outcome.err
    assert outcome.err.count("\n") == 2


@pytest.mark.parametrize("package", ["pyarrow", "typer"])
def test_a_package_that_is_lacking_is_named(package: str, tmp_path: Path) -> None:
    (tmp_path / f"{package}.py").write_text(f"raise ImportError(\"No module named '{package}'\")")
    (tmp_path / "export.parquet").write_bytes(b"PAR1")
    program = f"import sys; sys.path.insert(0, '{tmp_path}'); from tieredctl.cli.main import main; main(sys.argv[1:])"
    words = ["metadata", "segments", "--export", str(tmp_path / "export.parquet")]

    command = [sys.executable, "-c", program, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=SECONDS, check=False)

    assert (done.returncode, done.stdout) == (1, "")
