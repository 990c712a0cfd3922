"""`store check` on the local stores of Kafka 3.1 to 3.5: one finding for one thing that is broken."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import Tieredctl
from tieredctl.formats.remote_log_snapshot import (
    RemoteLogSnapshot,
    encode_remote_log_snapshot,
    read_remote_log_snapshot,
)
from tieredctl.model.events import RemoteLogSegmentState


@pytest.fixture
def old_store(captures: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(captures / "rlmm-3.4.1/store", tmp_path / "store"))


def check_old(tieredctl: Tieredctl, captures: Path, store: Path) -> list[dict[str, Any]]:
    outcome = tieredctl("store", "check", store, "--log-dir", captures / "rlmm-3.4.1/data", "-o", "json")
    items: list[dict[str, Any]] = outcome.document()["items"]
    assert outcome.exit_code == (3 if items else 0)
    return items


def rewrite(path: Path, change: Callable[[RemoteLogSnapshot], RemoteLogSnapshot]) -> None:
    snapshot = read_remote_log_snapshot(path.read_bytes())
    assert snapshot is not None
    path.write_bytes(encode_remote_log_snapshot(change(snapshot)))


def test_a_segment_that_a_snapshot_lacks(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    path = old_store / "clicks-1/remote_log_snapshot"
    lost = []

    def without_last(snapshot: RemoteLogSnapshot) -> RemoteLogSnapshot:
        lost.append(snapshot.segments[-1].segment_id)
        return snapshot._replace(segments=[s for s in snapshot.segments if s.segment_id != lost[0]])

    rewrite(path, without_last)
    (finding,) = check_old(tieredctl, captures, old_store)
    assert (finding["code"], finding["subject"]) == ("store-disagrees", str(path))
    assert finding["evidence"]["segmentId"] == lost[0]
    assert finding["evidence"]["topic"] == "clicks"


def test_a_segment_that_the_metadata_lacks(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    stray = read_remote_log_snapshot((old_store / "ledger-0/remote_log_snapshot").read_bytes())
    assert stray is not None
    path = old_store / "clicks-1/remote_log_snapshot"
    rewrite(path, lambda snapshot: snapshot._replace(segments=[*snapshot.segments, stray.segments[0]]))
    (finding,) = check_old(tieredctl, captures, old_store)
    assert (finding["code"], finding["evidence"]["segmentId"]) == ("store-disagrees", stray.segments[0].segment_id)


def test_a_state_that_differs(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    path = old_store / "ledger-2/remote_log_snapshot"

    def all_deleting(snapshot: RemoteLogSnapshot) -> RemoteLogSnapshot:
        first = snapshot.segments[0].segment_id
        changed = [
            replace(s, state=RemoteLogSegmentState.COPY_SEGMENT_STARTED) if s.segment_id == first else s
            for s in snapshot.segments
        ]
        return snapshot._replace(segments=changed)

    rewrite(path, all_deleting)
    (finding,) = check_old(tieredctl, captures, old_store)
    fields = finding["evidence"]["fields"]
    assert fields["state"][0] == "COPY_SEGMENT_STARTED"
    assert fields["state"][1] != "COPY_SEGMENT_STARTED"


def test_events_that_are_committed_but_in_no_snapshot(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    path = old_store / "clicks-1/remote_log_snapshot"
    empty = RemoteLogSnapshot(1, 0, ())
    path.write_bytes(encode_remote_log_snapshot(empty._replace(metadata_partition_offset=-1)))
    (finding,) = check_old(tieredctl, captures, old_store)
    assert finding["evidence"]["unreadEvents"] == 37


def test_a_snapshot_of_another_metadata_partition(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    rewrite(old_store / "clicks-1/remote_log_snapshot", lambda snapshot: snapshot._replace(metadata_partition=3))
    (finding,) = check_old(tieredctl, captures, old_store)
    assert "metadata partition 3" in str(finding["message"])


def test_offsets_that_the_topic_never_had(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    (old_store / "_rlmm_committed_offsets").write_text("0\n4\n0 105\n1 36\n2 1000\n3 36\n")
    (finding,) = check_old(tieredctl, captures, old_store)
    assert finding["evidence"]["metadataOffset"] == 1000
    assert finding["evidence"]["endOffset"] == 157


def test_a_metadata_partition_that_is_not_here_makes_the_answer_incomplete(
    captures: Path, old_store: Path, tieredctl: Tieredctl
) -> None:
    (old_store / "_rlmm_committed_offsets").write_text("0\n5\n0 105\n1 36\n2 156\n3 36\n4 7\n")
    outcome = tieredctl("store", "check", old_store, "--log-dir", captures / "rlmm-3.4.1/data", "-o", "json")
    assert outcome.exit_code == 5
    assert [item["code"] for item in outcome.document()["items"]] == ["unreadable"]


def test_a_damaged_file_is_named(captures: Path, old_store: Path, tieredctl: Tieredctl) -> None:
    """And an empty snapshot proves nothing."""
    for name in ("clicks-0/remote_log_snapshot", "_rlmm_committed_offsets"):
        whole = (old_store / name).read_bytes()
        (old_store / name).write_bytes(whole[:-3])
        (finding,) = check_old(tieredctl, captures, old_store)
        assert (finding["code"], finding["subject"]) == ("store-disagrees", str(old_store / name))
        assert isinstance(finding["evidence"]["position"], int)
        (old_store / name).write_bytes(whole)
    (old_store / "clicks-0/remote_log_snapshot").write_bytes(b"")
    assert check_old(tieredctl, captures, old_store) == []
