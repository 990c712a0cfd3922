"""KIP-1176, "RLMWalTask" and "RLMWalCombinerTask": what is queued, and when it is uploaded."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.wal.combiner import Combiner, CombinerSettings, UploadCause, packed
from tieredctl_proposals.wal.sections import QueueItem, queue_item

from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION
from tests.wal.model_wal import batch, item
from tests.wal_histories import OTHER
from tieredctl.errors import DecodeError

SETTINGS = CombinerSettings(interval_ms=20, upload_bytes=1000, queue_size=3)
SMALL, LARGE = item(1, PARTITION, 0, 0), item(2, OTHER, 0, 99)


def test_combiner_task_upload_bytes_controls_how_big_the_upload_is() -> None:
    combiner = Combiner(SETTINGS)
    combiner.offer(SMALL, 0)
    combiner.offer(LARGE, 0)
    combiner.offer(SMALL, 0)

    upload = combiner.next_upload(0)

    assert upload is not None
    assert upload.cause is UploadCause.NORMAL
    assert upload.items == (SMALL, LARGE)
    assert len(combiner) == 1


def test_what_is_left_after_a_full_upload_is_full_again_if_it_is() -> None:
    combiner = Combiner(SETTINGS)
    for _ in range(3):
        combiner.offer(LARGE, 0)

    causes = [upload.cause for _ in range(3) if (upload := combiner.next_upload(0))]

    assert causes == [UploadCause.NORMAL] * 3


def test_combiner_task_interval_ms_controls_how_long_the_oldest_batches_wait() -> None:
    combiner = Combiner(SETTINGS)
    combiner.offer(SMALL, 100)
    combiner.offer(SMALL, 119)

    assert combiner.next_upload(119) is None
    upload = combiner.next_upload(120)
    assert upload is not None
    assert (upload.cause, len(upload.items)) == (UploadCause.QUICK, 2)
    assert combiner.next_upload(1_000) is None


def test_combiner_queue_size_limits_what_waits() -> None:
    combiner = Combiner(SETTINGS)

    taken = [combiner.offer(SMALL, 0) for _ in range(4)]

    assert taken == [True, True, True, False]
    assert len(combiner) == 3


def test_batches_of_one_partition_stay_in_their_order() -> None:
    combiner = Combiner(CombinerSettings(interval_ms=0, upload_bytes=1, queue_size=9))
    for number in range(3):
        combiner.offer(item(number, PARTITION, number, number), 0)

    offsets = []
    while upload := combiner.next_upload(0):
        offsets += [one.metadata.start_offset for one in upload.items]

    assert offsets == [0, 1, 2]


@pytest.mark.parametrize("broken", [{"interval_ms": -1}, {"upload_bytes": 0}, {"queue_size": 0}])
def test_settings_under_which_nothing_is_uploaded_are_refused(broken: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="impossible combiner settings"):
        CombinerSettings(**broken)


def test_configuration_300_to_500_kb_every_10_to_20_ms_is_the_default() -> None:
    settings = CombinerSettings()

    assert 300_000 <= settings.upload_bytes <= 500_000
    assert 10 <= settings.interval_ms <= 20


def test_a_queued_section_is_described_from_its_batches_alone() -> None:
    records = batch(5, 9, 1, 1_000) + batch(10, 12, 1, 3_000) + batch(15, 15, 4, 2_000)

    queued = item(1, PARTITION, 0, 0, leader_epoch=4, records=records).metadata

    assert (queued.start_offset, queued.end_offset) == (5, 15)
    assert queued.segment_leader_epochs == ((1, 5), (4, 15))
    assert (queued.max_timestamp_ms, queued.segment_size_in_bytes) == (3_000, len(records))
    assert (queued.start_file_position, queued.end_file_position) == (-1, -1)


@pytest.mark.parametrize(
    ("records", "reason"),
    [
        (b"", "no batches"),
        (batch(0, 4)[:-1], "cut short|incomplete|ends"),
        (batch(0, 4) + batch(4, 5), "does not follow"),
        (batch(0, 4, 3) + batch(5, 5, 2), "an earlier leader"),
        (batch(0, 4, -1), "without a leader epoch"),
        (batch(0, 4)[:-1] + b"x", "CRC|checksum"),
    ],
)
def test_what_is_not_a_leaders_log_is_not_queued(records: bytes, reason: str) -> None:
    with pytest.raises(DecodeError, match=reason):
        queue_item(PARTITION, "A" * 22, records, broker_id=1, leader_epoch=0, event_timestamp_ms=FIRST_TIMESTAMP_MS)


ONE_OF_EACH_SIZE = [
    item(number, PARTITION, number, number, records=batch(number, number, size=number * 40)) for number in range(20)
]


@given(st.lists(st.tuples(st.sampled_from(ONE_OF_EACH_SIZE), st.integers(0, 8)), max_size=60), st.integers(1, 3_000))
def test_everything_is_uploaded_once_in_order_within_the_interval_and_no_larger_than_it_must_be(
    offers: list[tuple[QueueItem, int]], upload_bytes: int
) -> None:
    combiner, now_ms = Combiner(CombinerSettings(interval_ms=5, upload_bytes=upload_bytes)), 0
    offered, uploaded = list[tuple[int, QueueItem]](), list[QueueItem]()
    for queued, pause_ms in [*offers, (ONE_OF_EACH_SIZE[0], 10)]:
        combiner.offer(queued, now_ms)
        offered.append((now_ms, queued))
        for _ in range(pause_ms):
            while upload := combiner.next_upload(now_ms):
                size = sum(len(one.records) for one in upload.items)
                assert size - len(upload.items[-1].records) < upload_bytes
                assert upload.cause is UploadCause.QUICK or size >= upload_bytes
                uploaded += upload.items
            assert all(now_ms - since < 5 for since, _ in offered[len(uploaded) :])
            now_ms += 1

    assert uploaded == [queued for _, queued in offered]


@pytest.mark.parametrize("queue_size", [1, 2, 3, 7])
def test_of_more_items_than_the_queue_holds_none_is_lost(queue_size: int) -> None:
    items = [item(number, PARTITION, number, number) for number in range(7)]

    uploads = list(packed(items, CombinerSettings(upload_bytes=1 << 20, queue_size=queue_size)))

    assert [one for upload in uploads for one in upload] == items
    assert max(map(len, uploads)) == queue_size


def test_workload_example_30_mb_a_second_every_10_ms_is_100_uploads_a_second_of_300_kb() -> None:
    combiner = Combiner(CombinerSettings(interval_ms=10, upload_bytes=500_000))
    one_ms = item(1, PARTITION, 0, 0, records=batch(0, 0, size=30_000))
    uploads = []
    for now_ms in range(1_000):
        if upload := combiner.next_upload(now_ms):
            uploads.append(upload)
        combiner.offer(one_ms, now_ms)

    sizes = {sum(len(one.records) for one in upload.items) for upload in uploads}
    assert 99 <= len(uploads) <= 100
    assert all(300_000 <= size <= 301_000 for size in sizes)
    assert {upload.cause for upload in uploads} == {UploadCause.QUICK}
