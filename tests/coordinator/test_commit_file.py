"""KIP-1164, DisklessCommitFile: which batches are accepted, and which offsets they get. Producers as in Kafka."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator import apply
from tieredctl_proposals.coordinator.machine import Loading, NotCoordinator
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.model.diskless_records import LOG_APPEND_TIME
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    BatchResult,
    CommitBatch,
    DeletableRecords,
    DeleteRecords,
    DescribeFiles,
    KafkaError,
    ListOffsets,
    OffsetQuery,
)

from tests.coordinator.states import BROKER, NOW_MS, OTHER_TOPIC_ID, TOPIC_ID, Served, a_batch, a_file, produced

NONE = KafkaError.NONE


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.connection.close()


OUT_OF_ORDER = KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER
SIX = [produced(number) for number in range(6)]
HISTORIES: dict[str, tuple[list[list[CommitBatch]], list[int | str | KafkaError]]] = {
    "offsets follow one another in each partition in the order of the request": (
        [[a_batch(3), a_batch(2, partition=1), a_batch(4)]],
        [0, 0, 3],
    ),
    "offsets follow those of the file before": ([[a_batch(3), a_batch(4)], [a_batch()]], [7]),
    "a partly refused file keeps what was accepted": (
        [[a_batch(2, topic_id=OTHER_TOPIC_ID), a_batch(2), a_batch(2, partition=9)]],
        [KafkaError.UNKNOWN_TOPIC_ID, 0, KafkaError.UNKNOWN_TOPIC_OR_PARTITION],
    ),
    "the last batch sent again": ([[a_batch(10), produced(0, 3)], [produced(0, 3)]], ["10 again"]),
    "the last but four sent again": (
        [[a_batch(10), produced(0, 3), *map(produced, range(3, 7))], [produced(0, 3)]],
        ["10 again"],
    ),
    "the last but five sent again": ([SIX, [produced(0)]], [OUT_OF_ORDER]),
    "batches that do not follow the last": (
        [[produced(3, 2)], [*map(produced, (0, 1, 4, 6, 2**31 - 1))]],
        [OUT_OF_ORDER] * 5,
    ),
    "the last sequence number is followed by the first": ([[produced(2**31 - 2, 2), produced(0, 2)]], [0, 2]),
    "sequence numbers that wrap are followed by the next": ([[produced(2**31 - 1, 3), produced(2)]], [0, 3]),
    "an older epoch is fenced, even with a batch that was accepted once": (
        [[produced(0, epoch=3), produced(0, epoch=4)], [produced(0, epoch=3)]],
        [KafkaError.INVALID_PRODUCER_EPOCH],
    ),
    "a new epoch begins with sequence number zero": (
        [SIX[:2], [produced(2, epoch=1), produced(0, epoch=1), produced(1, epoch=1)]],
        [OUT_OF_ORDER, 2, 3],
    ),
    "a producer is another in each partition": ([[produced(0, 5), produced(40, partition=1)]], [0, 0]),
}
"""The batches of each file, and what becomes of the last one's."""


def errors(results: Sequence[BatchResult]) -> list[KafkaError]:
    return [one.error for one in results]


@pytest.mark.parametrize("history", HISTORIES)
def test_which_batches_are_accepted_and_the_offsets_that_they_get(served: Served, history: str) -> None:
    files, expected = HISTORIES[history]

    for number, batches in enumerate(files):
        results = served.commit(f"file-{number}", *batches)

    offsets = [f"{one.assigned_base_offset} again" if one.is_duplicate else one.assigned_base_offset for one in results]
    assert [one.error or offset for one, offset in zip(results, offsets, strict=True)] == expected


def test_a_file_of_which_nothing_was_accepted_is_known_and_released_at_once(served: Served) -> None:
    served.commit("f", a_batch(topic_id=OTHER_TOPIC_ID))

    (described,) = served.finished(served.coordinator.describe_files(DescribeFiles(("f",)))).files
    assert (described.error, described.has_live_batches) == (KafkaError.NONE, False)


def test_only_batches_with_log_append_time_are_given_a_time(served: Served) -> None:
    results = served.commit("f", a_batch(), a_batch(timestamp_type=LOG_APPEND_TIME))

    assert [one.log_append_time_ms for one in results] == [-1, NOW_MS]


def test_a_producer_is_remembered_when_its_records_are_gone(served: Served) -> None:
    served.commit("f", produced(0, 5))
    served.finished(served.coordinator.delete_records(DeleteRecords((DeletableRecords(TOPIC_ID, 0, LATEST),))))

    served.reopen()

    assert served.commit("g", produced(0, 5))[0].is_duplicate


def test_a_file_committed_twice_is_refused_and_keeps_its_batches(served: Served) -> None:
    served.commit("f", a_batch(2))

    (result,) = served.commit("f", a_batch(2))

    assert result.error is KafkaError.DUPLICATE_RESOURCE
    (described,) = served.finished(served.coordinator.describe_files(DescribeFiles(("f",)))).files
    assert described.has_live_batches


