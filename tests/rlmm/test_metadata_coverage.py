"""Which metadata partitions are here, which are missing: told from where the events of user partitions lie."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.metadata_logs import copied, metadata_batches, write_log
from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.ops.metadata.coverage import MetadataCoverage, MetadataPlaces, numbers_text
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.partitioner import metadata_partition

MANY = range(200)
"""So many user partitions that no other number of metadata partitions fits where their events are."""


def user_partition(number: int) -> TopicIdPartition:
    return TopicIdPartition(uuid_text((number + 1 << 64).to_bytes(16)), "t", number)


@dataclass(frozen=True)
class Found:
    """What was known of a log directory before its events were read, and afterwards."""

    before: MetadataCoverage
    after: MetadataCoverage
    codes: list[str]


def found(log_dir: Path, user_partitions: Iterable[int], count: int, kept: Sequence[int]) -> Found:
    """Where of `count` metadata partitions these were kept."""
    events: dict[int, list[bytes]] = {number: [] for number in kept}
    for user in user_partitions:
        partition = user_partition(user)
        place = metadata_partition(partition.topic_id, partition.partition, count)
        if place in events:
            first = 2 * len(events[place])
            events[place] += metadata_batches(
                copied(user + 1, 0, 9, partition=partition), first_offset=first, records_per_batch=2
            )
    for number, batches in events.items():
        write_log(log_dir, number, batches)
    stream = EventStream(LogDirectories([log_dir]))
    before = stream.coverage
    for _ in stream.records():
        pass
    return Found(before, stream.coverage, [finding.code for finding in stream.findings])


def test_all_of_them(tmp_path: Path) -> None:
    for count in (1, 2, 4, 5, 50):
        read = found(tmp_path / str(count), MANY, count, range(count))

        assert read.after.is_certain, count
        assert (read.before.missing, read.after.missing, read.codes) == ([], [], []), count


def test_numbers_with_a_gap_are_missing_before_anything_is_read(tmp_path: Path) -> None:
    for number, (kept, missing) in enumerate([([1, 2, 3], [0]), ([0, 1, 3], [2]), ([3], [0, 1, 2])]):
        read = found(tmp_path / str(number), MANY, 4, kept)

        assert (read.before.missing, read.after.missing) == (missing, missing)
        assert read.codes == ["metadata-partition-missing"], kept


def test_events_that_would_lie_elsewhere_in_so_few_tell_how_many_there_are(tmp_path: Path) -> None:
    for count, kept in ((4, 3), (50, 3), (50, 49), (5, 2)):
        read = found(tmp_path / f"{kept} of {count}", MANY, count, range(kept))

        assert read.before.missing == [], (count, kept)
        assert read.after.missing, (count, kept)
        assert set(read.after.missing) <= set(range(kept, count)), (count, kept)
        assert read.codes == ["metadata-partition-missing"], (count, kept)


def test_a_number_that_fits_as_well_as_the_true_one_is_not_certain_and_few_events_tell_little(tmp_path: Path) -> None:
    for count, kept in ((4, 2), (4, 1), (50, 25), (50, 10), (50, 1)):
        read = found(tmp_path / f"{kept} of {count}", MANY, count, range(kept)).after

        assert (read.is_certain, read.is_broken, read.missing) == (False, False, []), (count, kept)
    for users in ([], [0]):
        read = found(tmp_path / f"few {users}", users, 4, range(4)).after

        assert (read.is_certain, read.is_broken) == (False, False), users


def test_events_that_no_number_of_partitions_explains_are_not_whole() -> None:
    places = MetadataPlaces()
    for number in MANY:
        places.note(number % 3, [user_partition(number)])

    coverage = places.coverage([0, 1, 2], None)

    finding = coverage.finding()
    assert (coverage.is_broken, coverage.is_certain, coverage.missing) == (True, False, [])
    assert finding is not None
    assert finding.message == "no partition count explains where all events are (found 0, 1, 2)"


def test_who_tells_of_fewer_partitions_than_are_here_or_absurdly_many_is_not_believed() -> None:
    for told in (1, 2, 0, -4, 1 << 40):
        coverage = MetadataPlaces().coverage([0, 1, 2], told)

        assert (coverage.is_certain, coverage.missing) == (False, []), told


def test_a_source_that_tells_of_more_makes_the_others_missing() -> None:
    coverage = MetadataPlaces().coverage([1, 2, 3], 5)

    finding = coverage.finding()
    assert coverage.missing == [0, 4]
    assert finding is not None
    assert finding.message == ("metadata partitions 0, 4 are missing here (found 1, 2, 3): what they hold is unknown")


def test_what_may_be_in_a_missing_partition_is_decided_by_kafkas_partitioner() -> None:
    coverage = MetadataPlaces().coverage([1, 2, 3], 4)

    for number in MANY:
        partition = user_partition(number)
        place = metadata_partition(partition.topic_id, partition.partition, 4)
        assert coverage.may_be_elsewhere(partition.topic_id, partition.partition) is (place == 0)


def test_not_found_is_not_an_answer_where_it_may_be_missing() -> None:
    with pytest.raises(TieredctlError) as caught:
        MetadataPlaces().coverage([1, 2, 3], 4).demand_all("The metadata has no event of topic x.")

    assert caught.value.code == "metadata-incomplete"
    assert caught.value.message == (
        "The metadata has no event of topic x, but metadata partition 0 is missing here (found 1, 2, 3)."
    )


def test_many_numbers_are_told_as_ranges() -> None:
    assert numbers_text([1, 2, 3]) == "1, 2, 3"
    assert numbers_text([*range(17), 18, *range(20, 50)]) == "0-16, 18, 20-49"
    assert numbers_text([]) == ""
