"""Files that are no files, may not be read or may not be written: nothing hangs, nothing is lost."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

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


@pytest.mark.parametrize(
    "words",
    [
        ("store", "inspect"),
        ("store", "inspect", "--kind", "log"),
        ("snapshot", "inspect"),
        ("snapshot", "ls"),
        ("snapshot", "verify"),
    ],
    ids=" ".join,
)
def test_a_pipe_is_not_waited_for(words: tuple[str, ...], pipe: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*words, pipe)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"tieredctl: {pipe} is not a regular file.\n")


def test_a_pipe_in_a_log_directory_is_not_waited_for(log_dir: Path, pipe: Path, tieredctl: Tieredctl) -> None:
    folder = log_dir / "__remote_log_metadata-1"
    folder.mkdir()
    pipe.rename(folder / pipe.name)

    outcome = tieredctl("metadata", "segments", "--log-dir", log_dir)

    assert (outcome.exit_code, outcome.out) == (1, "")
    assert f"{pipe.name} is not a regular file." in outcome.err


def test_a_pipe_is_not_an_export(pipe: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("metadata", "segments", "--export", pipe)

    assert outcome.exit_code == 1
    assert "it is not a regular file.\n" in outcome.err


def test_a_device_is_not_read_to_an_end_that_it_lacks(tieredctl: Tieredctl) -> None:
    inspected = tieredctl("store", "inspect", "/dev/zero", "--kind", "log")
    configured = tieredctl("metadata", "stats", "--bootstrap-server", "h:1", "--command-config", "/dev/zero")

    assert inspected.err.startswith("tieredctl: /dev/zero is not a regular file.\n")
    assert configured.err.startswith("tieredctl: /dev/zero is far too large for a properties file.\n")
    assert (inspected.exit_code, configured.exit_code) == (2, 2)


def test_settings_are_not_read_from_a_device_to_an_end_that_it_lacks(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("doctor", "config", "/dev/zero")

    assert outcome.exit_code == 2
    assert outcome.err.startswith("tieredctl: /dev/zero is far too large for a properties file.\n")


@pytest.mark.parametrize(
    ("words", "code"),
    [(("store", "inspect"), 1), (("snapshot", "inspect"), 1), (("snapshot", "verify"), 5)],
    ids=["store inspect", "snapshot inspect", "snapshot verify"],
)
@pytest.mark.parametrize("name", ["00000000000000000000.log", "00000000000000000100-0000000002.checkpoint"])
def test_a_terabyte_of_nothing_is_not_read(
    tmp_path: Path, tieredctl: Tieredctl, name: str, words: tuple[str, ...], code: int
) -> None:
    path = tmp_path / name
    path.touch()
    os.truncate(path, 1 << 40)

    outcome = tieredctl(*words, path)

    assert outcome.exit_code == code
    assert "has 1.0 TiB, far more than a file of its kind" in outcome.out + outcome.err


@pytest.mark.parametrize("words", [("metadata", "segments", "--log-dir"), ("store", "check"), ("store", "inspect")])
def test_what_may_not_be_read_is_reported_with_its_owner(words: tuple[str, ...], log_dir: Path) -> None:
    subject = log_dir if words[1] != "inspect" else next(log_dir.rglob("*.log"))
    subject.chmod(0)

    outcome = unprivileged(*words, subject)

    subject.chmod(0o755)
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert " may not be read" in outcome.err
    assert outcome.err.endswith("  Run as a user who may read it, such as the broker's own.\n")


def test_verify_does_not_pass_over_a_local_log_that_may_not_be_read(log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    partition = log_dir / "t-0"
    partition.mkdir()
    (partition / "partition.metadata").write_text("version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w")
    partition.chmod(0)

    words = ("--log-dir", log_dir, "--store", f"file:{tmp_path}/store", "--layout", "local")
    outcome = unprivileged("verify", *words)

    partition.chmod(0o755)
    assert (outcome.exit_code, outcome.out) == (1, "")
    assert outcome.err.startswith(f"tieredctl: {partition}/partition.metadata may not be read.\n")


@pytest.mark.parametrize("target", ["export.jsonl", "metrics.prom"])
def test_a_pipe_or_a_device_is_never_replaced(target: str, log_dir: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    path = tmp_path / target
    os.mkfifo(path)

    if target.startswith("export"):
        outcome = tieredctl("metadata", "export", path, "--force", "--log-dir", log_dir)
    else:
        outcome = tieredctl("metadata", "segments", "--metrics-file", path, "--log-dir", log_dir)

    assert outcome.exit_code == 1
    assert outcome.err.startswith(f"tieredctl: {path} exists and is not a regular file.\n")
    assert stat.S_ISFIFO(path.stat().st_mode)


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
    assert outcome.err.startswith(f"tieredctl: {folder}/export.jsonl cannot be written: Permission denied.\n")
    assert list(folder.iterdir()) == []


def test_a_parquet_file_of_somebody_elses_is_reported_as_not_an_export(tmp_path: Path, tieredctl: Tieredctl) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = tmp_path / "foreign.parquet"
    pq.write_table(pa.table({"x": [1, 2]}), path)

    outcome = tieredctl("metadata", "segments", "--export", path)

    assert (outcome.exit_code, outcome.out) == (2, "")
    assert "not the header of a metadata export" in outcome.err
