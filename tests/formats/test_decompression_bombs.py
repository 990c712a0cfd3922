"""What is decompressed takes no more memory than a log can need, whatever it claims to be."""

from __future__ import annotations

import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tieredctl_aiven.segment import undo

from tests.cli.command_line import Outcome, environment
from tests.formats.decompression_bombs import BOMBS, EMPTY_RECORD, batch, empty_records, write_log, zstd_run
from tieredctl.errors import DecodeError
from tieredctl.formats.compression import Codec, compress, decompress, most_unfolded
from tieredctl.formats.zstd_frame import compress_zstd, decompress_zstd
from tieredctl.kafka.log_directory import LogDirectories

MEMORY = 1 << 30
"""Bytes that the process may take; a command that finds nothing takes a fifth of them."""


def with_little_memory(*words: str | Path) -> Outcome:
    """Runs tieredctl in a process that gets no more memory than that."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))

    command = [sys.executable, "-m", "tieredctl", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, env=environment(), check=False, preexec_fn=limit)
    return Outcome(done.returncode, done.stdout, done.stderr)


@pytest.mark.exhaustive
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS.keys())
def test_a_metadata_log_takes_little_memory(bomb: Callable[[], bytes], tmp_path: Path) -> None:
    write_log(tmp_path, [bomb()])

    outcome = with_little_memory("metadata", "stats", "--log-dir", tmp_path)

    assert outcome.exit_code in (3, 4, 5)
    assert "MemoryError" not in outcome.err
    assert "Please report" not in outcome.err


def test_what_unfolds_beyond_all_measure_is_named_and_the_rest_is_read(tmp_path: Path) -> None:
    write_log(tmp_path, [batch(Codec.ZSTD, zstd_run(1 << 30), 1), batch(Codec.NONE, EMPTY_RECORD, 1, 1)])

    chunks = list(LogDirectories([tmp_path]).chunks(0))

    assert [finding.code for chunk in chunks for finding in chunk.findings] == ["batch-corrupt"]
    assert "unfolds beyond 67108864 bytes" in chunks[0].findings[0].message
    assert [record.offset for chunk in chunks for record in chunk.records()] == [1]


def test_records_are_named_one_by_one_up_to_a_number(tmp_path: Path) -> None:
    write_log(tmp_path, [empty_records(70_000, Codec.ZSTD)])

    outcome = with_little_memory("metadata", "segments", "--log-dir", tmp_path, "-o", "json")

    undecodable = [f for f in outcome.document()["summary"]["findings"] if f["code"] == "event-undecodable"]
    assert len(undecodable) == 10_001
    assert undecodable[-1]["evidence"]["records"] == 60_000


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_what_is_just_as_long_as_allowed_is_read(codec: Codec) -> None:
    data = bytes(100_000)

    assert decompress(codec, compress(codec, data), limit=100_000) == data
    with pytest.raises(DecodeError, match="unfolds beyond 99999 bytes"):
        decompress(codec, compress(codec, data), limit=99_999)


def test_many_small_blocks_are_no_bomb() -> None:
    frames = b"".join(compress_zstd(b"x" * 10) for _ in range(1_000))

    assert decompress_zstd(memoryview(frames), 10_000) == b"x" * 10_000


@pytest.mark.parametrize(
    ("compressed", "allowed"), [(0, 64 << 20), (1 << 20, 64 << 20), (2 << 20, 128 << 20), (1 << 28, 1 << 30)]
)
def test_how_much_is_allowed(compressed: int, allowed: int) -> None:
    assert most_unfolded(compressed) == allowed


@pytest.mark.parametrize("size", [1 << 30, (1 << 31) - 1])
def test_a_chunk_that_claims_more_than_it_can_hold_is_damaged(size: int) -> None:
    chunk = zstd_run(1 << 30)

    with pytest.raises(DecodeError, match="unfolds beyond 67108864 bytes"):
        undo()(memoryview(chunk), size, compression=True)
