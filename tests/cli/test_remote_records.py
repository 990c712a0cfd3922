"""`remote records` on captured stores: the same records in every form."""

from __future__ import annotations

import base64
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.command_line import Outcome, Tieredctl, environment
from tieredctl.cli import progress
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode

TOPIC = "orders7"
SECONDS = 120


@pytest.fixture
def places(capture: Path) -> Sequence[str]:
    return ("--log-dir", str(capture / "data"), "--store", f"file:{capture / 'remote' / 'kafka-tiered-storage'}")


def raw(*words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """What is printed need not be text."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        exit_code = run(["remote", "records", *map(str, words)])
    return subprocess.CompletedProcess(words, exit_code, *(text.buffer.getvalue() for text in (out, err)))


@pytest.fixture
def lines(places: Sequence[str], tieredctl: Tieredctl) -> list[dict[str, Any]]:
    """All records of the topic."""
    outcome = tieredctl("remote", "records", TOPIC, *places, "-o", "jsonl")
    assert (outcome.exit_code, len(outcome.lines())) == (ExitCode.CLEAN, 93 + 81 + 64)
    return outcome.lines()


def offsets(outcome: Outcome) -> list[tuple[int, int]]:
    assert outcome.exit_code == ExitCode.CLEAN, outcome.err
    return [(line["partition"], line["offset"]) for line in outcome.lines()]


def test_a_line_has_what_scripts_rely_on(lines: list[dict[str, Any]]) -> None:
    assert [*lines[0]] == [
        *("topic", "partition", "offset", "timestamp", "timestampType", "key", "value", "headers"),
        *("leaderEpoch", "segmentId"),
    ]
    assert lines[0]["topic"] == TOPIC
    assert lines[0]["headers"] == [{"key": "h", "value": "MQ=="}]
    assert base64.b64decode(lines[0]["key"]) == b"9"
    assert [(line["partition"], line["offset"]) for line in lines] == sorted(
        (line["partition"], line["offset"]) for line in lines
    )


def test_every_form_has_the_same_records(lines: list[dict[str, Any]], places: Sequence[str]) -> None:
    parquet = pq.read_table(io.BytesIO(raw(TOPIC, *places, "-o", "parquet").stdout)).to_pylist()
    arrow = pa.ipc.open_stream(raw(TOPIC, *places, "-o", "arrow").stdout).read_all().to_pylist()
    kcat = raw(TOPIC, *places, "--format", r"%t %p %o %T %K %S %k\t%s\x00").stdout

    assert arrow == parquet
    assert [(row["partition"], row["offset"], row["value"]) for row in parquet] == [
        (line["partition"], line["offset"], _bytes(line["value"])) for line in lines
    ]
    expected = b"".join(
        f"{TOPIC} {row['partition']} {row['offset']} {row['timestamp']} ".encode()
        + f"{_size(row['key'])} {_size(row['value'])} ".encode()
        + (row["key"] or b"")
        + b"\t"
        + (row["value"] or b"")
        + b"\0"
        for row in parquet
    )
    assert kcat == expected


def test_a_format_may_have_any_bytes(places: Sequence[str]) -> None:
    assert raw(f"{TOPIC}:0", *places, "--to", "2", "--format", "\udcff%o").stdout == b"\xff0\xff1"


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)


def _size(data: bytes | None) -> int:
    return -1 if data is None else len(data)


def test_a_range_of_offsets_and_of_times(
    lines: list[dict[str, Any]], places: Sequence[str], tieredctl: Tieredctl
) -> None:
    own = [line for line in lines if line["partition"] == 1]
    first, last = own[20], own[60]
    words = ("remote", "records", f"{TOPIC}:1", *places, "-o", "jsonl")

    by_offset = tieredctl(*words, "--from", str(first["offset"]), "--to", str(last["offset"]))
    by_time = tieredctl(*words, "--from", "2026-11-21T09:13:55Z", "--to", "2026-11-21T09:14:00Z")

    assert offsets(by_offset) == [(1, line["offset"]) for line in own[20:60]]
    times = [line["timestamp"] for line in by_time.lines()]
    assert len(times) > 3
    assert 1_795_252_435_000 <= min(times) <= max(times) < 1_795_252_440_000
    assert offsets(tieredctl(*words, "--from", "latest")) == []
    assert len(offsets(tieredctl(*words, "--from", "earliest", "--to", "latest"))) == len(own)


def test_no_more_records_than_asked_for(places: Sequence[str], tieredctl: Tieredctl) -> None:
    for most in (0, 1, 90, 10_000, 1 << 63):
        outcome = tieredctl("remote", "records", TOPIC, *places, "-o", "jsonl", "--max-records", str(most))

        assert len(offsets(outcome)) == min(most, 93 + 81 + 64)


def test_uncommitted_records_are_left_out_where_asked_for(places: Sequence[str], tieredctl: Tieredctl) -> None:
    words = ("remote", "records", f"{TOPIC}:1", *places, "-o", "jsonl", "--isolation")

    assert len(offsets(tieredctl(*words, "read_committed"))) == 78
    assert len(offsets(tieredctl(*words, "read_uncommitted"))) == 93


def test_only_records_that_match(lines: list[dict[str, Any]], places: Sequence[str], tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "records", TOPIC, *places, "-o", "jsonl", "--grep", "^1[0-9]$|abba")

    def matches(line: dict[str, Any]) -> bool:
        key, value = _bytes(line["key"]) or b"", _bytes(line["value"]) or b""
        return (len(key) == 2 and key[:1] == b"1") or b"abba" in value

    assert outcome.lines() == [*filter(matches, lines)] != []


def test_keys_and_values_as_text_json_and_hex(places: Sequence[str], tieredctl: Tieredctl) -> None:
    words = ("remote", "records", f"{TOPIC}:0", *places, "-o", "jsonl", "--max-records", "1")

    for shown, key in (("text", "9"), ("json", 9), ("hex", "39"), ("base64", "OQ==")):
        (line,) = tieredctl(*words, "--key", shown, "--value", "text").lines()

        assert line["key"] == key
        assert line["value"].startswith("faedaeadaadhbcf fd")


def test_a_table_for_people(places: Sequence[str], tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "records", TOPIC, *places, "--max-records", "2")

    heading, *rows = outcome.out.splitlines()
    assert heading.split() == ["PARTITION", "OFFSET", "TIME", "KEY", "VALUE"]
    assert rows[0].split()[:4] == ["0", "0", "2026-11-21T09:13:52.824Z", "9"]
    assert outcome.err == "2 records of 3 partitions.\n"
    wide = tieredctl("remote", "records", TOPIC, *places, "--max-records", "2", "-o", "wide").out.splitlines()
    assert '  [{"key": "h", "value": "MQ=="}]  ' in wide[1]


def test_what_cannot_be_read_decides_the_exit_code(capture: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    capture_copy = tmp_path / "capture"
    shutil.copytree(capture, capture_copy)
    store = capture_copy / "remote" / "kafka-tiered-storage"
    log = next(iter(sorted(store.glob(f"{TOPIC}-1-*/*.log"))))
    data = bytearray(log.read_bytes())
    data[100] ^= 1
    log.write_bytes(data)
    words = ("remote", "records", f"{TOPIC}:1", "--log-dir", capture_copy / "data", "--store", f"file:{store}")

    failing, skipping, rows = (tieredctl(*words, "-o", "jsonl", "--damage", how) for how in ("fail", "skip", "row"))

    assert {one.exit_code for one in (failing, skipping, rows)} == {ExitCode.CORRUPTION}
    assert failing.lines() == []
    assert "batch-corrupt: orders7-1" in failing.err
    assert "offsets could not be read." in skipping.err
    (damage,) = [line["damage"] for line in rows.lines() if "damage" in line]
    assert damage.startswith("batch-corrupt: CRC-32C does not match")
    assert len(rows.lines()) == len(skipping.lines()) + 1 < 93
    for outcome in (failing, skipping, rows):
        assert "gebaa" not in outcome.err  # nothing of a value


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--from", "yesterday"), "--from 'yesterday' is not a place."),
        (("--grep", "("), "'(' is not a regular expression: missing ): (."),
        (("--grep", "\udcff"), "'\\udcff' is not a regular expression: it is not UTF-8."),
        (("--format", "\ud800"), "--format '\\ud800' has a character that is none."),
        (("--format", "%x"), "--format has the unknown token %x."),
        (("--format", "%s", "-o", "csv"), "--format and -o cannot be combined."),
        (("--format", "%s", "--damage", "row"), "--damage row is for -o: --format has no place for the reason."),
        (("--output-dir", "to"), "--output-dir takes -o jsonl, csv, parquet or arrow."),
        (("--output-dir", "to", "--format", "%s"), "--output-dir takes -o jsonl, csv, parquet or arrow."),
        (("--schema", "nowhere"), "--schema is for --key avro or --value avro."),
        (("--key", "avro", "--value", "avro", "--schema", "x"), "--schema is for keys or for values, not for both."),
        (("--value", "avro", "--schema-registry", "x"), "--schema-registry is not a URL of HTTP."),
        (("--max-batch-bytes", "0"), "--max-batch-bytes '0' is not from 1 to 2147483647 bytes."),
        (("--max-batch-bytes", "2GiB"), "--max-batch-bytes '2GiB' is not from 1 to 2147483647 bytes."),
        (("--max-batch-bytes", "much"), "'much' is not a number of bytes."),
        (("-o", "arrow", "--key", "text"), "--key and --value are for text: -o arrow has the bytes themselves."),
    ],
)
def test_wrong_words_are_one_sentence(
    words: Sequence[str], said: str, places: Sequence[str], tieredctl: Tieredctl
) -> None:
    outcome = tieredctl("remote", "records", TOPIC, *places, *words)

    assert outcome.exit_code == ExitCode.USAGE
    assert outcome.err.splitlines()[0] == f"tieredctl: {said}"


def test_a_reader_that_has_gone_ends_it_quietly(places: Sequence[str]) -> None:
    for words in (("-o", "jsonl"), ("-o", "parquet"), ("--format", r"%s\n")):
        reading, writing = os.pipe()
        os.close(reading)
        command = [sys.executable, "-m", "tieredctl", "remote", "records", TOPIC, *places, *words]
        with os.fdopen(writing) as gone:
            done = subprocess.run(
                command, stdout=gone, stderr=subprocess.PIPE, env=environment(), timeout=SECONDS, check=False
            )

        assert b"Traceback" not in done.stderr
        assert done.returncode == ExitCode.CLEAN, done.stderr


def test_files_have_what_the_output_has(
    places: Sequence[str], tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "_SECONDS_BETWEEN_LINES", 0.0)
    words = (TOPIC, *places, "--isolation", "read_committed")
    for output in ("jsonl", "csv", "parquet", "arrow"):
        folder = tmp_path / output

        first = tieredctl("remote", "records", *words, "-o", output, "--output-dir", folder)
        files = sorted(folder.glob(f"{TOPIC}-*-00000000000000000000.{output}"))
        contents = [file.read_bytes() for file in files]
        again = tieredctl("remote", "records", *words, "-o", output, "--output-dir", folder, "--progress", "plain")

        expected = raw(*words, "-o", output).stdout
        assert (first.exit_code, again.exit_code, first.out, again.out) == (0, 0, "", "")
        assert first.err == f"{folder} has 3 files.\n201 records of 3 partitions.\n"
        assert again.err.endswith(first.err)
        assert re.search(r"^\S+  \S+ KiB of \S+ KiB checked, ", again.err, re.MULTILINE)
        assert {file.stat().st_mode & 0o777 for file in folder.iterdir()} == {0o600}
        assert [file.read_bytes() for file in files] == contents
        assert len(files) == 3
        match output:
            case "jsonl":
                assert b"".join(contents) == expected
            case "csv":
                heading = contents[0].splitlines(keepends=True)[0]
                assert b"".join([heading, *(one.removeprefix(heading) for one in contents)]) == expected
            case "parquet":
                tables = [pq.read_table(file) for file in files]
                assert pa.concat_tables(tables) == pq.read_table(io.BytesIO(expected))
            case "arrow":
                read = [pa.ipc.open_stream(one).read_all() for one in contents]
                assert pa.concat_tables(read) == pa.ipc.open_stream(expected).read_all()


def test_another_selection_is_refused(
    places: Sequence[str], capture: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    words = ("remote", "records", *places, "--output-dir", tmp_path, "-o")
    assert tieredctl(*words, "jsonl", f"{TOPIC}:0").exit_code == ExitCode.CLEAN
    copied = shutil.copytree(capture / "remote" / "kafka-tiered-storage", tmp_path / ".copy")
    moved = [str(word).replace(places[-1], f"file:{copied}") for word in words]

    for given, *other in (
        (words, "csv", f"{TOPIC}:0"),
        (words, "jsonl", TOPIC),
        (words, "jsonl", f"{TOPIC}:0", "--isolation", "read_committed"),
        (words, "jsonl", f"{TOPIC}:0", "--from", "2026-11-21"),
        (words, "jsonl", f"{TOPIC}:0", "--value", "text"),
        (words, "jsonl", f"{TOPIC}:0", "--grep", "a"),
        (words, "jsonl", f"{TOPIC}:0", "--damage", "skip"),
        (words, "jsonl", f"{TOPIC}:0", "--as-of", "2100-01-01"),
        (moved, "jsonl", f"{TOPIC}:0"),
    ):
        outcome = tieredctl(*given, *other)

        assert outcome.exit_code == ExitCode.USAGE, other
        assert " was begun with another selection: " in outcome.err
        assert outcome.err.count("\n") == 2


@pytest.mark.parametrize("source", ["log directory", "export"])
def test_what_was_deleted_since_the_moment_that_is_asked_about_is_said_to_be(
    capture: Path, places: Sequence[str], tieredctl: Tieredctl, tmp_path: Path, source: str
) -> None:
    events = tieredctl("metadata", "format", *places[:2], "-o", "jsonl").lines()
    gone = [one for one in events if one.get("state") == "DELETE_SEGMENT_STARTED" and one["topic"] == "gone7"]
    before_ms = min(one["eventTimestampMs"] for one in gone) - 1
    if source == "export":
        tieredctl("metadata", "export", tmp_path / "events.jsonl", *places[:2])
        places = ("--export", str(tmp_path / "events.jsonl"), *places[2:])

    words = ("remote", "records", "gone7", *places, "--topic-id", gone[0]["topicId"], "--as-of", str(before_ms))
    outcome = tieredctl(*words, "--damage", "skip", "-o", "jsonl")

    assert (outcome.exit_code, outcome.out) == (ExitCode.FINDINGS, ""), outcome.err
    assert outcome.err.count("the segment is deleted by now") > 0
    assert "damaged" not in outcome.err


def test_what_is_not_avro_is_counted(places: Sequence[str], tmp_path: Path, tieredctl: Tieredctl) -> None:
    words = ("remote", "records", f"{TOPIC}:0", *places, "-o", "jsonl", "--max-records", "3")

    outcome = tieredctl(*words, "--value", "avro")
    written = [tieredctl(*words, "--value", "avro", "--output-dir", tmp_path) for _ in range(2)]

    assert {one.exit_code for one in (outcome, *written)} == {ExitCode.FINDINGS}
    assert [one.err for one in written] == [f"{tmp_path} has 1 file.\n{outcome.err}"] * 2
    assert [[*line["value"]] for line in outcome.lines()] == [["schemaId", "error", "data"]] * 3
    assert outcome.err.endswith("3 keys or values could not be decoded.\n")


def test_a_closed_stdout_takes_no_records(places: Sequence[str]) -> None:
    for closed, code in ((">&-", ExitCode.FAILURE), (">/dev/null", ExitCode.CLEAN)):
        command = f"{sys.executable} -m tieredctl remote records {TOPIC} {shlex.join(places)} {closed}"
        done = subprocess.run(["bash", "-c", command], capture_output=True, env=environment(), check=False)

        assert done.returncode == code
        assert done.stderr.startswith(b"tieredctl: stdout is closed: ") is (code is ExitCode.FAILURE)


def test_values_are_never_in_a_trace(places: Sequence[str], tieredctl: Tieredctl) -> None:
    outcome = tieredctl("remote", "records", TOPIC, *places, "-o", "jsonl", "--value", "text", "--debug")

    values = [line["value"] for line in outcome.lines() if line["value"]]
    assert values
    assert not any(value[:20] in outcome.err for value in values if len(value) > 20)
    assert json.dumps(values[0])[1:-1] in outcome.out
