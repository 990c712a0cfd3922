"""`snapshot verify` and `snapshot ls`: every format, exit codes, and what may be deleted."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.kraft_snapshots import snapshot_bytes
from tieredctl.errors import ExitCode
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties
from tieredctl.formats.record_batches import Record, encode_batch

LATEST = kraft_snapshot_name(107, 2)
WRITTEN_MS = 1795252456244
"""When the last record in the latest snapshot was written."""
OUTPUTS = ["table", "wide", "json", "jsonl", "yaml", "csv"]


@pytest.fixture
def node(captures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captures / "kafka-4.3.1/data/__cluster_metadata-0", tmp_path / "__cluster_metadata-0"))


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_sound_node_is_verified(tieredctl: Tieredctl, node: Path, output: str) -> None:
    ended = tieredctl("snapshot", "verify", node.parent, "-o", output)

    assert ended.exit_code == ExitCode.CLEAN
    assert "Read 3 snapshots and 1 log segment with 298 records: all are sound." in ended.err
    if output == "json":
        assert ended.document()["summary"] == {"snapshots": 3, "confirmed": 3, "segments": 1, "records": 298}


@pytest.mark.parametrize("output", OUTPUTS)
def test_a_damaged_snapshot_is_corruption(tieredctl: Tieredctl, node: Path, output: str) -> None:
    (node / LATEST).write_bytes((node / LATEST).read_bytes()[:-75])

    ended = tieredctl("snapshot", "verify", node, "-o", output)

    assert ended.exit_code == ExitCode.CORRUPTION
    assert "kraft-snapshot-damaged" in ended.out
    assert "snapshot does not end with a footer, at byte 3630" in ended.out


@pytest.mark.parametrize("command", ["verify", "ls", "inspect"])
@pytest.mark.parametrize("name", ["somewhere", LATEST, "00000000000000000000.log"])
@pytest.mark.parametrize("place", ["missing", "empty folder"])
def test_a_path_without_snapshots_is_a_usage_error(
    tieredctl: Tieredctl, tmp_path: Path, command: str, name: str, place: str
) -> None:
    path = tmp_path / name
    if place == "empty folder":
        path.mkdir()

    ended = tieredctl("snapshot", command, path)

    assert ended.exit_code == ExitCode.USAGE
    assert str(path) in ended.err


@pytest.mark.parametrize("content", [b"", b"\0" * 500, b"\xff" * 500, b"not a snapshot"])
@pytest.mark.parametrize("output", ["json", "table"])
def test_any_bytes_are_a_finding(tieredctl: Tieredctl, tmp_path: Path, content: bytes, output: str) -> None:
    file = tmp_path / LATEST
    file.write_bytes(content)

    ended = tieredctl("snapshot", "verify", file, "-o", output)

    assert ended.exit_code == ExitCode.CORRUPTION
    listed = tieredctl("snapshot", "ls", file, "-o", output)
    assert listed.exit_code == ExitCode.CORRUPTION
    assert "damaged" in listed.out
    assert "complete" not in listed.out


def test_a_log_alone_is_not_listed(tieredctl: Tieredctl, node: Path) -> None:
    ended = tieredctl("snapshot", "ls", node / "00000000000000000000.log")

    assert ended.exit_code == ExitCode.USAGE
    assert "is not a KRaft snapshot" in ended.err


@pytest.mark.parametrize("output", OUTPUTS)
def test_snapshots_are_listed_in_every_format(tieredctl: Tieredctl, node: Path, output: str) -> None:
    ended = tieredctl("snapshot", "ls", node, "-o", output, "--now", str(WRITTEN_MS + 1000))

    assert ended.exit_code == ExitCode.CLEAN
    assert LATEST in ended.out
    if output == "jsonl":
        assert ended.lines()[-1] == {
            "file": str(node / LATEST),
            "state": "complete",
            "endOffset": 107,
            "epoch": 2,
            "lastContainedOffset": 106,
            "lastContainedLogTimestamp": WRITTEN_MS,
            "ageMs": 1000,
            "size": 3705,
            "log": "within",
            "mayBeDeleted": False,
            "reason": "it is the latest, with which a node starts",
        }
    if output == "json":
        (log,) = ended.document()["summary"]["logs"]
        assert (log["logStartOffset"], log["logEndOffset"], log["highWatermark"]) == (0, 123, None)


def test_files_that_are_being_written_or_deleted_have_their_state(tieredctl: Tieredctl, node: Path) -> None:
    for name in (f"{kraft_snapshot_name(120, 2)}.part", f"{kraft_snapshot_name(20, 1)}.deleted"):
        (node / name).write_bytes(b"")
    (node / kraft_snapshot_name(0, 0)).write_bytes(snapshot_bytes(0))

    rows = {row["endOffset"]: row for row in tieredctl("snapshot", "ls", node, "-o", "jsonl").lines()}

    assert {offset: row["state"] for offset, row in rows.items()} == {
        0: "bootstrap",
        20: "deleted",
        120: "part",
        **dict.fromkeys((50, 85, 107), "complete"),
    }
    assert rows[120]["mayBeDeleted"] is True
    assert rows[0]["ageMs"] is None


def listed(tieredctl: Tieredctl, node: Path, *words: str) -> dict[int, Any]:
    return {row["endOffset"]: row for row in tieredctl("snapshot", "ls", node, "-o", "jsonl", *words).lines()}


def test_what_retention_no_longer_keeps_may_be_deleted_and_why(tieredctl: Tieredctl, node: Path) -> None:
    week_ms = 7 * 24 * 3_600_000

    later = listed(tieredctl, node, "--now", str(WRITTEN_MS + week_ms + 1))

    assert {offset: row["mayBeDeleted"] for offset, row in later.items()} == {50: True, 85: True, 107: False}
    assert later[50]["reason"] == "its last record is just over 7 d old"
    assert listed(tieredctl, node, "--now", str(WRITTEN_MS + 2 * week_ms))[50]["reason"].endswith(
        " is 14 d old, more than 7 d"
    )
    meta = MetaProperties(KRAFT_VERSION, "5lgVbV_vRSmEjoqjPWDZrA", 1, None)
    (node.parent / "meta.properties").write_bytes(encode_meta_properties(meta))
    (node.parent / "server.properties").write_text("node.id=1\nmetadata.max.retention.ms=1000\n")
    now = listed(tieredctl, node, "--now", str(WRITTEN_MS + 2000))
    assert [row["mayBeDeleted"] for row in now.values()] == [True, True, False]


def test_snapshots_on_both_sides_of_the_log(tieredctl: Tieredctl, node: Path) -> None:
    no_op = encode_kraft_record(KraftRecordType.NO_OP, 0, {})
    (node / "00000000000000000000.log").unlink()
    batch = encode_batch([Record(85, 1, None, no_op), Record(86, 1, None, no_op)], partition_leader_epoch=1)
    (node / "00000000000000000085.log").write_bytes(batch)

    rows = listed(tieredctl, node)

    assert {offset: row["log"] for offset, row in rows.items()} == {50: "before", 85: "within", 107: "after"}
    assert rows[50]["mayBeDeleted"] is True


def test_a_file_of_another_kind_is_wrong_use_not_damage(captures: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    data = captures / "kafka-4.3.1/data"
    text, empty = tmp_path / "hostname", tmp_path / "empty"
    text.write_text("broker-1.example.com\n" * 9)
    empty.touch()
    for file in (text, empty, data / "meta.properties"):
        for words in (
            ("snapshot", "inspect", file),
            ("snapshot", "inspect", file, "--cluster"),
            ("snapshot", "verify", file),
            ("snapshot", "compare", file, file),
            ("doctor", "--kraft-snapshot", file),
        ):
            outcome = tieredctl(*words)

            assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), (words, outcome)