def test_a_file_that_cannot_be_is_refused_whole_and_leaves_nothing(served: Served) -> None:
    file, end = a_file("f", a_batch(), a_batch()), served.log.end_offset
    first, second = file.batches
    broken = {
        "another coordinator's": file._replace(owner_ids=(5,)),
        "no key": file._replace(object_key=""),
        "batches beyond its end": file._replace(file_size=199),
        "batches that overlap": file._replace(batches=(first, second._replace(byte_offset=99))),
        "impossible sequences": file._replace(batches=(first, produced(0)._replace(byte_offset=100, last_sequence=1))),
    }
    for name, one in broken.items():
        answer = served.finished(served.coordinator.commit_file(one, BROKER))
        assert {*errors(answer.batches)} == {KafkaError.INVALID_REQUEST}, name
        assert served.log.end_offset == end, name


def test_operations_are_checked_against_those_that_are_pending(served: Served) -> None:
    first = served.coordinator.commit_file(a_file("f", produced(0, 2)), BROKER)
    again = served.coordinator.commit_file(a_file("g", produced(0, 2), produced(2)), BROKER)
    assert not first.is_over

    results = served.finished(again).batches

    assert [(one.assigned_base_offset, one.is_duplicate) for one in results] == [(0, True), (2, False)]


def test_nothing_is_answered_or_stored_before_it_is_replicated(served: Served) -> None:
    latest = ListOffsets((OffsetQuery(TOPIC_ID, 0, LATEST),))
    committed = served.coordinator.commit_file(a_file("f", a_batch(4)), BROKER)
    asked = served.coordinator.list_offsets(latest)

    served.coordinator.poll()

    assert not committed.is_over
    assert not asked.is_over
    assert served.connection.execute("SELECT count(*) FROM batches").fetchone() == (0,)
    assert served.finished(asked).partitions[0].offset == 4


def test_a_question_that_could_not_be_answered_is_answered_later(served: Served) -> None:
    served.commit("f", a_batch(4))
    asked = served.coordinator.list_offsets(ListOffsets((OffsetQuery(TOPIC_ID, 0, LATEST),)))
    served.connection.set_authorizer(lambda *_: sqlite3.SQLITE_DENY)
    with pytest.raises(sqlite3.DatabaseError, match="not authorized"):
        served.coordinator.poll()
    served.connection.set_authorizer(None)

    served.coordinator.poll()

    assert asked.answer.partitions[0].offset == 4


def test_a_leader_that_lost_its_log_answers_nothing_that_was_pending(served: Served) -> None:
    pending = served.coordinator.commit_file(a_file("f", a_batch()), BROKER)
    served.log.lose_leadership()

    with pytest.raises(NotCoordinator):
        served.coordinator.commit_file(a_file("g", a_batch()), BROKER)

    with pytest.raises(NotCoordinator):
        _ = pending.answer
    with pytest.raises(NotCoordinator):
        served.coordinator.describe_files(DescribeFiles(("f",)))


def test_after_an_append_that_failed_nothing_is_assigned_any_more(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was refused by the log was checked, and counted as pending: offsets after it would leave a gap."""

    def fail(*_: object) -> int:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(served.log, "append", fail)
        with pytest.raises(OSError, match="no space"):
            served.coordinator.commit_file(a_file("f", a_batch(3)), BROKER)

    with pytest.raises(NotCoordinator):
        served.coordinator.commit_file(a_file("g", a_batch()), BROKER)

    served.reopen()
    assert served.commit("h", a_batch())[0].assigned_base_offset == 0


def test_a_new_leader_waits_for_what_it_found_in_the_log(served: Served) -> None:
    served.coordinator.commit_file(a_file("f", a_batch(4)), BROKER)
    served.reopen()

    with pytest.raises(Loading):
        served.coordinator.commit_file(a_file("g", a_batch()), BROKER)

    served.log.replicate()
    served.coordinator.poll()
    assert served.commit("g", a_batch())[0].assigned_base_offset == 4


def test_a_full_disk_delays_answers_and_loses_nothing(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(apply, "RECORDS_AT_ONCE", 1)
    operations = [
        served.coordinator.commit_file(a_file(f"f{number}", *(a_batch() for _ in range(300))), BROKER)
        for number in range(20)
    ]
    served.log.replicate()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (150_000, hard))
    try:
        with pytest.raises(sqlite3.OperationalError):
            served.coordinator.poll()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not any(operation.is_over for operation in operations)
    assert 0 < served.connection.execute("SELECT count(*) FROM files").fetchone()[0] < 20

    served.coordinator.poll()

    assert [operation.answer.batches[0].assigned_base_offset for operation in operations] == list(range(0, 6_000, 300))


def test_a_follower_comes_to_the_same_state(served: Served, tmp_path: Path) -> None:
    served.commit("f", produced(0, 5), a_batch(3, partition=1))

    follower = recover(tmp_path / "follower.sqlite", served.log, tmp_path / "none").connection

    tables = ["applied", "partitions", "files", "batches", "producer_batches"]
    for table in tables:
        rows = [connection.execute(f"SELECT * FROM {table}").fetchall() for connection in (served.connection, follower)]
        assert rows[0] == rows[1]
    follower.close()
