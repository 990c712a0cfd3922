"""`snapshot verify` and `snapshot ls`: every format, exit codes, and what may be deleted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tests.kraft_snapshots import snapshot_bytes
from tieredctl.errors import ExitCode
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.meta_properties import KRAFT_VERSION, MetaProperties, encode_meta_properties

LATEST = kraft_snapshot_name(107, 2)
WRITTEN_MS = 1795252456244
"""When the last record in the latest snapshot was written."""
OUTPUTS = ["table", "wide", "json", "jsonl", "yaml", "csv"]


@pytest.fixture
def node(captures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captures / "kafka-4.3.1/data/__cluster_metadata-0", tmp_path / "__cluster_metadata-0"))


def test_a_sound_node_is_verified_and_a_damaged_snapshot_is_corruption(tieredctl: Tieredctl, node: Path) -> None:
    document = tieredctl("snapshot", "verify", node.parent, "-o", "json").document()
    sound = [tieredctl("snapshot", "verify", node.parent, "-o", output).exit_code for output in OUTPUTS]
    (node / LATEST).write_bytes((node / LATEST).read_bytes()[:-75])

    assert document["summary"] == {"snapshots": 3, "confirmed": 3, "segments": 1, "records": 298}
    assert set(sound) == {ExitCode.CLEAN}
    for output in OUTPUTS:
        ended = tieredctl("snapshot", "verify", node, "-o", output)

        assert ended.exit_code == ExitCode.CORRUPTION, output
        assert "kraft-snapshot-damaged" in ended.out, output
        assert "at byte 3630" in ended.out, output


def test_a_path_without_snapshots_is_a_usage_error(tieredctl: Tieredctl, tmp_path: Path, node: Path) -> None:
    """And a log alone is not listed."""
    for name in ("somewhere", LATEST, "00000000000000000000.log"):
        (tmp_path / "empty" / name).mkdir(parents=True)
        for path in (tmp_path / name, tmp_path / "empty" / name):
            for command in ("verify", "ls", "inspect"):
                ended = tieredctl("snapshot", command, path)

                assert (ended.exit_code, str(path) in ended.err) == (ExitCode.USAGE, True), (command, path)
    assert tieredctl("snapshot", "ls", node / "00000000000000000000.log").exit_code == ExitCode.USAGE


def test_any_bytes_are_a_finding(tieredctl: Tieredctl, tmp_path: Path) -> None:
    file = tmp_path / LATEST
    for content in (b"", b"\0" * 500, b"\xff" * 500, b"not a snapshot"):
        file.write_bytes(content)
        for output in ("json", "table"):
            ended = tieredctl("snapshot", "verify", file, "-o", output)
            listed = tieredctl("snapshot", "ls", file, "-o", output)

            assert (ended.exit_code, listed.exit_code) == (ExitCode.CORRUPTION, ExitCode.CORRUPTION), content[:9]
            shown = listed.out
            if output == "json":
                document = listed.document()
                assert {one["code"] for one in document["summary"].pop("findings")} == {"kraft-snapshot-damaged"}
                shown = json.dumps(document)
            assert ("damaged" in shown, "complete" in shown) == (True, False), content[:9]


def test_snapshots_are_listed_in_every_format(tieredctl: Tieredctl, node: Path) -> None:
    listed = {
        output: tieredctl("snapshot", "ls", node, "-o", output, "--now", str(WRITTEN_MS + 1000)) for output in OUTPUTS
    }

    assert {(one.exit_code, LATEST in one.out) for one in listed.values()} == {(ExitCode.CLEAN, True)}
    assert listed["jsonl"].lines()[-1] == {
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
    (log,) = listed["json"].document()["summary"]["logs"]
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


def test_a_file_of_another_kind_is_wrong_use_not_damage(captures: Path, tieredctl: Tieredctl) -> None:
    file = captures / "kafka-4.3.1/data/meta.properties"
    for words in (("inspect", file), ("inspect", file, "--cluster"), ("verify", file), ("compare", file, file)):
        assert tieredctl("snapshot", *words)[:2] == (ExitCode.USAGE, ""), words
    assert tieredctl("doctor", "--kraft-snapshot", file)[:2] == (ExitCode.USAGE, "")


def test_what_a_follower_is_sent(tieredctl: Tieredctl, data: Path) -> None:
    """By a log with epoch 1 from offset 0 and epoch 2 from 86 to 123, whose latest snapshot is 107-2."""
    for at, answer in (
        ("0:0", ("snapshot", 107, 2)),
        ("10:0", ("snapshot", 107, 2)),
        ("50:1", ("records", 50, 1)),
        ("90:1", ("diverging", 86, 1)),
        ("123:2", ("records", 123, 2)),
        ("124:2", ("diverging", 123, 2)),
        ("123:3", ("diverging", 123, 2)),
    ):
        outcome = tieredctl("snapshot", "ls", data, "--follower-at", at, "-o", "json")

        (log,) = outcome.document()["summary"]["logs"]
        follower = log["follower"]
        assert outcome.exit_code == ExitCode.CLEAN
        assert (follower["answer"], follower["endOffset"], follower["epoch"]) == answer, at


def test_what_is_no_offset_and_epoch_or_a_single_snapshot_is_a_usage_error(tieredctl: Tieredctl, data: Path) -> None:
    wrong = (
        "",
        "5",
        "5:",
        ":1",
        "-1:0",
        "5:-1",
        "1e3:1",
        "\u0665:1",
        f"{1 << 63}:0",
        f"0:{1 << 31}",
        "9" * 9_999 + ":1",
    )
    snapshot = next((data / "__cluster_metadata-0").glob("*.checkpoint"))
    for place, at in (*((data, at) for at in wrong), (snapshot, "0:0")):
        outcome = tieredctl("snapshot", "ls", place, f"--follower-at={at}")

        assert (outcome.exit_code, outcome.out) == (ExitCode.USAGE, ""), at[:9]
