"""Files that are no files, may not be read or may not be written: nothing hangs, nothing is lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command_line import Outcome, Tieredctl, environment
from tests.metadata_logs import copied, write_events

# Root reads everything, but for what it has no capability to.
_UNPRIVILEGED = ("setpriv", "--bounding-set=-all", "--inh-caps=-all") if os.geteuid() == 0 else ()


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with one segment of t-0."""
    folder = tmp_path / "data"
    folder.mkdir()
    write_events(folder, *copied(1, 0, 9))
    return folder


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A pipe that nobody writes to."""
    path = tmp_path / "00000000000000000000.log"
    os.mkfifo(path)
    return path


def unprivileged(*words: str | Path) -> Outcome:
    """Runs tieredctl as a user whom permissions stop."""
    command = [*_UNPRIVILEGED, sys.executable, "-m", "tieredctl", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), timeout=60, check=False)
    return Outcome(done.returncode, done.stdout, done.stderr)


def test_a_pipe_is_not_waited_for(pipe: Path, tieredctl: Tieredctl, log_dir: Path) -> None:
    for line in ("store inspect", "store inspect --kind log", "snapshot inspect", "snapshot ls", "snapshot verify"):
        assert tieredctl(*line.split(), pipe)[:2] == (2, ""), line
    assert tieredctl("metadata", "segments", "--export", pipe).exit_code == 1
    folder = log_dir / "__remote_log_metadata-1"
    folder.mkdir()
    pipe.rename(folder / pipe.name)
    assert tieredctl("metadata", "segments", "--log-dir", log_dir)[:2] == (1, "")


def test_a_device_is_not_read_to_an_end_that_it_lacks(tieredctl: Tieredctl) -> None:
    for line in (
        "store inspect /dev/zero --kind log",
        "metadata stats --bootstrap-server h:1 --command-config /dev/zero",
        "doctor config /dev/zero",
    ):
        assert tieredctl(*line.split()).exit_code == 2, line


def test_a_terabyte_of_nothing_is_not_read(tmp_path: Path, tieredctl: Tieredctl) -> None:
    for name in ("00000000000000000000.log", "00000000000000000100-0000000002.checkpoint"):
        path = tmp_path / name.partition(".")[2] / name
        path.parent.mkdir()
        path.touch()
        os.truncate(path, 1 << 40)
        for line, code in (("store inspect", 1), ("snapshot inspect", 1), ("snapshot verify", 5)):
            outcome = tieredctl(*line.split(), path)

            assert outcome.exit_code == code, (line, name)
            assert "has 1.0 TiB, far more than a file of its kind" in outcome.out + outcome.err, (line, name)


def test_what_may_not_be_read_is_not_passed_over(log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    partition, (log,) = log_dir / "t-0", log_dir.rglob("*.log")
    partition.mkdir()
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    of_store = ("--store", f"file:{tmp_path}/store", "--layout", "local")
    for subject, words in (
        (log_dir, ("metadata", "segments", "--log-dir", log_dir)),
        (log_dir, ("store", "check", log_dir)),
        (log, ("store", "inspect", log)),
        (partition, ("verify", "--log-dir", log_dir, *of_store)),
    ):
        subject.chmod(0)
        outcome = unprivileged(*words)
        subject.chmod(0o755)

        assert (outcome.exit_code, outcome.out) == (1, ""), words
        assert " may not be read" in outcome.err, words


def test_a_pipe_or_a_device_is_never_replaced(log_dir: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    path = tmp_path / "pipe.jsonl"
    os.mkfifo(path)

    for words in (("export", path, "--force"), ("segments", "--metrics-file", path)):
        assert tieredctl("metadata", *words, "--log-dir", log_dir).exit_code == 1, words
        assert stat.S_ISFIFO(path.stat().st_mode), words


def test_what_a_link_leads_to_is_replaced_and_the_link_stays(
    log_dir: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "elsewhere").mkdir()
    link, led_to = tmp_path / "link.jsonl", tmp_path / "elsewhere" / "export.jsonl"
    link.symlink_to(led_to)

    outcome = tieredctl("metadata", "export", link, "--log-dir", log_dir, "--quiet")

    assert outcome.exit_code == 0
    assert link.is_symlink()
    assert tieredctl("metadata", "segments", "--export", led_to).exit_code == 0


def test_a_folder_without_write_rights_stays_as_it_is(log_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "read-only"
    folder.mkdir()
    folder.chmod(0o555)

    outcome = unprivileged("metadata", "export", folder / "export.jsonl", "--log-dir", log_dir)

    folder.chmod(0o755)
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert list(folder.iterdir()) == []


def test_a_parquet_file_of_somebody_elses_is_reported_as_not_an_export(tmp_path: Path, tieredctl: Tieredctl) -> None:
    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)

    assert tieredctl("metadata", "segments", "--export", path)[:2] == (2, "")
