"""`metadata lookup` without --epoch: whose line of leaders tells which epoch owns the offset, and when none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.metadata_command import CLEAN, FINDINGS, INCOMPLETE, Metadata
from tests.metadata_logs import TOPIC_ID, copied, segment_id, started, write_events
from tieredctl.formats.checkpoints import EpochEntry, encode_leader_epoch_checkpoint

TRUNCATED = [*copied(1, 0, 19, {0: 0}), *copied(2, 10, 29, {1: 10})]
"""Leader epoch 1 began at 10, after epoch 0 had copied up to 19: an unclean election."""


def write_replica(log_dir: Path, *epochs: tuple[int, int]) -> None:
    """What a broker's disk has of t-0 with these leader epochs."""
    folder = log_dir / "t-0"
    folder.mkdir(parents=True)
    (folder / "partition.metadata").write_text(f"version: 0\ntopic_id: {TOPIC_ID}\n")
    (folder / "00000000000000000030.log").write_bytes(b"")
    (folder / "leader-epoch-checkpoint").write_bytes(
        encode_leader_epoch_checkpoint([EpochEntry(*epoch) for epoch in epochs])
    )


@pytest.mark.parametrize("capture", ["kafka-3.9.1", "kafka-4.3.1"])
def test_a_log_directory_of_a_real_broker_tells_the_epoch(metadata: Metadata, captures: Path, capture: str) -> None:
    log_dir = captures / capture / "data"
    segment = metadata("segments", "--log-dir", log_dir, "-o", "json").document["items"][0]
    name, offset = f"{segment['topic']}:{segment['partition']}", str(segment["startOffset"])
    where = ("lookup", name, "--offset", offset, "--log-dir", log_dir, "-o", "json")

    found = metadata(*where)

    summary = found.document["summary"]
    assert (found.code, summary["leaderEpochFrom"]) == (CLEAN, "leader-epoch-checkpoint")
    with_epoch = metadata(*where, "--epoch", str(summary["leaderEpoch"])).document
    assert found.document["items"] == with_epoch["items"] != []
    assert "leaderEpoch" not in with_epoch["summary"]
    assert metadata(*where[:-1], "table", "--epoch", str(summary["leaderEpoch"])).err == ""


@pytest.mark.parametrize(("offset", "epoch", "segment"), [(9, 0, 1), (10, 1, 2), (19, 1, 2), (25, 1, 2)])
def test_the_checkpoint_decides_where_segments_overlap(
    metadata: Metadata, tmp_path: Path, offset: int, epoch: int, segment: int
) -> None:
    write_events(tmp_path, *TRUNCATED)
    write_replica(tmp_path, (0, 0), (1, 10))

    found = metadata("lookup", "t:0", "--offset", str(offset), "--log-dir", tmp_path, "-o", "json")

    assert (found.code, found.document["summary"]["leaderEpoch"]) == (CLEAN, epoch)
    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(segment)]


def test_of_several_replicas_the_one_with_the_latest_leader_decides(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path / "a", *TRUNCATED)
    write_replica(tmp_path / "a", (0, 0))
    write_replica(tmp_path / "b", (0, 0), (1, 10))
    (tmp_path / "b/__remote_log_metadata-1").mkdir()

    found = metadata(
        *("lookup", "t:0", "--offset", "12", "--log-dir", tmp_path / "a", "--log-dir", tmp_path / "b", "-o", "json")
    )

    assert found.document["summary"]["leaderEpoch"] == 1


@pytest.mark.parametrize(("offset", "epoch", "segment"), [(12, 0, 2), (15, 1, 2), (3, 0, 1)])
def test_without_a_checkpoint_segments_that_agree_tell_the_epoch(
    metadata: Metadata, tmp_path: Path, offset: int, epoch: int, segment: int
) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 10, 19, {0: 10, 1: 15}))

    found = metadata("lookup", "t:0", "--offset", str(offset), "--log-dir", tmp_path, "-o", "json")
    told = metadata("lookup", "t:0", "--offset", str(offset), "--log-dir", tmp_path)

    summary = found.document["summary"]
    assert (found.code, summary["leaderEpoch"], summary["leaderEpochFrom"]) == (CLEAN, epoch, "segments")
    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(segment)]
    assert told.err == f"Leader epoch {epoch} owns it (by the segments).\n"


