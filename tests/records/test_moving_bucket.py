"""A bucket that changes, or answers wrongly, while it is read: nothing is missing or returned twice in silence."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory, key_of, made_of
from tests.faults.segments_made import large_batches
from tests.records.kafka_records import rows_of
from tests.records.one_segment import OneSegment
from tests.records.test_damage import missing
from tests.records.test_lineage import ONE_LEADER, SKIPPING, remote_partition, segment
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Severity, exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.storage.memory import MemoryStore


@pytest.mark.parametrize("parallel_reads", [1, 8])
def test_a_segment_that_retention_takes_while_its_topic_is_read_is_lost(parallel_reads: int) -> None:
    cluster = made_of([segment(0, 100, 0), segment(100, 200, 0), segment(200, 300, 0)])
    remote, store = remote_partition(cluster, ONE_LEADER), cluster.store()
    store.parallel_reads = parallel_reads
    records = PartitionRecords(remote, store, LAYOUT, SKIPPING)

    batches = iter(records)
    rows = [next(batches)["offset"].to_pylist()]
    taken = remote.spans[2].segment
    store.delete([one for one in store.list() if taken.segment_id in one.key])
    rows += [batch["offset"].to_pylist() for batch in batches]

    got = [offset for batch in rows for offset in batch]
    assert len(got) == len(set(got))
    assert set(range(300)) - set(got) == missing(records) == set(range(200, 300))
    assert records.lost_offsets == 100
    assert exit_code_of(records.findings) is ExitCode.CORRUPTION


@pytest.mark.parametrize("isolation", Isolation)
@pytest.mark.parametrize("on_damage", OnDamage)
def test_segments_that_were_deleted_before_their_partition_was_read_are_neither_missing_nor_lost(
    isolation: Isolation, on_damage: OnDamage
) -> None:
    for gone, severity in ((1, Severity.INFO), (2, Severity.INFO), (3, Severity.WARNING)):
        remote, store, is_deleted = of_three_segments(*range(gone))
        records = PartitionRecords(remote, store, LAYOUT, RecordRequest(None, None, isolation, on_damage), is_deleted)

        offsets = [row[0] for row in rows_of(records)]

        assert offsets == list(range(100 * gone, 300))
        assert missing(records) == set(range(100 * gone))
        assert {(one.code, one.severity) for one in records.findings} == {(FindingCode.OFFSET_GAP, severity)}
        assert records.lost_offsets == 0


def test_a_segment_that_was_deleted_between_records_that_are_returned_is_a_gap_and_not_missing() -> None:
    remote, store, is_deleted = of_three_segments(1)
    records = PartitionRecords(remote, store, LAYOUT, SKIPPING, is_deleted)
    followed, beginning, began_deleted = of_three_segments(0)
    followed = replace(followed, read_up_to=0)
    continued = PartitionRecords(followed, beginning, LAYOUT, SKIPPING, began_deleted)

    for reading, lost in ((records, set(range(100, 200))), (continued, set(range(100)))):
        offsets = {row[0] for row in rows_of(reading)}

        assert set(range(300)) - offsets == missing(reading) == lost
        assert [one.code for one in reading.findings] == [FindingCode.OFFSET_GAP]
        assert (exit_code_of(reading.findings), reading.lost_offsets) == (ExitCode.CORRUPTION, 100)


def of_three_segments(*gone: int) -> tuple[RemotePartition, MemoryStore, Callable[[TopicIdPartition, str], bool]]:
    """A partition with offsets 0 to 299; the objects of some of its segments are deleted by now, as the metadata
    says."""
    cluster = made_of([segment(0, 100, 0), segment(100, 200, 0), segment(200, 300, 0)])
    remote, store = remote_partition(cluster, ONE_LEADER), cluster.store()
    deleted = {remote.spans[number].segment.segment_id for number in gone}
    store.delete([one for one in store.list() if any(segment_id in one.key for segment_id in deleted)])
    return remote, store, lambda partition, segment_id: partition == remote.partition and segment_id in deleted


@pytest.mark.parametrize("gone", [[2], [1, 2], [0, 1, 2]], ids=["the last", "two", "all"])
def test_the_line_of_leaders_is_that_of_the_last_segment_that_is_not_deleted_by_now(gone: list[int]) -> None:
    cluster = made_of([segment(0, 100, 0), segment(100, 200, 1, [(0, 0)]), segment(200, 300, 1, [(0, 0)])])
    ((partition, cache),) = replayed(EventStream(EventsInMemory(cluster.events))).caches.items()
    store = cluster.store()
    deleted = {remote_partition(cluster).spans[number].segment.segment_id for number in gone}
    store.delete([one for one in store.list() if any(segment_id in one.key for segment_id in deleted)])

    remote = RemotePartition.of(partition, cache, store, LAYOUT, is_deleted=lambda _, one: one in deleted)
    without_metadata = RemotePartition.of(partition, cache, store, LAYOUT)

    assert remote.findings == []
    assert [(one.first, one.last) for one in remote.spans] == [(0, 99), (100, 199), (200, 299)]
    assert [one.code for one in without_metadata.findings] == [FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED]


class LyingStore(MemoryStore):
    """Answers each range of a log otherwise than was asked for."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        super().__init__()
        self._answer = answer

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        return self._answer(data) if key.endswith(".log") else data


ANSWERS: dict[str, Callable[[bytes], bytes]] = {
    "nothing": lambda data: data[:0],
    "short by a byte": lambda data: data[:-1],
    "short by half": lambda data: data[: len(data) // 2],
    "another range": lambda data: data[61:] + data[:61],
    "zeros": lambda data: bytes(len(data)),
    "twice the first half": lambda data: data[: len(data) // 2] * 2,
}


def test_ranges_that_are_not_what_was_asked_for_are_reported() -> None:
    made = large_batches()
    sound = OneSegment(made.metadata, made.parts)
    for name, answer in ANSWERS.items():
        for isolation in Isolation:
            whole = rows_of(sound.read(RecordRequest(isolation=isolation)))
            store = LyingStore(answer)
            for part, data in made.parts.items():
                store.put(key_of(made.metadata, part), data)

            records = sound.read(RecordRequest(isolation=isolation, on_damage=SKIPPING.on_damage), store)
            got = rows_of(records)

            assert got == [row for row in whole if row in got], (name, isolation)
            lost = {row[0] for row in whole} - {row[0] for row in got}
            assert lost <= missing(records), (name, isolation)
            assert records.findings, (name, isolation)


class Refusing(MemoryStore):
    """Answers 503 from some request on."""

    def __init__(self, answers: int) -> None:
        super().__init__()
        self._left = answers

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self._left -= 1
        if self._left < 0:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "503")
        return super().read(key, start, end)


def test_a_store_that_answers_no_more_ends_the_reading_aloud() -> None:
    cluster = made_of([segment(0, 100, 0), segment(100, 200, 0)])
    remote = remote_partition(cluster, ONE_LEADER)
    for answers in range(2):
        store = Refusing(answers)
        for one in cluster.store().list():
            store.put(one.key, cluster.store().read(one.key))

        with pytest.raises(TieredctlError) as refused:
            rows_of(PartitionRecords(remote, store, LAYOUT, SKIPPING))

        assert refused.value.code is ErrorCode.STORE_UNREACHABLE
