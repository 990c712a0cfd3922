"""A replica of the metadata log as Kafka's own metadata log has it: what a follower is told, what retention deletes."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.metadata_quorum_files import MetadataFolder
from tests.rigs.line_program import LineProgram
from tests.rigs.maven import kafka_jars
from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.kraft.follower import Answer, follower_answer
from tieredctl.kraft.replica import EpochStart, Replica, SnapshotId
from tieredctl.kraft.retention import KeptSegment, KeptSnapshot, RetentionLimits, expired
from tieredctl.wiring.offline_cluster import read_replica

NOW_MS = 1_000_000
KINDS = {Answer.RECORDS: "VALID", Answer.SNAPSHOT: "SNAPSHOT", Answer.DIVERGING: "DIVERGING"}


@pytest.fixture(scope="module")
def kafka() -> Iterator[LineProgram]:
    with LineProgram(kafka_jars("4.3.1"), "MetadataLogOracle") as program:
        yield program


def random_folder(path: Path, chance: random.Random) -> dict[SnapshotId, int]:
    """Some history of a node; gives when the last record in each snapshot was written."""
    folder = MetadataFolder(path, end_offset=chance.choice([0, 0, 7]))
    began = folder.end_offset
    as_of: dict[SnapshotId, int] = {}
    if began:
        as_of[SnapshotId(1, began)] = 100
        folder.snapshot(100)
    for _ in range(chance.randint(0, 12)):
        folder.epoch += chance.choice([0, 0, 0, 1, 3])
        if chance.random() < 0.3:
            folder.roll()
        for _ in range(chance.randint(1, 4)):
            folder.append()
        if chance.random() < 0.5:
            written = chance.randint(1, NOW_MS)
            folder.snapshot(written)
            as_of[SnapshotId(folder.epoch, folder.end_offset)] = written
    if folder.end_offset == began:
        folder.append()
    return as_of


def ours(replica: Replica, offset: int, epoch: int) -> list[object]:
    told = follower_answer(replica, offset, epoch)
    return [KINDS[told.answer], told.end_offset, told.epoch]


@pytest.mark.integration
def test_a_follower_is_told_what_kafka_tells_it_and_the_same_files_go(tmp_path: Path, kafka: LineProgram) -> None:
    seen, gone = set(), 0
    for seed in range(30):
        chance = random.Random(seed)
        path = tmp_path / f"{seed}" / "__cluster_metadata-0"
        as_of = random_folder(path, chance)
        limits = RetentionLimits(chance.choice([-1, 500_000, 10**9]), chance.choice([-1, 0, 600, 1500, 10**6]))
        log = MetadataLog.opened(path)
        replica = read_replica(path)
        epochs = range(-1, replica.epochs[-1].epoch + 2)
        # The client's rule for offset 0 is in KafkaRaftClient, before its log is asked.
        asked = [(offset, epoch) for offset in range(1, replica.log_end_offset + 2) for epoch in epochs]
        mine = [ours(replica, *one) for one in asked]
        snapshots = [KeptSnapshot(one, (path / one.file_name).stat().st_size, as_of[one]) for one in replica.snapshots]
        segments = [KeptSegment(one.base_offset, one.size) for one in log.segments]
        may_go = expired(snapshots, segments, limits, NOW_MS)

        answer = kafka.ask(
            [f"{path} {limits.max_age_ms} {limits.max_bytes} {NOW_MS} " + " ".join(f"{a}:{b}" for a, b in asked)]
        )

        assert mine == answer["answers"], seed
        names = set(answer["cleaned"])
        deleted = {one for one in replica.snapshots if f"{one.file_name}.deleted" in names}
        assert set(may_go.snapshots) == deleted, seed
        assert set(may_go.segments) == {int(name[:20]) for name in names if name.endswith(".log.deleted")}, seed
        assert not may_go.snapshots or may_go.log_start_offset == answer["logStartOffset"]
        seen |= {kind for kind, *_ in answer["answers"]}
        gone += len(deleted)
    assert seen == {"VALID", "SNAPSHOT", "DIVERGING"}
    assert gone > 10


def test_an_empty_follower_is_sent_the_latest_snapshot_though_the_log_begins_at_0() -> None:
    replica = Replica(0, 30, [EpochStart(1, 0)], [SnapshotId(1, 10), SnapshotId(1, 20)])
    told = follower_answer(replica, 0, 0)
    assert (told.answer, told.end_offset, told.epoch) == (Answer.SNAPSHOT, 20, 1)
    # Nobody is sent the bootstrap snapshot.
    replica = Replica(0, 30, [EpochStart(1, 0)], [SnapshotId(0, 0)])
    assert follower_answer(replica, 0, 0).answer is Answer.RECORDS
    # Snapshots order by epoch first.
    assert sorted([SnapshotId(2, 10), SnapshotId(1, 20)]) == [SnapshotId(1, 20), SnapshotId(2, 10)]
