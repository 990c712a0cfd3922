"""KIP-1164, Diskless coordinator API: the requests besides DisklessCommitFile, one after the other."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tieredctl_proposals.coordinator.machine import MOST_PARTITIONS
from tieredctl_proposals.coordinator.queries import find_batches, oldest_live_file_ms, released_files
from tieredctl_proposals.model.diskless_records import LOG_APPEND_TIME
from tieredctl_proposals.model.diskless_requests import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    BatchesResult,
    BatchQuery,
    CreatablePartitions,
    CreatePartitions,
    DeletableRecords,
    DeleteRecords,
    DeleteTopics,
    DescribeFiles,
    FindBatches,
    KafkaError,
    ListOffsets,
    OffsetQuery,
    RecordsResult,
)

from tests.coordinator.states import NOW_MS, OTHER_TOPIC_ID, TOPIC_ID, Served, a_batch


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    """Partition 0 has offsets 0 to 9, in three batches of files a, b and b; its log starts in the second, at 4."""
    served = Served(tmp_path)
    served.commit("a", a_batch(3, batch_max_timestamp_ms=50))
    served.commit(
        "b", a_batch(3, batch_max_timestamp_ms=70), a_batch(4, batch_max_timestamp_ms=60), a_batch(2, partition=1)
    )
    _delete(served, 4)
    yield served
    served.connection.close()


def _create(served: Served, number: int, name: str = "t") -> KafkaError:
    request = CreatePartitions((CreatablePartitions(TOPIC_ID, name, number),))
    return served.finished(served.coordinator.create_partitions(request)).topics[0].error


def _delete(served: Served, offset: int, partition: int = 0, topic_id: str = TOPIC_ID) -> RecordsResult:
    request = DeleteRecords((DeletableRecords(topic_id, partition, offset),))
    return served.finished(served.coordinator.delete_records(request)).partitions[0]


def _find(served: Served, offset: int, max_bytes: int = 10_000, max_batches: int = 0) -> BatchesResult:
    request = FindBatches(max_bytes, max_batches, (BatchQuery(TOPIC_ID, 0, offset, max_bytes),))
    return served.coordinator.find_batches(request).partitions[0]


def test_create_partitions_creates_those_that_are_missing_and_refuses_numbers_that_cannot_be(served: Served) -> None:
    impossible = [(number, KafkaError.INVALID_PARTITIONS, 2) for number in (0, -1, MOST_PARTITIONS + 1, 2**31 - 1)]
    for number, error, there in [
        *impossible,
        (1, KafkaError.NONE, 2),
        (2, KafkaError.NONE, 2),
        (5, KafkaError.NONE, 5),
    ]:
        assert _create(served, number) is error, number
        assert served.connection.execute("SELECT count(*) FROM partitions").fetchone() == (there,), number
    assert _create(served, 5, "another") is KafkaError.INCONSISTENT_TOPIC_ID


def test_delete_topics_releases_files_and_leaves_nothing_else(served: Served) -> None:
    request = DeleteTopics((TOPIC_ID, OTHER_TOPIC_ID))
    answer = served.finished(served.coordinator.delete_topics(request))

    assert [one.error for one in answer.topics] == [KafkaError.NONE, KafkaError.UNKNOWN_TOPIC_ID]
    assert [file.object_key for file in released_files(served.connection)] == ["a", "b"]
    for table in ("partitions", "batches", "producer_batches"):
        assert served.connection.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,)


def test_a_topic_made_again_under_its_id_begins_empty_while_its_deletion_is_pending(served: Served) -> None:
    served.coordinator.delete_topics(DeleteTopics((TOPIC_ID,)))
    _create(served, 1)

    assert served.commit("c", a_batch())[0].assigned_base_offset == 0


def test_delete_records_removes_whole_batches_and_releases_files_without_any(served: Served) -> None:
    described = served.finished(served.coordinator.describe_files(DescribeFiles(("a", "b", "c"))))

    assert [(one.error, one.has_live_batches) for one in described.files] == [
        (KafkaError.NONE, False),
        (KafkaError.NONE, True),
        (KafkaError.RESOURCE_NOT_FOUND, False),
    ]
    assert _find(served, 4).batches[0].base_offset == 3


def test_delete_records_never_moves_the_log_start_back_and_refuses_offsets_that_are_not_there(served: Served) -> None:
    for offset in (11, -2, -3, 2**63 - 1):
        assert _delete(served, offset)[2:4] == (-1, KafkaError.OFFSET_OUT_OF_RANGE), offset
    for offset, low_watermark in ((4, 4), (2, 4), (0, 4), (10, 10), (0, 10), (LATEST, 10)):
        assert _delete(served, offset)[2:4] == (low_watermark, KafkaError.NONE), offset


def test_delete_records_up_to_the_end_of_the_log(served: Served) -> None:
    assert _delete(served, LATEST)[2:4] == (10, KafkaError.NONE)


def test_list_offsets_by_special_timestamps_and_others_and_of_what_is_not_there(served: Served) -> None:
    cases = {
        (TOPIC_ID, 0, LATEST): (KafkaError.NONE, -1, 10),
        (TOPIC_ID, 0, EARLIEST): (KafkaError.NONE, -1, 4),
        (TOPIC_ID, 0, EARLIEST_LOCAL): (KafkaError.NONE, -1, 4),
        (TOPIC_ID, 0, LATEST_TIERED): (KafkaError.NONE, -1, -1),
        (TOPIC_ID, 0, MAX_TIMESTAMP): (KafkaError.NONE, 70, 5),
        (TOPIC_ID, 0, 0): (KafkaError.NONE, 70, 4),
        (TOPIC_ID, 0, 70): (KafkaError.NONE, 70, 4),
        (TOPIC_ID, 0, 71): (KafkaError.NONE, -1, -1),
        (TOPIC_ID, 7, LATEST): (KafkaError.UNKNOWN_TOPIC_OR_PARTITION, -1, -1),
        (OTHER_TOPIC_ID, 0, LATEST): (KafkaError.UNKNOWN_TOPIC_ID, -1, -1),
        (TOPIC_ID, 0, -6): (KafkaError.UNSUPPORTED_VERSION, -1, -1),
    }
    for asked, expected in cases.items():
        (found,) = served.finished(served.coordinator.list_offsets(ListOffsets((OffsetQuery(*asked),)))).partitions
        assert (found.error, found.timestamp_ms, found.offset) == expected, asked


def test_list_offsets_goes_by_the_time_of_appending_where_the_topic_does(served: Served) -> None:
    served.commit("c", a_batch(1, timestamp_type=LOG_APPEND_TIME, batch_max_timestamp_ms=1))

    request = ListOffsets((OffsetQuery(TOPIC_ID, 0, 100), OffsetQuery(TOPIC_ID, 0, MAX_TIMESTAMP)))
    found = served.finished(served.coordinator.list_offsets(request)).partitions

    assert [(one.timestamp_ms, one.offset) for one in found] == [(NOW_MS, 10)] * 2


def test_find_batches_begins_with_the_batch_that_has_the_offset(served: Served) -> None:
    found = _find(served, 5)

    assert [(one.base_offset, one.last_offset, one.object_key) for one in found.batches] == [(3, 5, "b"), (6, 9, "b")]
    assert (found.log_start_offset, found.high_watermark) == (4, 10)


def test_find_batches_keeps_to_its_limits_and_finds_the_first_batch_in_any_case(served: Served) -> None:
    for max_bytes, max_batches, number in ((0, 0, 1), (199, 0, 1), (200, 0, 2), (10_000, 1, 1), (10_000, 2, 2)):
        assert len(_find(served, 4, max_bytes, max_batches).batches) == number, (max_bytes, max_batches)


def test_find_batches_finds_the_first_batch_of_the_first_partition_that_has_one(served: Served) -> None:
    at_the_end, asked = BatchQuery(TOPIC_ID, 0, 10, 1), BatchQuery(TOPIC_ID, 1, 0, 1)

    found = served.coordinator.find_batches(FindBatches(1, 0, (at_the_end, asked, asked)))

    assert [len(one.batches) for one in found.partitions] == [0, 1, 0]


def test_find_batches_finds_nothing_at_the_end_and_refuses_what_is_beyond(served: Served) -> None:
    assert (_find(served, 10).error, _find(served, 10).batches) == (KafkaError.NONE, ())
    assert [_find(served, offset).error for offset in (3, 11)] == [KafkaError.OFFSET_OUT_OF_RANGE] * 2


def test_a_follower_that_lacks_an_offset_does_not_call_it_out_of_range(served: Served) -> None:
    request = FindBatches(100, 0, (BatchQuery(TOPIC_ID, 0, 11, 100), BatchQuery(TOPIC_ID, 0, 3, 100)))

    found = find_batches(served.connection, request, is_follower=True).partitions

    assert [one.error for one in found] == [KafkaError.OFFSET_NOT_AVAILABLE, KafkaError.OFFSET_OUT_OF_RANGE]


def test_the_oldest_file_is_the_oldest_that_has_live_batches(served: Served) -> None:
    served.connection.execute("UPDATE files SET committed_ms = 5 WHERE object_key = 'a'")
    served.connection.execute("UPDATE files SET committed_ms = 9 WHERE object_key = 'b'")

    assert oldest_live_file_ms(served.connection) == 9
    _delete(served, LATEST)
    _delete(served, LATEST, partition=1)
    assert oldest_live_file_ms(served.connection) is None
