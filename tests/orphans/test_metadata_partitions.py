"""Are these all metadata partitions? Told from where the events of user partitions lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pytest

from tests.metadata_logs import copied, metadata_batches, write_log
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.event_stream import EventStream
from tieredctl.ops.orphans.metadata_partitions import PartitionsHere, partitions_here
from tieredctl.ops.orphans.segment_events import SegmentEvents
from tieredctl.ops.orphans.segment_states import segment_states
from tieredctl.rlmm.partitioner import metadata_partition

MANY = range(200)
"""So many user partitions that no other number of metadata partitions fits where their events are."""


def found(log_dir: Path, user_partitions: Iterable[int], count: int, kept: Sequence[int]) -> PartitionsHere:
    """What is found where of `count` metadata partitions these were kept."""
    events: dict[int, list[bytes]] = {number: [] for number in kept}
    for user in user_partitions:
        partition = TopicIdPartition(uuid_text((user + 1 << 64).to_bytes(16)), "t", user)
        place = metadata_partition(partition.topic_id, partition.partition, count)
        if place in events:
            first = 2 * len(events[place])
            events[place] += metadata_batches(
                copied(user + 1, 0, 9, partition=partition), first_offset=first, records_per_batch=2
            )
    for number, batches in events.items():
        write_log(log_dir, number, batches)
    stream = EventStream(LogDirectories([log_dir]))
    read = SegmentEvents()
    read.read(stream)
    return partitions_here(segment_states(read), stream.source.metadata_partitions())


@pytest.mark.parametrize("count", [1, 2, 4, 5, 50])
def test_all_of_them(tmp_path: Path, count: int) -> None:
    assert found(tmp_path, MANY, count, range(count)) is PartitionsHere.ALL


@pytest.mark.parametrize("kept", [[1, 2, 3], [0, 1, 3], [3]])
def test_numbers_with_a_gap(tmp_path: Path, kept: list[int]) -> None:
    assert found(tmp_path, MANY, 4, kept) is PartitionsHere.NOT_ALL


@pytest.mark.parametrize(("count", "kept"), [(4, 3), (50, 3), (50, 49), (5, 2)])
def test_events_that_would_lie_elsewhere_in_so_few(tmp_path: Path, count: int, kept: int) -> None:
    assert found(tmp_path, MANY, count, range(kept)) is PartitionsHere.NOT_ALL


@pytest.mark.parametrize(("count", "kept"), [(4, 2), (4, 1), (50, 25), (50, 10), (50, 1)])
def test_a_number_that_fits_as_well_as_the_true_one(tmp_path: Path, count: int, kept: int) -> None:
    assert found(tmp_path, MANY, count, range(kept)) is PartitionsHere.PERHAPS_ALL


def test_one_user_partition_tells_little(tmp_path: Path) -> None:
    assert found(tmp_path, [0], 4, range(4)) is PartitionsHere.PERHAPS_ALL


def test_a_topic_without_events_tells_nothing(tmp_path: Path) -> None:
    assert found(tmp_path, [], 4, range(4)) is PartitionsHere.PERHAPS_ALL
