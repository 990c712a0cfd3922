"""A healing that is killed between any two steps, and run again: the same end."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recovery.segments_to_heal import CapturedCluster, own_objects, parts_in
from tests.recovery.test_indexes_interrupted import AFTER_THE_LEASE_MS
from tests.rigs.mortal_store import Killed, MortalStore
from tieredctl.kafka.replica_segments import ReplicaDirectories
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.healing.healing import Healing, HealingOutcome
from tieredctl.ops.healing.object_writing import FreshSegments
from tieredctl.ports.layout import Part

CASES = {
    "kafka-4.3.1": (Part.LOG, Part.TIME_INDEX, Part.LEADER_EPOCH),
    "aiven-zstd-encrypted-4.3.1": (Part.MANIFEST, Part.LOG),
}
"""The objects of one segment that are lost or damaged: every second."""


@pytest.fixture(scope="module", params=CASES)
def cluster(request: pytest.FixtureRequest, captures: Path) -> CapturedCluster:
    return CapturedCluster(captures / request.param, request.param)


@pytest.fixture(scope="module")
def disk(cluster: CapturedCluster, tmp_path_factory: pytest.TempPathFactory) -> ReplicaDirectories:
    return ReplicaDirectories.of([cluster.disk(tmp_path_factory.mktemp("disk"))])


def broken_store(cluster: CapturedCluster, metadata: RemoteLogSegmentMetadata) -> MortalStore:
    store = MortalStore()
    for key, data in cluster.objects.items():
        store.put(key, data)
    for number, part in enumerate(CASES[cluster.name]):
        key = cluster.keys(metadata)[part]
        del store._objects[key]
        if number % 2:
            store.put(key, b"garbage")
    return store


def run(
    cluster: CapturedCluster,
    store: MortalStore,
    metadata: RemoteLogSegmentMetadata,
    disk: ReplicaDirectories,
    now_ms: int = 0,
) -> HealingOutcome:
    """One run of the command: a plan, and what becomes of it."""
    store.now_ms = now_ms
    healer = cluster.healer(store, disks=disk)
    plan = cluster.plan(healer, metadata)
    fresh = FreshSegments(cluster.stream, store.clock_ms)
    with lease_held(store, "heal", store.clock_ms) as lease:
        return Healing([plan], healer, store, fresh, lambda _topic: 4_096).run(lease)


def test_killed_anywhere_a_second_run_ends_where_one_run_would(
    cluster: CapturedCluster, disk: ReplicaDirectories
) -> None:
    metadata = next(one for one in cluster.finished if one.start_offset > 0)
    whole = broken_store(cluster, metadata)
    assert run(cluster, whole, metadata, disk).is_complete

    for boundary in range(1, whole.boundaries + 1):
        store = broken_store(cluster, metadata)
        store.kill_at = boundary
        with pytest.raises(Killed):
            run(cluster, store, metadata, disk)
        store.kill_at = None
        outcome = run(cluster, store, metadata, disk, AFTER_THE_LEASE_MS)

        assert outcome.is_complete, (boundary, outcome.stopped)
        assert own_objects(store).keys() == own_objects(whole).keys()
        assert parts_in(store, cluster.layout, metadata) == cluster.parts(metadata)