@pytest.mark.parametrize(
    ("events", "reason"),
    [
        (TRUNCATED, "leader epochs 0 and 1 have segments with offset 12"),
        (
            [*copied(1, 0, 19, {0: 0}), started(2, 10, 29, {1: 10})],
            "leader epoch 0 has a segment with offset 12, but leader epoch 1 begins at 10",
        ),
    ],
    ids=["two epochs hold it", "a later leader began below"],
)
def test_where_segments_leave_a_choice_the_answer_is_unknown(
    metadata: Metadata, tmp_path: Path, events: list[object], reason: str
) -> None:
    write_events(tmp_path, *events)  # type: ignore[arg-type]

    found = metadata("lookup", "t:0", "--offset", "12", "--log-dir", tmp_path, "-o", "json")
    told = metadata("lookup", "t:0", "--offset", "12", "--log-dir", tmp_path)

    assert (found.code, told.code, found.document["items"]) == (INCOMPLETE, INCOMPLETE, [])
    assert found.document["summary"]["reason"] == reason
    assert told.err == f"Which leader epoch owns it is unknown: {reason}. Give --epoch.\n"


@pytest.mark.parametrize(("offset", "epoch", "source"), [(5, 0, "leader-epoch-checkpoint"), (25, 2, "segments")])
def test_a_replica_that_was_left_behind_does_not_hide_later_leaders(
    metadata: Metadata, tmp_path: Path, offset: int, epoch: int, source: str
) -> None:
    write_events(tmp_path, *copied(1, 0, 19, {0: 0}), *copied(2, 20, 29, {2: 20}))
    write_replica(tmp_path, (0, 0))

    found = metadata("lookup", "t:0", "--offset", str(offset), "--log-dir", tmp_path, "-o", "json")

    summary = found.document["summary"]
    assert (found.code, summary["leaderEpoch"], summary["leaderEpochFrom"]) == (CLEAN, epoch, source)


def test_where_no_segment_has_the_offset_segments_do_not_tell_its_owner(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9, {0: 0}), *copied(2, 20, 29, {1: 20}))

    found = metadata("lookup", "t:0", "--offset", "15", "--log-dir", tmp_path)

    why = "offset 15 is above 9, the highest copied for leader epoch 0"
    assert (found.code, found.err) == (FINDINGS, f"No segment serves it: {why}.\n")


@pytest.mark.parametrize("offset", ["9", "20"])
def test_outside_of_all_segments_nothing_serves_it(metadata: Metadata, tmp_path: Path, offset: str) -> None:
    write_events(tmp_path, *copied(1, 10, 19, {0: 10}))

    found = metadata("lookup", "t:0", "--offset", offset, "--log-dir", tmp_path)

    assert (found.code, "No segment serves it: " in found.err) == (FINDINGS, True)


def test_a_checkpoint_of_today_says_nothing_of_the_past(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *TRUNCATED)
    write_replica(tmp_path, (0, 0), (1, 10))

    found = metadata("lookup", "t:0", "--offset", "12", "--log-dir", tmp_path, "--as-of", "2033-01-01")

    assert found.code == INCOMPLETE


def test_a_checkpoint_that_may_not_be_sound_proves_nothing(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9))
    write_replica(tmp_path, (7, 0))
    (tmp_path / "t-0/leader-epoch-checkpoint").write_bytes(b"0\n2\n7 0\n")

    found = metadata("lookup", "t:0", "--offset", "3", "--log-dir", tmp_path, "-o", "json")

    assert found.document["summary"]["leaderEpochFrom"] == "segments"
