"""`remote records` on stores and metadata that were altered: nothing is missing in silence, nothing is shown otherwise
than it is."""

from __future__ import annotations

import io
import shutil
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.test_remote_records import raw
from tieredctl.errors import ExitCode

TOPIC = "orders7"


@dataclass(frozen=True)
class CopiedCluster:
    """A cluster's files, to alter, and the command that reads them."""

    data: Path
    store: Path
    tieredctl: Tieredctl

    @property
    def places(self) -> list[str]:
        return ["--log-dir", str(self.data), "--store", f"file:{self.store}"]

    def records(self, where: str, *words: str) -> Outcome:
        return self.tieredctl("remote", "records", where, *self.places, *words)

    def log(self, partition: int, number: int) -> Path:
        """The log of one of the partition's segments in the store."""
        return sorted(self.store.glob(f"{TOPIC}-{partition}-*/*.log"))[number]


@pytest.fixture
def copied(capture: Path, tmp_path: Path, tieredctl: Tieredctl) -> CopiedCluster:
    shutil.copytree(capture, tmp_path / "capture")
    copy = tmp_path / "capture"
    return CopiedCluster(copy / "data", copy / "remote/kafka-tiered-storage", tieredctl)


def alter(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)


def test_damaged_metadata_is_no_silent_end(copied: CopiedCluster) -> None:
    log = next((copied.data / "__remote_log_metadata-3").glob("*.log"))
    alter(log, 28969)  # in the batch that says that the last segment was copied

    outcome = copied.records(f"{TOPIC}:2", "--from", "66", "-o", "jsonl")

    assert len(outcome.lines()) < 4
    assert outcome.exit_code == ExitCode.CORRUPTION
    assert f"batch-corrupt: {log}" in outcome.err


def test_what_was_read_before_the_damage_is_written(copied: CopiedCluster) -> None:
    alter(copied.log(0, 1), 100)  # the first segment has two records
    words = (f"{TOPIC}:0", *copied.places)
    table, parquet, arrow = (raw(*words, "-o", form) for form in ("table", "parquet", "arrow"))

    assert [line.split()[0] for line in table.stdout.splitlines()] == [b"OFFSET", b"0", b"1"]
    assert pq.read_table(io.BytesIO(parquet.stdout)).column("offset").to_pylist() == [0, 1]
    assert pa.ipc.open_stream(arrow.stdout).read_all().column("offset").to_pylist() == [0, 1]
    for done in (table, parquet, arrow):
        assert done.returncode == ExitCode.CORRUPTION
        assert b"critical: batch-corrupt: orders7" in done.stderr
        assert "…".encode() not in done.stderr  # the command that shows more has the places of this run
        assert b"Reading ended there: --damage skip reads on" in done.stderr
    assert raw(*words, "--quiet").stderr.startswith(b"tieredctl: batch-corrupt: orders7")
