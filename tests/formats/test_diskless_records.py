"""Records of `__diskless_metadata` (KIP-1164, Metadata records)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.formats.diskless_records import (
    DISKLESS_SCHEMAS,
    FILE_COMMITTED,
    decode_diskless_record,
    encode_diskless_record,
)
from tieredctl_proposals.model.diskless_records import (
    CommittedBatch,
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
    together,
)

from tests.diskless_records import COMMITTED_MS, ONE_OF_EACH, TOPIC_ID, committed_batch, file_committed
from tests.formats.test_event_and_batch_round_trips import INT32, INT64, TOPIC_NAMES, UUID_TEXTS, tagged_fields
from tieredctl.errors import DecodeError
from tieredctl.formats.event_frame import frame
from tieredctl.formats.wire import reader, writer
from tieredctl.model.ids import uuid_text

TOPIC = "00112233445566778899aabbccddeeff"
BODIES = [
    TOPIC + "02740000000300",
    TOPIC + "00",
    "056f626a3101000000000000005400000001020000000002" + TOPIC + "020000000302020000000000000054"
    "000000000000006400000000000000650000018bcfe5680a0000018bcfe568050000000000000000050000000000070000000800000000",
    TOPIC + "00000003000000000000003c00",
]
_PARTITIONS = st.integers(0, 2**31 - 1)
_OFFSETS = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)).map(sorted)
_PRODUCERS = st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**15 - 1), _PARTITIONS, _PARTITIONS)
_TAGS = st.just(()) | tagged_fields([""])


@st.composite
def files_committed(draw: st.DrawFn) -> FileCommitted:
    sizes = draw(st.lists(st.integers(1, 2**28), max_size=6))
    places = [(draw(st.sampled_from([TOPIC_ID, "A" * 22])), draw(st.integers(0, 2))) for _ in sizes]
    batches = [
        CommittedBatch._make(
            [
                *place,
                draw(st.integers(-128, 127)),
                end - size,
                size,
                *draw(_OFFSETS),
                draw(INT64),
                draw(INT64),
                draw(st.sampled_from([0, 1])),
                *draw(st.just((-1, -1, -1, -1)) | _PRODUCERS),
            ]
        )
        for place, size, end in zip(places, sizes, accumulate(sizes), strict=True)
    ]
    paths = ["", "Topics[0]", "Topics[0].Partitions[0]", "Topics[0].Partitions[0].Batches[0]"]
    return FileCommitted(
        object_key=draw(st.text(min_size=1, max_size=60)),
        object_format=draw(st.integers(-128, 127)),
        file_size=sum(sizes),
        uploader_broker_id=draw(INT32),
        owner_ids=tuple(draw(st.lists(_PARTITIONS, min_size=1, max_size=4, unique=True))),
        batches=together(batches),
        tagged_fields=draw(tagged_fields(paths if batches else [""])),
    )


RECORDS: st.SearchStrategy[DisklessRecord] = st.one_of(
    st.builds(PartitionCreated, topic_id=UUID_TEXTS, topic=TOPIC_NAMES, partition=_PARTITIONS, tagged_fields=_TAGS),
    st.builds(TopicDeleted, topic_id=UUID_TEXTS, tagged_fields=_TAGS),
    files_committed(),
    st.builds(
        RecordsDeleted,
        topic_id=UUID_TEXTS,
        partition=_PARTITIONS,
        log_start_offset=st.integers(0, 2**63 - 1),
        tagged_fields=_TAGS,
    ),
)


def test_the_schemas_of_metadata_records_byte_for_byte() -> None:
    """In the frame of Kafka's other metadata topics."""
    frames = ("016400", "016500", "016600", "016700")
    for api_key, record, body, framed in zip(range(100, 104), ONE_OF_EACH, BODIES, frames, strict=True):
        value = bytes.fromhex(framed + body)

        assert frame(api_key) == value[:3]
        assert encode_diskless_record(record) == value
        assert decode_diskless_record(value) == record


@given(RECORDS)
def test_what_is_written_is_read_again(record: DisklessRecord) -> None:
    value = encode_diskless_record(record)

    assert decode_diskless_record(value) == record
    assert encode_diskless_record(decode_diskless_record(value)) == value


