"""KIP-1164, DisklessCommitFile: which batches are accepted, and which offsets they get. Producers as in Kafka."""

from __future__ import annotations

import resource
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator import apply
from tieredctl_proposals.coordinator.machine import Loading, NotCoordinator
from tieredctl_proposals.coordinator.recovery import recover
from tieredctl_proposals.model.diskless_records import LOG_APPEND_TIME
from tieredctl_proposals.model.diskless_requests import (
    LATEST,
    CommitFile,
    DeletableRecords,
    DeleteRecords,
    DescribeFiles,
    KafkaError,
    ListOffsets,
    OffsetQuery,
)

from tests.coordinator.states import BROKER, NOW_MS, OTHER_TOPIC_ID, TOPIC_ID, Served, a_batch, a_file, produced


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    served = Served(tmp_path)
    yield served
    served.connection.close()


def test_offsets_follow_one_another_in_each_partition_in_the_order_of_the_request(served: Served) -> None:
    results = served.commit("f", a_batch(3), a_batch(2, partition=1), a_batch(4))

    assert [one.assigned_base_offset for one in results] == [0, 0, 3]
    assert served.commit("g", a_batch())[0].assigned_base_offset == 7


def test_a_partly_refused_file_keeps_what_was_accepted(served: Served) -> None:
    results = served.commit("f", a_batch(2, topic_id=OTHER_TOPIC_ID), a_batch(2), a_batch(2, partition=9))

    assert [one.error for one in results] == [
        KafkaError.UNKNOWN_TOPIC_ID,
        KafkaError.NONE,
        KafkaError.UNKNOWN_TOPIC_OR_PARTITION,
    ]
    assert results[1].assigned_base_offset == 0


def test_a_file_of_which_nothing_was_accepted_is_known_and_released_at_once(served: Served) -> None:
    served.commit("f", a_batch(topic_id=OTHER_TOPIC_ID))

    (described,) = served.finished(served.coordinator.describe_files(DescribeFiles(("f",)))).files
    assert (described.error, described.has_live_batches) == (KafkaError.NONE, False)


def test_only_batches_with_log_append_time_are_given_a_time(served: Served) -> None:
    results = served.commit("f", a_batch(), a_batch(timestamp_type=LOG_APPEND_TIME))

    assert [one.log_append_time_ms for one in results] == [-1, NOW_MS]


@pytest.mark.parametrize("between", [0, 4])
def test_one_of_the_last_five_batches_sent_again_gets_the_offset_that_it_got(served: Served, between: int) -> None:
    served.commit("f", a_batch(10), produced(0, 3))
    for number in range(between):
        served.commit(f"between-{number}", produced(3 + number))

    (result,) = served.commit("again", produced(0, 3))

    assert (result.error, result.assigned_base_offset, result.is_duplicate) == (KafkaError.NONE, 10, True)


def test_the_batch_before_the_last_five_is_out_of_order(served: Served) -> None:
    served.commit("f", *(produced(number) for number in range(6)))

    assert served.commit("again", produced(0))[0].error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


@pytest.mark.parametrize("first", [0, 1, 4, 6, 2**31 - 1])
def test_a_batch_that_does_not_follow_the_last_one_is_out_of_order(served: Served, first: int) -> None:
    served.commit("f", produced(3, 2))

    assert served.commit("g", produced(first))[0].error is KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_the_last_sequence_number_is_followed_by_the_first(served: Served) -> None:
    results = served.commit("f", produced(2**31 - 2, 2), produced(0, 2))

    assert [one.error for one in results] == [KafkaError.NONE, KafkaError.NONE]


def test_a_batch_whose_sequence_numbers_wrap_is_followed_by_the_next(served: Served) -> None:
    results = served.commit("f", produced(2**31 - 1, 3), produced(2))

    assert [one.error for one in results] == [KafkaError.NONE, KafkaError.NONE]


def test_an_older_epoch_is_fenced_even_with_a_batch_that_was_accepted_once(served: Served) -> None:
    served.commit("f", produced(0, epoch=3), produced(0, epoch=4))

    assert served.commit("g", produced(0, epoch=3))[0].error is KafkaError.INVALID_PRODUCER_EPOCH


def test_a_new_epoch_begins_with_sequence_number_zero(served: Served) -> None:
    served.commit("f", produced(0), produced(1))

    results = served.commit("g", produced(2, epoch=1), produced(0, epoch=1), produced(1, epoch=1))

    errors = [KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER, KafkaError.NONE, KafkaError.NONE]
    assert [one.error for one in results] == errors
    assert not any(one.is_duplicate for one in results)


def test_a_producer_is_another_in_each_partition(served: Served) -> None:
    results = served.commit("f", produced(0, 5), produced(40, partition=1))

    assert [one.error for one in results] == [KafkaError.NONE, KafkaError.NONE]


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


@pytest.mark.parametrize(
    "broken",
    [
        lambda file: file._replace(owner_ids=(5,)),
        lambda file: file._replace(object_key=""),
        lambda file: file._replace(file_size=199),
        lambda file: file._replace(batches=(file.batches[0], file.batches[1]._replace(byte_offset=99))),
        lambda file: file._replace(batches=(file.batches[0], produced(0)._replace(byte_offset=100, last_sequence=1))),
    ],
    ids=["another coordinator's", "no key", "batches beyond its end", "batches that overlap", "impossible sequences"],
)
def test_a_file_that_cannot_be_is_refused_whole_and_leaves_nothing(
    served: Served, broken: Callable[[CommitFile], CommitFile]
) -> None:
    end = served.log.end_offset

    answer = served.finished(served.coordinator.commit_file(broken(a_file("f", a_batch(), a_batch())), BROKER))

    assert {one.error for one in answer.batches} == {KafkaError.INVALID_REQUEST}
    assert served.log.end_offset == end


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
