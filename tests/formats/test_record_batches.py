"""Record batches of magic 2, byte for byte (DefaultRecordBatch, DefaultRecord, EndTransactionMarker)."""

from __future__ import annotations

import numpy as np
import pytest
from crc32c import crc32c

from tieredctl.errors import DecodeError
from tieredctl.formats.batch_columns import HEADER_DTYPE
from tieredctl.formats.compression import Codec
from tieredctl.formats.control_records import ControlRecord, decode_control_record, encode_control_record
from tieredctl.formats.record_batches import (
    HEADER_BYTES,
    Attributes,
    BatchHeader,
    ControlType,
    Record,
    RecordHeader,
    crc_matches,
    encode_batch,
    read_batch_header,
    read_control_type,
    read_records,
)
from tieredctl.formats.record_columns import record_values
from tieredctl.formats.varints import varint, varlong

DATA_BATCH = bytes.fromhex(
    "00000000000000640000004800000004022162ea020000000000010000018bcfe568000000018bcfe568050000000000000005000000000007"
    "000000021a000000026b047631020268027810000a020104763200"
)
DATA_RECORDS = [
    Record(100, 1700000000000, b"k", b"v1", (RecordHeader("h", b"x"),)),
    Record(101, 1700000000005, None, b"v2"),
]
COMMIT_BATCH = bytes.fromhex(
    "000000000000006600000042000000040212a8960d0030000000000000018bcfe5680a0000018bcfe5680a00000000000000050000ffffffff"
    "000000012000000008000000010c00000000000900"
)


def test_the_crc_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283


def test_data_batch_is_read() -> None:
    header = read_batch_header(DATA_BATCH, 0, len(DATA_BATCH))

    assert header == BatchHeader(
        base_offset=100,
        batch_length=72,
        partition_leader_epoch=4,
        magic=2,
        crc=0x2162EA02,
        attributes=0,
        last_offset_delta=1,
        base_timestamp=1700000000000,
        max_timestamp=1700000000005,
        producer_id=5,
        producer_epoch=0,
        base_sequence=7,
        records_count=2,
    )
    assert header.size == len(DATA_BATCH) == 84
    assert header.last_offset == 101
    assert header.codec is Codec.NONE
    assert crc_matches(DATA_BATCH, 0, header)
    assert list(read_records(DATA_BATCH, 0, header)) == DATA_RECORDS


def test_data_batch_is_written() -> None:
    written = encode_batch(DATA_RECORDS, partition_leader_epoch=4, producer_id=5, producer_epoch=0, base_sequence=7)

    assert written == DATA_BATCH


def test_commit_marker_is_read() -> None:
    header = read_batch_header(COMMIT_BATCH, 0, len(COMMIT_BATCH))
    (marker,) = read_records(COMMIT_BATCH, 0, header)

    assert header.size == len(COMMIT_BATCH) == 78
    assert (header.is_control, header.is_transactional) == (True, True)
    assert marker.offset == 102
    assert read_control_type(marker) == ControlType.COMMIT
    assert decode_control_record(marker) == ControlRecord(ControlType.COMMIT, {"Version": 0, "CoordinatorEpoch": 9})


def test_commit_marker_is_written() -> None:
    marker = encode_control_record(
        ControlType.COMMIT, {"Version": 0, "CoordinatorEpoch": 9}, offset=102, timestamp=1700000000010
    )

    assert (
        encode_batch(
            [marker],
            partition_leader_epoch=4,
            attributes=Attributes.CONTROL | Attributes.TRANSACTIONAL,
            producer_id=5,
            producer_epoch=0,
        )
        == COMMIT_BATCH
    )


def test_offset_and_leader_epoch_lie_outside_the_crc_and_attributes_inside() -> None:
    header = read_batch_header(DATA_BATCH, 0, len(DATA_BATCH))
    moved = bytes.fromhex("00000000000003e8") + DATA_BATCH[8:12] + bytes.fromhex("0000002a") + DATA_BATCH[16:]
    altered = bytearray(DATA_BATCH)
    altered[22] ^= Attributes.TRANSACTIONAL

    assert crc_matches(moved, 0, read_batch_header(moved, 0, len(moved)))
    assert not crc_matches(bytes(altered), 0, header)


def test_with_log_append_time_every_record_has_the_batch_s_latest_time() -> None:
    data = encode_batch(DATA_RECORDS, attributes=Attributes.LOG_APPEND_TIME)

    times = {record.timestamp for record in read_records(data, 0, read_batch_header(data, 0, len(data)))}

    assert times == {1700000000005}


def test_count_and_header_stay_plain_whatever_the_codec() -> None:
    for codec in Codec:
        data = encode_batch(DATA_RECORDS, codec=codec)
        header = read_batch_header(data, 0, len(data))

        assert (header.codec, header.records_count) == (codec, 2)
        assert crc_matches(data, 0, header), codec
        assert list(read_records(data, 0, header)) == DATA_RECORDS, codec


def test_an_impossible_header_is_refused() -> None:
    for position, byte in ((16, 1), (8, 0x80), (11, 48)):
        damaged = bytearray(DATA_BATCH)
        damaged[position] = byte

        with pytest.raises(DecodeError):
            pytest.fail(f"{position}: {read_batch_header(bytes(damaged), 0, len(damaged))}")


def test_a_codec_that_no_release_has_and_a_count_that_the_records_cannot_hold_are_refused() -> None:
    header = read_batch_header(DATA_BATCH, 0, len(DATA_BATCH))

    with pytest.raises(DecodeError, match="codec 5"):
        list(read_records(DATA_BATCH, 0, header._replace(attributes=5)))
    with pytest.raises(DecodeError, match="claims 2147483647 records"):
        list(read_records(DATA_BATCH, 0, header._replace(records_count=2**31 - 1)))


def test_a_batch_that_compaction_emptied_has_no_records() -> None:
    header = read_batch_header(DATA_BATCH, 0, len(DATA_BATCH))
    emptied = header._replace(batch_length=HEADER_BYTES - 12, records_count=0)

    assert list(read_records(DATA_BATCH, 0, emptied)) == []


@pytest.mark.parametrize(("base", "delta"), [((1 << 63) - 1, 1), (-(1 << 63), -1), (1 << 62, 1 << 62)])
def test_times_beyond_a_long_go_round_as_in_java(base: int, delta: int) -> None:
    body = b"\x00" + varlong(delta) + varint(0) + varint(-1) + varint(-1) + varint(0)
    header = BatchHeader(0, 49 + len(varint(len(body)) + body), 0, 2, 0, 0, 0, base, base, -1, -1, -1, 1)
    data = bytes(HEADER_BYTES) + varint(len(body)) + body

    (record,) = read_records(data, 0, header)
    ((_, columns),) = record_values(data, [0], np.array([tuple(header)], HEADER_DTYPE))

    assert record.timestamp == (base + delta + (1 << 63)) % (1 << 64) - (1 << 63)
    assert columns is not None
    assert columns.timestamps.tolist() == [record.timestamp]
