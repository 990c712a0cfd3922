"""`metadata lookup` without --epoch: whose line of leaders tells which epoch owns the offset, and when none does."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.metadata_command import CLEAN, FINDINGS, INCOMPLETE, Metadata, Outcome
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


CHECKPOINT, SEGMENTS = "leader-epoch-checkpoint", "segments"


def lookup(metadata: Metadata, log_dir: Path, offset: int, *words: str) -> Outcome:
    return metadata("lookup", "t:0", "--offset", str(offset), "--log-dir", log_dir, "-o", "json", *words)


def demand_owners(metadata: Metadata, log_dir: Path, *owners: tuple[int, int, int, str]) -> None:
    """That lookups of these offsets find these leader epochs and segments, and by what."""
    for offset, epoch, segment, source in owners:
        found = lookup(metadata, log_dir, offset)
        summary = found.document["summary"]
        assert (found.code, summary["leaderEpoch"], summary["leaderEpochFrom"]) == (CLEAN, epoch, source), offset
        assert [item["segmentId"] for item in found.document["items"]] == [segment_id(segment)], offset


def test_the_checkpoint_decides_where_segments_overlap(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *TRUNCATED)
    write_replica(tmp_path, (0, 0), (1, 10))

    demand_owners(metadata, tmp_path, (9, 0, 1, CHECKPOINT), *((offset, 1, 2, CHECKPOINT) for offset in (10, 19, 25)))
    # One of today says nothing of the past.
    assert lookup(metadata, tmp_path, 12, "--as-of", "2033-01-01").code == INCOMPLETE


def test_without_a_checkpoint_segments_that_agree_tell_the_epoch(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 10, 19, {0: 10, 1: 15}))

    demand_owners(metadata, tmp_path, (12, 0, 2, SEGMENTS), (15, 1, 2, SEGMENTS), (3, 0, 1, SEGMENTS))


def test_where_segments_leave_a_choice_the_answer_is_unknown(metadata: Metadata, tmp_path: Path) -> None:
    began_below = [*copied(1, 0, 19, {0: 0}), started(2, 10, 29, {1: 10})]
    later_reason = "leader epoch 0 has a segment with offset 12, but leader epoch 1 begins at 10"
    for name, events, reason in (
        ("two", TRUNCATED, "leader epochs 0 and 1 have segments with offset 12"),
        ("later", began_below, later_reason),
    ):
        write_events(tmp_path / name, *events)

        found = lookup(metadata, tmp_path / name, 12)

        assert (found.code, found.document["items"]) == (INCOMPLETE, []), name
        assert found.document["summary"]["reason"] == reason


def test_a_replica_that_was_left_behind_does_not_hide_later_leaders(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 19, {0: 0}), *copied(2, 20, 29, {2: 20}))
    write_replica(tmp_path, (0, 0))

    demand_owners(metadata, tmp_path, (5, 0, 1, CHECKPOINT), (25, 2, 2, SEGMENTS))


def test_where_no_segment_has_the_offset_nothing_serves_it(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path / "between", *copied(1, 0, 9, {0: 0}), *copied(2, 20, 29, {1: 20}))
    write_events(tmp_path / "outside", *copied(1, 10, 19, {0: 10}))

    for name, offset in (("between", 15), ("outside", 9), ("outside", 20)):
        found = lookup(metadata, tmp_path / name, offset)
        assert (found.code, found.document["items"]) == (FINDINGS, []), (name, offset)


def test_of_several_replicas_the_one_with_the_latest_leader_decides(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path / "a", *TRUNCATED)
    write_replica(tmp_path / "a", (0, 0))
    write_replica(tmp_path / "b", (0, 0), (1, 10))
    (tmp_path / "b/__remote_log_metadata-1").mkdir()

    found = lookup(metadata, tmp_path / "a", 12, "--log-dir", str(tmp_path / "b"))

    assert found.document["summary"]["leaderEpoch"] == 1


def test_a_checkpoint_that_may_not_be_sound_proves_nothing(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9))
    write_replica(tmp_path, (7, 0))
    (tmp_path / "t-0/leader-epoch-checkpoint").write_bytes(b"0\n2\n7 0\n")

    assert lookup(metadata, tmp_path, 3).document["summary"]["leaderEpochFrom"] == SEGMENTS
