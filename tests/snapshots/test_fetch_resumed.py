"""`snapshot fetch` goes on with what an earlier run left, and only with bytes of the same snapshot."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.kraft_snapshots import snapshot_bytes, topic_record
from tests.refusals import refused_with
from tieredctl.errors import ErrorCode
from tieredctl.formats.file_names import KraftSnapshotName
from tieredctl.ops.snapshots.fetching import FetchedSnapshot, fetch_snapshot
from tieredctl.ports.snapshot_source import QuorumLeader, SnapshotChunk

TOPIC_ID, OTHER_TOPIC_ID = "AAAAAAAAQAAAAAAAAAAAAQ", "AAAAAAAAQAAAAAAAAAAAAg"
NAME = KraftSnapshotName(2, 1)


@dataclass
class Leader:
    """A `SnapshotSource` whose run is interrupted when it comes to a byte."""

    snapshot: bytes
    stop: int | None = None
    positions: list[int] = field(default_factory=list)

    def leader(self) -> QuorumLeader:
        return QuorumLeader(1, 1, NAME, 0, 10)

    def chunk(self, snapshot: KraftSnapshotName, position: int, max_bytes: int) -> SnapshotChunk:
        self.positions.append(position)
        if self.stop is not None and position >= self.stop:
            raise KeyboardInterrupt
        return SnapshotChunk(len(self.snapshot), self.snapshot[position : position + max_bytes])

    def log_begins_ms(self) -> int | None:
        return None

    def describe(self) -> dict[str, object]:
        return {}


def snapshot_of(timestamp: int, topic_id: str, names: Iterable[str] = ("t",)) -> bytes:
    # As brokers do: what differs at the end leaves the beginning as it is, with all of its checksums.
    return snapshot_bytes(timestamp, *(topic_record(topic_id, name) for name in names), batch_records=1_000)


MANY = [f"t{number:06}" for number in range(20_000)]
PART = f"{2:020}-{1:010}.checkpoint.2-1.controller-1.part"


def interrupted(snapshot: bytes, folder: Path, chunk_bytes: int, stop: int) -> None:
    with suppress(KeyboardInterrupt):
        fetch_snapshot(Leader(snapshot, stop), folder, None, chunk_bytes=chunk_bytes)


def resumed(leader: Leader, folder: Path, chunk_bytes: int) -> FetchedSnapshot:
    return fetch_snapshot(leader, folder, None, chunk_bytes=chunk_bytes)


@pytest.mark.parametrize("chunk_bytes", [1, 16, 61, 100])
@pytest.mark.parametrize("topic_id", [TOPIC_ID, OTHER_TOPIC_ID], ids=["written again", "another cluster's"])
def test_however_small_the_chunks_two_snapshots_are_not_mixed(tmp_path: Path, chunk_bytes: int, topic_id: str) -> None:
    before, now = snapshot_of(1000, TOPIC_ID), snapshot_of(2000, topic_id)
    assert len(before) == len(now)
    interrupted(before, tmp_path, chunk_bytes, stop=200)

    done = resumed(Leader(now), tmp_path, chunk_bytes)

    assert (Path(done.file).read_bytes(), done.resumed_from) == (now, 0)


def test_what_differs_only_at_the_end_of_what_is_left_is_noticed_too(tmp_path: Path) -> None:
    before, now = snapshot_of(1000, TOPIC_ID, MANY), snapshot_of(1000, TOPIC_ID, [*MANY[:-1], "another"])
    assert len(before) == len(now)
    (tmp_path / PART).write_bytes(before[:-1])
    done = resumed(Leader(now), tmp_path, 1 << 14)
    assert (Path(done.file).read_bytes(), done.resumed_from) == (now, 0)


def test_of_the_same_snapshot_only_the_ends_are_fetched_again(tmp_path: Path) -> None:
    whole = snapshot_of(1000, TOPIC_ID, MANY)
    (tmp_path / PART).write_bytes(whole[:-1])
    leader = Leader(whole)

    done = resumed(leader, tmp_path, 1 << 14)

    assert Path(done.file).read_bytes() == whole
    assert done.resumed_from > len(whole) - 200
    assert len(leader.positions) < len(whole) // (1 << 14) // 2


@pytest.mark.parametrize("file", ["", "copy", "below/copy"])
def test_nothing_is_written_among_a_nodes_own_files(tmp_path: Path, file: str) -> None:
    folder = tmp_path / "__cluster_metadata-0"
    (folder / "below").mkdir(parents=True)
    (tmp_path / "link").symlink_to(folder)
    leader = Leader(snapshot_of(1000, TOPIC_ID))

    with refused_with(ErrorCode.USAGE):
        fetch_snapshot(leader, tmp_path / "link" / file, None)
    assert [path.name for path in folder.rglob("*")] == ["below"]
    assert leader.positions == []
