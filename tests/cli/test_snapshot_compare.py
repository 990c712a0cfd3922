"""`snapshot compare` on what real clusters left."""

from __future__ import annotations

import shutil
from pathlib import Path

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


def test_words_in_every_format(tieredctl: Tieredctl, captures: Path) -> None:
    for output in ("table", "wide", "csv", "yaml", "jsonl"):
        outcome = tieredctl("snapshot", "compare", captures / FOLDER / BEFORE, captures / FOLDER, "-o", output)

        assert outcome.exit_code == ExitCode.CLEAN, output
        assert "config topic gone7: segment.ms was removed: value 400" in outcome.out, output
        assert "brokerEpoch 11 -> 88" in outcome.out, output
    assert {"kind", "subject", "before", "after"} <= set(outcome.lines()[0])


def test_records_of_a_later_release_and_such_as_do_not_fit_make_the_answer_incomplete(
    tieredctl: Tieredctl, tmp_path: Path
) -> None:
    known = write_snapshot(tmp_path / "a", 1, topic_record(TOPIC_ID))
    later = write_snapshot(tmp_path / "b", 1, topic_record(TOPIC_ID), bytes([1, 99, 0]), bytes([1, 99, 0]))
    odd = write_snapshot(tmp_path / "c", 1, topic_record(TOPIC_ID), remove_topic_record(OTHER_TOPIC_ID))
    for snapshot, code, what in (
        (later, "kraft-record-unknown", "99, version 0"),
        (odd, "kraft-record-refused", OTHER_TOPIC_ID),
    ):
        table = tieredctl("snapshot", "compare", known, snapshot)
        document = tieredctl("snapshot", "compare", known, snapshot, "-o", "json").document()

        assert (table.exit_code, document["items"]) == (ExitCode.INCOMPLETE, []), code
        assert code in table.err
        assert what in table.err


def test_what_is_not_whole_renamed_or_of_another_cluster_is_refused(
    tieredctl: Tieredctl, captures: Path, tmp_path: Path
) -> None:
    cut, flipped, renamed, empty = (tmp_path / name / "__cluster_metadata-0" for name in ("c", "f", "r", "e"))
    for folder in (cut, flipped, renamed):
        shutil.copytree(captures / FOLDER, folder)
        (folder / LATEST).chmod(0o600)
    empty.mkdir(parents=True)
    data = (captures / FOLDER / LATEST).read_bytes()
    (cut / LATEST).write_bytes(data[:-10])
    (flipped / LATEST).write_bytes(data[:500] + bytes([data[500] ^ 1]) + data[501:])
    (renamed / LATEST).rename(renamed / LATEST.replace("-0000000002", "-0000000003"))
    for folder, code in (
        (tmp_path / "nowhere", ExitCode.USAGE),
        (empty, ExitCode.USAGE),
        (captures / "kafka-3.9.1/data", ExitCode.USAGE),
        (cut, ExitCode.CORRUPTION),
        (flipped, ExitCode.CORRUPTION),
        (renamed, ExitCode.CORRUPTION),
    ):
        outcome = tieredctl("snapshot", "compare", captures / FOLDER, folder)

        assert (outcome.exit_code, outcome.out) == (code, ""), folder


def test_without_cluster_ids_two_clusters_that_share_no_topic_are_refused(tieredctl: Tieredctl, tmp_path: Path) -> None:
    """One that has no topics at all may have deleted them."""
    before = write_snapshot(tmp_path / "before", 1, topic_record(TOPIC_ID))
    for others, code in (((OTHER_TOPIC_ID,), ExitCode.USAGE), ((), ExitCode.CLEAN)):
        after = write_snapshot(tmp_path / f"after-{code}", 1, *map(topic_record, others))

        assert tieredctl("snapshot", "compare", before, after).exit_code == code
