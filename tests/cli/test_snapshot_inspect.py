"""`snapshot inspect`: every format, every place, and what is damaged, unknown or not there."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
import yaml

from tests.cli.command_line import Outcome, Tieredctl
from tests.kraft_snapshots import snapshot_bytes, topic_record, write_snapshot
from tieredctl.errors import ExitCode
from tieredctl.formats.control_records import encode_control_record
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.record_batches import Attributes, ControlType, Record, encode_batch, read_batch_header
from tieredctl.model.ids import uuid_text

TOPIC_ID = uuid_text(bytes(range(16)))
LATER_TYPE = bytes.fromhex("01 63 00 0102")
LATER_VERSION = bytes.fromhex("01 02 09 00")
LEADER = {"Version": 1, "LeaderId": 3000, "Voters": [], "GrantingVoters": []}
HEADER = {"type": "SnapshotHeaderRecord", "version": 0, "data": {"version": 0, "lastContainedLogTimestamp": 5}}
TOPIC = {"type": "TOPIC_RECORD", "version": 0, "data": {"name": "orders", "topicId": TOPIC_ID}}
FOOTER = {"type": "SnapshotFooterRecord", "version": 0, "data": {"version": 0}}


Inspect = Callable[..., Outcome]


@pytest.fixture
def inspect(tieredctl: Tieredctl) -> Inspect:
    return partial(tieredctl, "snapshot", "inspect")


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    return write_snapshot(tmp_path, 5, topic_record(TOPIC_ID, "orders"))


@pytest.fixture
def log(snapshot: Path) -> Path:
    leader = encode_control_record(ControlType.LEADER_CHANGE, LEADER, offset=0, timestamp=7)
    no_op = encode_kraft_record(KraftRecordType.NO_OP, 0, {})
    file = snapshot.with_name("00000000000000000000.log")
    file.write_bytes(
        encode_batch([leader], partition_leader_epoch=2, attributes=Attributes.CONTROL)
        + encode_batch([Record(1, 8, None, no_op)], partition_leader_epoch=2)
    )
    return file


def test_the_same_records_in_every_form_of_data_as_dump_log_decodes_them(inspect: Inspect, snapshot: Path) -> None:
    ended = inspect(snapshot, "-o", "jsonl")
    rows = list(csv.DictReader(io.StringIO(inspect(snapshot, "-o", "csv").out)))
    document = inspect(snapshot, "-o", "json").document()
    copy = snapshot.rename(snapshot.with_name("copy"))  # which is known by its content

    assert (ended.exit_code, ended.err, ended.lines()) == (ExitCode.CLEAN, "", [HEADER, TOPIC, FOOTER])
    found = [{**row, "version": int(row["version"]), "data": json.loads(row["data"])} for row in rows]
    assert found == document["items"] == ended.lines() == inspect(copy, "-o", "jsonl").lines()
    assert (document["kind"], document["summary"]["records"]) == ("MetadataRecords", 3)
    assert {"type": "TOPIC_RECORD", "version": 0, "known": True, "records": 1} in document["summary"]["types"]
    assert yaml.safe_load(inspect(copy, "-o", "yaml").out)["items"] == document["items"]


def test_a_table_says_where_each_record_is(inspect: Inspect, snapshot: Path, log: Path) -> None:
    narrow, wide = inspect(log), inspect(log, snapshot, "-o", "wide")

    assert narrow.out.splitlines()[0].split() == ["OFFSET", "TYPE", "VERSION", "DATA"]
    assert "NO_OP_RECORD" in narrow.out
    assert {"FILE", "EPOCH", "TIMESTAMP", "POSITION"} <= set(wide.out.splitlines()[0].split())
    assert f"{snapshot.name}  " in wide.out


def test_a_folder_stands_for_its_finished_snapshots_and_its_log(inspect: Inspect, snapshot: Path, log: Path) -> None:
    """Zeros at the end of the log were preallocated."""
    for name in (
        "00000000000000000009-0000000001.checkpoint.part",
        "00000000000000000008-0000000001.checkpoint.deleted",
    ):
        log.with_name(name).write_bytes(b"")
    log.write_bytes(log.read_bytes() + bytes(5_000))
    for folder in (log.parent, log.parent.parent):
        ended = inspect(folder, "-o", "jsonl")

        assert ended.exit_code == ExitCode.CLEAN, folder
        assert [record["type"] for record in ended.lines()] == [
            *("LeaderChangeMessage", "NO_OP_RECORD", "SnapshotHeaderRecord", "TOPIC_RECORD", "SnapshotFooterRecord"),
        ]


def test_only_records_of_some_types(inspect: Inspect, snapshot: Path) -> None:
    for types, expected in (
        (["TOPIC_RECORD"], [TOPIC]),
        (["topic"], [TOPIC]),
        (["2"], [TOPIC]),
        (["snapshotheaderrecord", "TOPIC"], [HEADER, TOPIC]),
        (["PARTITION"], []),
        (["99"], []),
    ):
        words = [word for kind in types for word in ("--type", kind)]
        lines, document = inspect(snapshot, *words, "-o", "jsonl"), inspect(snapshot, *words, "-o", "json")

        assert (lines.exit_code, lines.lines(), document.document()["items"]) == (0, expected, expected), types
    assert inspect(snapshot, "--type", "TOPPIC").exit_code == ExitCode.USAGE


def test_types_and_versions_of_later_releases_are_counted_and_kept_as_bytes(inspect: Inspect, tmp_path: Path) -> None:
    file = write_snapshot(tmp_path, 5, LATER_TYPE, topic_record(TOPIC_ID, "orders"), LATER_VERSION, LATER_TYPE)
    later = {"type": "99", "version": 0, "data": "AQI="}
    expected = [HEADER, later, TOPIC, {"type": "TOPIC_RECORD", "version": 9, "data": "AA=="}, later, FOOTER]
    for output in ("jsonl", "json", "table"):
        ended = inspect(file, "-o", output)

        assert ended.exit_code == ExitCode.CLEAN, output
        assert "2 of type 99 version 0" in ended.err, output
        assert "1 of type TOPIC_RECORD version 9" in ended.err, output
        if output != "table":
            assert (ended.lines() if output == "jsonl" else ended.document()["items"]) == expected


def test_a_control_record_of_a_later_release_is_named_by_its_number(inspect: Inspect, tmp_path: Path) -> None:
    record = Record(0, 1, b"\x00\x00\x00\x2a", b"\x01")
    log = tmp_path / "00000000000000000000.log"
    log.write_bytes(encode_batch([record], attributes=Attributes.CONTROL))

    ended = inspect(log, "-o", "jsonl")

    assert ended.exit_code == ExitCode.CLEAN
    assert ended.lines() == [{"type": "ControlRecord42", "version": None, "data": "AQ=="}]


def test_what_is_sound_of_a_damaged_snapshot_is_shown(inspect: Inspect, tmp_path: Path) -> None:
    file = write_snapshot(tmp_path, 5, topic_record(TOPIC_ID, "orders"))
    data = bytearray(file.read_bytes())
    position = read_batch_header(data, 0, len(data)).size
    data[position + 70] ^= 1
    file.write_bytes(data)
    for output in ("jsonl", "json", "table", "csv"):
        ended = inspect(file, "-o", output)

        assert ended.exit_code == ExitCode.CORRUPTION, output
        assert f"at byte {position}." in ended.err, output
        assert "SnapshotHeaderRecord" in ended.out, output
        assert "SnapshotFooterRecord" in ended.out, output
        assert "TOPIC_RECORD" not in ended.out, output


CUT = "the last batch is incomplete"
NOT_WHOLE: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "cut by a byte": (lambda data: data[:-1], CUT),
    "cut in the middle": (lambda data: data[: len(data) // 2], CUT),
    "no footer": (lambda data: data[:83], "snapshot does not end with a footer at byte 83"),
    "empty": (lambda data: data[:0], "snapshot does not end with a footer at byte 0"),
    "two footers": (lambda data: data + data[-75:], "snapshot continues after its footer"),
    "no header": (lambda data: data[83:], "snapshot does not begin with a header at byte 0"),
    "length": (lambda data: data[:8] + b"\x7f\xff\xff\xff" + data[12:], "is impossible at byte 0"),
    "no batch": (lambda data: b"no batch in here" + bytes(len(data)) + b"!", "at byte 0"),
}


def test_a_snapshot_that_is_not_whole(inspect: Inspect, tmp_path: Path) -> None:
    file = write_snapshot(tmp_path, 5, topic_record(TOPIC_ID, "orders"))
    whole = file.read_bytes()
    for case, (change, reason) in NOT_WHOLE.items():
        file.write_bytes(change(whole))
        for output in ("jsonl", "json"):
            ended = inspect(file, "-o", output)

            assert (ended.exit_code, reason in ended.err) == (ExitCode.CORRUPTION, True), (case, ended.err)


def test_records_that_cannot_be_decoded_are_counted(inspect: Inspect, tmp_path: Path) -> None:
    bad = [bytes([1, 2, 0, 255, index]) for index in range(50)]
    file = write_snapshot(tmp_path, 5, *bad, topic_record(TOPIC_ID, "orders"))

    ended = inspect(file, "-o", "jsonl")

    assert ended.exit_code == ExitCode.CORRUPTION
    assert ended.lines() == [HEADER, TOPIC, FOOTER]
    assert len(ended.err.splitlines()) < 10


def test_the_other_files_are_shown_where_one_is_damaged(inspect: Inspect, snapshot: Path, log: Path) -> None:
    log.write_bytes(b"garbage" * 100)

    ended = inspect(log, snapshot, "-o", "jsonl")

    assert ended.exit_code == ExitCode.CORRUPTION
    assert ended.lines() == [HEADER, TOPIC, FOOTER]


def test_a_path_that_has_no_records(inspect: Inspect, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "device").symlink_to("/dev/zero")
    for name in ("missing", "folder", "device"):
        ended = inspect(tmp_path / name, "-o", "jsonl")

        assert (ended.exit_code, ended.out) == (ExitCode.USAGE, ""), name


def test_names_from_outside_do_not_reach_the_terminal(inspect: Inspect, tmp_path: Path) -> None:
    file = write_snapshot(tmp_path, 5, topic_record(TOPIC_ID, "\x1b[31m\u202e"))

    for output in ("table", "jsonl", "csv"):
        assert inspect(file, "-o", output).out.isascii()


def test_a_snapshot_in_pieces_is_the_same(inspect: Inspect, tmp_path: Path) -> None:
    values = [topic_record(TOPIC_ID, f"topic-{number}") for number in range(20_000)]
    file = tmp_path / "00000000000000020000-0000000001.checkpoint"
    file.write_bytes(snapshot_bytes(5, *values))

    found = inspect(file, "-o", "jsonl").lines()

    assert [record["data"]["name"] for record in found[1:-1]] == [f"topic-{number}" for number in range(20_000)]
