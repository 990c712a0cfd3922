"""`snapshot compare` on what real clusters left."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.kraft_snapshots import remove_topic_record, topic_record, write_snapshot
from tieredctl.errors import ExitCode
from tieredctl.model.ids import uuid_text

TOPIC_ID, OTHER_TOPIC_ID = uuid_text(bytes(range(16))), uuid_text(bytes(range(1, 17)))
FOLDER = "kafka-4.3.1/data/__cluster_metadata-0"
BEFORE, LATEST = "00000000000000000085-0000000001.checkpoint", "00000000000000000107-0000000002.checkpoint"


def test_the_end_of_the_log_has_what_came_after_the_snapshot(tieredctl: Tieredctl, captures: Path) -> None:
    outcome = tieredctl("snapshot", "compare", captures / FOLDER / BEFORE, captures / FOLDER, "-o", "json")

    document = outcome.document()
    assert outcome.exit_code == ExitCode.CLEAN
    gone = [item for item in document["items"] if item["change"] == "removed"]
    assert {item["subject"] for item in gone if item["kind"] == "topic"} == {"gone7"}
    assert (document["source"]["before"]["endOffset"], document["source"]["after"]["endOffset"]) == (85, 123)
    summary = document["summary"]
    assert summary["changes"] == len(document["items"]) == sum(summary["byKind"].values())
    assert summary["records"] == 38
    assert summary["snapshotBytesRatio"] == round(3705 / 3855, 4)
    assert summary["logBytesRatio"] == round(summary["logBytes"] / 3705, 4)


def test_a_log_directory_a_folder_and_a_link_are_the_same_point(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(captures / FOLDER)

    for path in (captures / "kafka-4.3.1/data", tmp_path / "link"):
        assert tieredctl("snapshot", "compare", captures / FOLDER, path, "-o", "jsonl").out == ""


@pytest.mark.parametrize("output", ["table", "wide", "csv", "yaml", "jsonl"])
def test_words_in_every_format(tieredctl: Tieredctl, captures: Path, output: str) -> None:
    outcome = tieredctl("snapshot", "compare", captures / FOLDER / BEFORE, captures / FOLDER, "-o", output)

    assert outcome.exit_code == ExitCode.CLEAN
    assert "config topic gone7: segment.ms was removed: value 400" in outcome.out
    assert "brokerEpoch 11 -> 88" in outcome.out


def test_snapshots_of_two_clusters_are_refused(tieredctl: Tieredctl, captures: Path) -> None:
    outcome = tieredctl("snapshot", "compare", captures / "kafka-3.9.1/data", captures / "kafka-4.3.1/data")

    assert outcome.exit_code == ExitCode.USAGE
    assert "is from cluster" in outcome.err


def test_records_of_a_later_release_make_the_answer_incomplete(tieredctl: Tieredctl, tmp_path: Path) -> None:
    known = write_snapshot(tmp_path / "a", 1, topic_record(TOPIC_ID))
    later = write_snapshot(tmp_path / "b", 1, topic_record(TOPIC_ID), bytes([1, 99, 0]), bytes([1, 99, 0]))

    outcome = tieredctl("snapshot", "compare", known, later, "-o", "json")

    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert outcome.document()["items"] == []
    table = tieredctl("snapshot", "compare", known, later)
    assert "kraft-record-unknown" in table.err
    assert "99, version 0" in table.err


def test_a_record_that_does_not_fit_is_told_with_its_offset(tieredctl: Tieredctl, tmp_path: Path) -> None:
    known = write_snapshot(tmp_path / "a", 1, topic_record(TOPIC_ID))
    odd = write_snapshot(tmp_path / "b", 1, topic_record(TOPIC_ID), remove_topic_record(OTHER_TOPIC_ID))

    outcome = tieredctl("snapshot", "compare", known, odd)

    assert outcome.exit_code == ExitCode.INCOMPLETE
    assert "kraft-record-refused" in outcome.err
    assert OTHER_TOPIC_ID in outcome.err


@pytest.mark.parametrize(
    ("damage", "code"),
    [("missing", ExitCode.USAGE), ("cut", ExitCode.CORRUPTION), ("flipped", ExitCode.CORRUPTION), ("empty", 2)],
)
def test_what_is_not_whole_ends_in_a_sentence(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path, damage: str, code: int
) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(captures / FOLDER, folder)
    latest = folder / LATEST
    latest.chmod(0o600)
    data = latest.read_bytes()
    if damage == "missing":
        folder = tmp_path / "nowhere"
    elif damage == "cut":
        latest.write_bytes(data[:-10])
    elif damage == "flipped":
        latest.write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    else:
        shutil.rmtree(folder)
        folder.mkdir()

    outcome = tieredctl("snapshot", "compare", captures / FOLDER, folder)

    assert outcome.exit_code == code
    assert "Traceback" not in outcome.err
    assert outcome.out == ""


def test_a_snapshot_that_was_renamed_is_refused(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    shutil.copytree(captures / FOLDER, folder)
    (folder / LATEST).rename(folder / LATEST.replace("-0000000002", "-0000000003"))

    outcome = tieredctl("snapshot", "compare", captures / FOLDER, folder)

    assert outcome.exit_code == ExitCode.CORRUPTION
    assert "has records of epoch 2" in outcome.err


def test_jsonl_is_a_change_a_line(tieredctl: Tieredctl, captures: Path) -> None:
    outcome = tieredctl("snapshot", "compare", captures / FOLDER / BEFORE, captures / FOLDER, "-o", "jsonl")

    lines = [json.loads(line) for line in outcome.out.splitlines()]
    assert {"kind", "subject", "before", "after"} <= set(lines[0])


@pytest.mark.parametrize("others", [(OTHER_TOPIC_ID,), ()])
def test_without_cluster_ids_two_clusters_that_share_no_topic_are_refused(
    tieredctl: Tieredctl, tmp_path: Path, others: tuple[str, ...]
) -> None:
    """One that has no topics at all may have deleted them."""
    before = write_snapshot(tmp_path / "before", 1, topic_record(TOPIC_ID))
    after = write_snapshot(tmp_path / "after", 1, *map(topic_record, others))

    outcome = tieredctl("snapshot", "compare", before, after)

    assert outcome.exit_code == (ExitCode.USAGE if others else ExitCode.CLEAN)
    assert ("no topic id in common" in outcome.err) is bool(others)