def test_another_frame_record_or_version_is_undecodable() -> None:
    undecodable = {
        "varint without an end": b"",
        "frame version 2": b"\x02\x64\x00",
        "unknown apiKey 99": b"\x01\x63\x00",
        "unknown apiKey 104": b"\x01\x68\x00",
        "unknown version 1 of apiKey 100": b"\x01\x64\x01",
        "1 bytes left over": encode_diskless_record(ONE_OF_EACH[1]) + b"\0",
    }
    for reason, value in undecodable.items():
        with pytest.raises(DecodeError, match=reason):
            decode_diskless_record(value)


def test_batches_are_put_together_by_topic_and_partition_and_keep_their_order() -> None:
    other = uuid_text(bytes(16))
    batches = [
        committed_batch(1, 0, 0),
        committed_batch(7, 5, 6, topic_id=other),
        committed_batch(0, 3, 3),
        committed_batch(1, 1, 9),
    ]

    assert together(batches) == (batches[0], batches[3], batches[2], batches[1])


IMPOSSIBLE: dict[str, Callable[[], object]] = {
    "partition -1": lambda: PartitionCreated(topic_id=TOPIC_ID, topic="t", partition=-1),
    "without a name": lambda: PartitionCreated(topic_id=TOPIC_ID, topic="", partition=0),
    "partition -2": lambda: RecordsDeleted(topic_id=TOPIC_ID, partition=-2, log_start_offset=0),
    "log start offset -1": lambda: RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=-1),
    "without an object key": lambda: file_committed(""),
    "file size -1": lambda: file_committed(file_size=-1, batches=()),
    r"owners \[\]": lambda: file_committed(owner_ids=()),
    r"owners \[1, 2, 1\]": lambda: file_committed(owner_ids=(1, 2, 1)),
    r"owners \[-1\]": lambda: file_committed(owner_ids=(-1,)),
    "bytes 0 to 84 of a file of 83": lambda: file_committed(file_size=83),
    "bytes 0 to 0": lambda: file_committed("k", committed_batch(byte_size=0)),
    "bytes -1 to 83": lambda: file_committed("k", committed_batch(byte_offset=-1)),
    "partition -1 ?": lambda: file_committed("k", committed_batch(-1)),
    "offsets 9 to 8": lambda: file_committed("k", committed_batch(0, 9, 8)),
    "offsets -1 to 8": lambda: file_committed("k", committed_batch(0, -1, 8)),
    "timestamp type 2": lambda: file_committed("k", committed_batch(timestamp_type=2)),
    "producer 5, epoch -1": lambda: file_committed("k", committed_batch(producer_id=5)),
    "sequences 5 to -1": lambda: file_committed("k", committed_batch(base_sequence=5)),
    "do not stand together": lambda: file_committed("k", *map(committed_batch, (0, 1, 0))),
}


def test_what_no_coordinator_can_have_accepted_is_refused() -> None:
    for reason, make in IMPOSSIBLE.items():
        with pytest.raises(ValueError, match=reason):
            pytest.fail(f"{reason}: {make()}")


def test_a_sequence_may_wrap_around() -> None:
    batch = committed_batch(producer_id=5, producer_epoch=0, base_sequence=2**31 - 1, last_sequence=0)

    assert file_committed("k", batch).batches == (batch,)


def test_a_record_that_lists_nothing_or_lists_it_twice_is_undecodable() -> None:
    schema, body = DISKLESS_SCHEMAS[FILE_COMMITTED], bytes.fromhex(BODIES[2])
    wrong: dict[str, Callable[[list[Any]], object]] = {
        "topic twice": lambda topics: topics.append(topics[0]),
        "no partitions": lambda topics: topics[0]["Partitions"].clear(),
        "partition twice": lambda topics: topics[0]["Partitions"].extend(topics[0]["Partitions"]),
        "no batches": lambda topics: topics[0]["Partitions"][0]["Batches"].clear(),
    }
    for name, change in wrong.items():
        values, _ = reader(schema)(body, 0, len(body))
        change(values["Topics"])
        with pytest.raises(DecodeError):
            pytest.fail(f"{name}: {decode_diskless_record(frame(FILE_COMMITTED) + writer(schema)(values))}")


def test_a_file_of_which_nothing_was_accepted_is_known_all_the_same() -> None:
    record = replace(file_committed(), batches=())

    assert decode_diskless_record(encode_diskless_record(record)) == record
    assert file_committed().batches[0].log_append_timestamp_ms == COMMITTED_MS
