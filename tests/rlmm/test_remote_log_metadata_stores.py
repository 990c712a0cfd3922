"""Local stores of the remote log metadata manager: `remote_log_snapshot` of 3.1 to 3.5, and KIP-405's flat file."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState, encode_flat_file, read_flat_file
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.remote_log_snapshot import (
    RemoteLogSnapshot,
    encode_remote_log_snapshot,
    read_remote_log_snapshot,
)
from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import TopicIdPartition

TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
SEGMENT = RemoteLogSegmentMetadataSnapshot(
    segment_id=SEGMENT_ID,
    start_offset=0,
    end_offset=99,
    author=1,
    max_timestamp_ms=1700000000000,
    event_timestamp_ms=1700000000500,
    segment_leader_epochs=((0, 0),),
    segment_size_in_bytes=1048576,
    state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
)
SNAPSHOT = RemoteLogSnapshot(49, 41, [SEGMENT])
SNAPSHOT_BYTES = bytes.fromhex(
    "0000000000310000000000000029000000010000004c0103000102030405060708090a0b0c0d0e0f10000000000000000000000000000000"
    "63000000010000018bcfe568000000018bcfe569f4020000000000000000000000000000100000000100"
)
FLAT_FILE = FlatFile("t", TOPIC_ID, 41, [replace(SEGMENT, author=7, form=RecordForm.KIP_405)])
FLAT_FILE_BYTES = bytes.fromhex(
    "0000017400112233445566778899aabbccddeeff524b00000102030405060708090a0b0c0d0e0f1000000000000000000000000000000063"
    "000000070000018bcfe568000000018bcfe569f4000000010000000000000000000000000010000001"
)


def test_remote_log_snapshot_in_the_form_since_3_6() -> None:
    assert len(SNAPSHOT_BYTES) == 98
    assert read_remote_log_snapshot(SNAPSHOT_BYTES) == SNAPSHOT
    assert encode_remote_log_snapshot(SNAPSHOT) == SNAPSHOT_BYTES


def test_remote_log_snapshot_as_3_1_to_3_5_wrote_it_lacks_custom_metadata() -> None:
    before = RemoteLogSnapshot(49, 41, [replace(SEGMENT, form=RecordForm.KAFKA_BEFORE_3_6)])

    data = encode_remote_log_snapshot(before)

    assert len(data) == 97
    assert data[18:22] == bytes.fromhex("0000004b")
    assert data.endswith(bytes.fromhex("001000000100"))
    assert read_remote_log_snapshot(data) == before


def test_a_segment_of_two_epochs_is_there_twice() -> None:
    twice = RemoteLogSnapshot(49, 41, [SEGMENT, SEGMENT])

    assert read_remote_log_snapshot(encode_remote_log_snapshot(twice)) == twice


def test_a_remote_log_snapshot_of_no_bytes_is_not_a_snapshot() -> None:
    assert read_remote_log_snapshot(b"") is None


UPDATE = encode_event(
    RemoteLogSegmentMetadataUpdate(
        topic_id_partition=TopicIdPartition(TOPIC_ID, "t", 3),
        segment_id=SEGMENT_ID,
        author=1,
        event_timestamp_ms=0,
        state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    )
)


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (SNAPSHOT_BYTES[:17], 0),
        (b"\0\1" + SNAPSHOT_BYTES[2:], 0),
        (SNAPSHOT_BYTES[:17] + b"\2" + SNAPSHOT_BYTES[18:], 14),
        (SNAPSHOT_BYTES[:18] + b"\x7f" + SNAPSHOT_BYTES[19:], 18),
        (SNAPSHOT_BYTES[:18] + b"\xff" + SNAPSHOT_BYTES[19:], 18),
        (SNAPSHOT_BYTES[:18] + len(UPDATE).to_bytes(4) + UPDATE, 22),
        (SNAPSHOT_BYTES[:22] + b"\2" + SNAPSHOT_BYTES[23:], 22),
        (SNAPSHOT_BYTES + b"\0", 98),
    ],
)
def test_a_damaged_remote_log_snapshot_is_refused_where_it_is_damaged(data: bytes, position: int) -> None:
    with pytest.raises(DecodeError) as refused:
        read_remote_log_snapshot(data)
    assert refused.value.position == position


def test_flat_file_of_kip_405() -> None:
    assert len(FLAT_FILE_BYTES) == 97
    assert read_flat_file(FLAT_FILE_BYTES) == FLAT_FILE
    assert encode_flat_file(FLAT_FILE) == FLAT_FILE_BYTES


def test_flat_file_with_the_removal_of_its_partition() -> None:
    removal = StoredDeleteState(7, 1700000001000, RemotePartitionDeleteState.DELETE_PARTITION_STARTED)
    flat_file = FLAT_FILE._replace(entries=[*FLAT_FILE.entries, removal])

    data = encode_flat_file(flat_file)

    assert data == FLAT_FILE_BYTES + bytes.fromhex("0f 01 00 00000007 0000018bcfe56be8 01")
    assert read_flat_file(data) == flat_file


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"\1" + FLAT_FILE_BYTES[1:], 0),
        (FLAT_FILE_BYTES[:21] + b"\x4c" + FLAT_FILE_BYTES[22:], 21),
        (FLAT_FILE_BYTES[:22] + b"\2" + FLAT_FILE_BYTES[23:], 22),
        (FLAT_FILE_BYTES[:23] + b"\1" + FLAT_FILE_BYTES[24:], 22),
        (FLAT_FILE_BYTES[:-1] + b"\4", 24),
        (FLAT_FILE_BYTES[:21] + b"\x4a" + FLAT_FILE_BYTES[22:-1], 92),
    ],
)
def test_a_damaged_flat_file_is_refused_where_it_is_damaged(data: bytes, position: int) -> None:
    with pytest.raises(DecodeError) as refused:
        read_flat_file(data)
    assert refused.value.position == position
