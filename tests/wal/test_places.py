"""KIP-1176, "RLMWalCombineTask": which partition of `__remote_wal_log_metadata` has which events."""

from __future__ import annotations

import pytest
from tieredctl_proposals.model.wal_events import WalEvent
from tieredctl_proposals.wal.places import coordinator_partition, object_key, partition_of_event

from tests.metadata_logs import COPIED
from tests.wal_histories import COMBINED, OTHER, combined_started, combined_updated, entry, wal_started, wal_updated
from tieredctl.rlmm.partitioner import metadata_partition


@pytest.mark.parametrize("partitions", [1, 3, 50])
def test_a_consumer_task_that_reads_its_own_metadata_partition_sees_all_of_its_segments_events(partitions: int) -> None:
    events: list[WalEvent] = [wal_started(0, 0, 9, partition=OTHER), wal_updated(0, COPIED, partition=OTHER)]

    assert {partition_of_event(event, partitions) for event in events} == {
        metadata_partition(OTHER.topic_id, OTHER.partition, partitions)
    }


def test_both_events_of_a_combined_object_are_with_its_coordinator() -> None:
    events: list[WalEvent] = [combined_started([entry(0)]), combined_updated([entry(0, 0, 9)], COPIED)]

    assert {partition_of_event(event, 50) for event in events} == {coordinator_partition(COMBINED, 50)}


def test_an_objects_key_is_its_id() -> None:
    assert object_key(COMBINED) == "AAAAAAAAAAEAAAAAAAAAAA.wal"
