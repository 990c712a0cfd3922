"""`remote records` on stores and metadata that were altered: nothing is missing in silence, nothing is shown otherwise
than it is."""

from __future__ import annotations

import csv
import io
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.test_remote_records import raw
from tieredctl.errors import ExitCode
from tieredctl.formats.record_batches import Record, encode_batch

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

    def put(self, *records: tuple[bytes | None, bytes | None], times: Sequence[int] = (0, 0, 0, 0)) -> None:
        """Puts up to four keys and values in place of the records from offset 14 on of partition 0."""
        (log,) = self.store.glob(f"{TOPIC}-0-*/00000000000000000014-*.log")
        given = [*records, *[(None, None)] * (4 - len(records))]
        made = [Record(14 + at, times[at], key, value, ()) for at, (key, value) in enumerate(given)]
        size = log.stat().st_size
        padded = (
            encode_batch([*made, Record(18, 0, None, bytes(pad), ())], partition_leader_epoch=0) for pad in range(size)
        )
        log.write_bytes(next(batch for batch in padded if len(batch) == size))


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


AS_JSON = [
    (b'{"a": 1.10, "a":\n\t1e400}', '{"a": 1.10, "a":  1e400}'),
    ('["\\ud800 é\u2028", 123456789012345678901.0]'.encode(), r'["\ud800 \u00e9\u2028", 123456789012345678901.0]'),
    (b" 7\r\n", "7"),
    (b'{"a": NaN}', r'"{\"a\": NaN}"'),
    (b"1\0", r'"1\u0000"'),
    (b"\0\0\x001", r'"\u0000\u0000\u00001"'),
    (b"\xef\xbb\xbf1", r'"\ufeff1"'),
    (b'"\xff"', r'"\"\\xff\""'),
]
"""Values, and how a line has them: JSON in UTF-8 with its own digits and keys, all else as text."""


def test_json_is_shown_as_it_is(copied: CopiedCluster) -> None:
    for values in (AS_JSON[:4], AS_JSON[4:]):
        copied.put(*((None, value) for value, _ in values))

        lines = copied.records(f"{TOPIC}:0", "--from", "14", "--to", "18", "-o", "jsonl", "--value", "json").out

        assert [line.partition('"value": ')[2].partition(', "headers"')[0] for line in lines.splitlines()] == [
            shown for _, shown in values
        ]


def test_json_is_shown_as_it_is_in_other_forms(copied: CopiedCluster) -> None:
    copied.put((b'"\\ud800"', b'{"a":\n"\xc3\xa9\x7f"}'))
    words = (f"{TOPIC}:0", "--from", "14", "--to", "15", "--key", "json", "--value", "json")

    assert copied.records(*words, "--format", "%k %s").out == r'"\ud800" {"a": "é\u007f"}'
    assert r'"\ud800"  {"a": "é\u007f"}' in copied.records(*words).out
    (row,) = csv.DictReader(io.StringIO(copied.records(*words, "-o", "csv").out))
    assert (row["key"], row["value"]) == (r'"\ud800"', r'{"a": "é\u007f"}')


def test_rows_about_damage_are_no_records(copied: CopiedCluster) -> None:
    copied.log(0, 1).unlink()
    words = (f"{TOPIC}:0", "--damage", "row", "-o", "jsonl")

    ending, limited = copied.records(*words, "--to", "4"), copied.records(*words, "--max-records", "3")

    assert ["damage" in line for line in ending.lines()] == [False, False, True]
    assert ending.lines()[2]["headers"] is None  # not known, unlike none
    assert ["damage" in line for line in limited.lines()] == [False, False, True, False]
    assert "\n2 records of 1 partition.\n" in ending.err
    assert "\n3 records of 1 partition.\n" in limited.err


def test_an_expression_matches_text(copied: CopiedCluster) -> None:
    copied.put((None, "café x".encode()), (b"\xff caf\xe9 x", None), (None, b"caf\xc3 x"), (b"cafe", b" x"))
    words = (f"{TOPIC}:0", "--from", "14", "--to", "18", "-o", "jsonl", "--grep")

    assert [line["offset"] for line in copied.records(*words, "^.{0,2}caf. x$").lines()] == [14, 15, 16]
    assert [line["offset"] for line in copied.records(*words, "É|\ufffd").lines()] == [15, 16]


def test_a_wrong_expression_is_refused_before_anything_is_read(copied: CopiedCluster) -> None:
    shutil.rmtree(copied.data)
    shutil.rmtree(copied.store)

    for form in ("jsonl", "csv", "parquet"):
        outcome = copied.records("nothing7", "-o", form, "--grep", "(")

        assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, "")
        assert "'(' is not a regular expression" in outcome.err


def test_a_time_before_1970_is_a_time(copied: CopiedCluster) -> None:
    copied.put(times=(-2, -1, -86_400_000, -(1 << 62)))

    rows = copied.records(f"{TOPIC}:0", "--from", "14", "--to", "18").out.splitlines()[1:]

    times = ["1969-12-31T23:59:59.998Z", "-", "1969-12-31T00:00:00.000Z", str(-(1 << 62))]
    assert [row.split()[1] for row in rows] == times
