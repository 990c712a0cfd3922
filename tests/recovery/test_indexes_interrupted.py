"""A recovery of indexes that is killed between any two steps, and run again: the same end."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured
from tests.rigs.mortal_store import Killed, MortalStore
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.guards.own_objects import CLOCK_KEY, LEASE_KEY
from tieredctl.ops.healing.index_applying import IndexRecovery, IndexRecoveryOutcome
from tieredctl.ops.healing.index_plan import plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.layout import Part

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
INTERVAL = 4_096
AFTER_THE_LEASE_MS = 3_600_000


@pytest.fixture(scope="module")
def broken(captures: Path) -> Cluster:
    """A segment with two parts missing and two damaged."""
    whole = captured(captures / "kafka-4.3.1")
    metadata = next(one for one in whole.finished() if one.segment_id == SEGMENT_ID)
    cluster = whole.only(metadata.topic_id_partition)
    for part in (Part.OFFSET_INDEX, Part.TRANSACTION_INDEX):
        cluster = cluster.without_part(metadata, part)
    for part in (Part.TIME_INDEX, Part.PRODUCER_SNAPSHOT):
        cluster = cluster.with_part(metadata, part, b"garbage")
    return cluster


def store_of(cluster: Cluster) -> MortalStore:
    store = MortalStore()
    for key, data in cluster.objects.items():
        store.put(key, data)
    return store


def run(cluster: Cluster, store: MortalStore, now_ms: int = 0) -> IndexRecoveryOutcome:
    """One run of the command: a plan, and what becomes of it."""

    def read() -> EventStream:
        return EventStream(EventsInMemory(cluster.events))

    store.now_ms = now_ms
    plan = plan_index_recovery(SegmentsOnce.of(read()).finished(SEGMENT_ID), store, LAYOUT, INTERVAL)
    with lease_held(store, "recover indexes", store.clock_ms) as lease:
        return IndexRecovery([plan], store, read, lambda: 0).run(lease)


def objects(store: MortalStore) -> dict[str, bytes]:
    """All but the lease and the clock, each writing of which is another."""
    return {one.key: store.read(one.key) for one in store.list() if one.key not in (LEASE_KEY, CLOCK_KEY)}


def metadata_of(cluster: Cluster) -> RemoteLogSegmentMetadata:
    return next(one for one in cluster.finished() if one.segment_id == SEGMENT_ID)


def test_killed_anywhere_a_second_run_ends_where_one_run_would(broken: Cluster) -> None:
    whole = store_of(broken)
    assert run(broken, whole).is_complete

    for boundary in range(1, whole.boundaries + 1):
        store = store_of(broken)
        store.kill_at = boundary
        with pytest.raises(Killed):
            run(broken, store)
        store.kill_at = None
        outcome = run(broken, store, AFTER_THE_LEASE_MS)

        assert outcome.is_complete
        assert objects(store) == objects(whole)


def test_killed_again_and_again_it_still_ends(broken: Cluster) -> None:
    whole, store = store_of(broken), store_of(broken)
    run(broken, whole)

    for number in range(whole.boundaries):
        store.kill_at = store.boundaries + 11
        try:
            outcome = run(broken, store, number * AFTER_THE_LEASE_MS)
        except Killed:
            continue
        break

    assert outcome.is_complete
    assert objects(store) == objects(whole)


def test_indexes_of_a_segment_whose_metadata_changed_since_the_plan_are_not_written(broken: Cluster) -> None:
    store = store_of(broken)
    plan = plan_index_recovery(
        SegmentsOnce.of(EventStream(EventsInMemory(broken.events))).finished(SEGMENT_ID), store, LAYOUT, INTERVAL
    )
    before = objects(store)
    other = [
        replace(one, segment_size_in_bytes=one.segment_size_in_bytes + 1)
        if isinstance(one, RemoteLogSegmentMetadata) and one.segment_id == SEGMENT_ID
        else one
        for one in broken.events
    ]

    with lease_held(store, "recover indexes", lambda: 0) as lease:
        outcome = IndexRecovery([plan], store, lambda: EventStream(EventsInMemory(other)), lambda: 0).run(lease)

    assert outcome.stopped is not None
    assert outcome.stopped.code == "world-changed"
    assert objects(store) == before
