"""KRaft's control records and snapshots, byte for byte (KIP-630, KIP-853; RecordsSnapshotReader)."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.control_records import (
    CONTROL_MESSAGES,
    ControlRecord,
    decode_control_record,
    encode_control_record,
    latest_version,
)
from tieredctl.formats.kraft_json import kind_of
from tieredctl.formats.kraft_log import KraftLogRecord, KraftRecord, KraftRecordType, encode_kraft_record
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.formats.record_batches import Attributes, ControlType, Record, encode_batch

DIRECTORY_ID = bytes(range(1, 17))
EPOCH, WRITTEN_AT = 2, 1700000000000

HEADER = (ControlType.SNAPSHOT_HEADER, {"Version": 0, "LastContainedLogTimestamp": 1699999999000})
KRAFT_VERSION = (ControlType.KRAFT_VERSION, {"Version": 0, "KRaftVersion": 1})
FOOTER = (ControlType.SNAPSHOT_FOOTER, {"Version": 0})
VOTER = {"VoterId": 1, "VoterDirectoryId": DIRECTORY_ID}

VALUES: dict[str, tuple[ControlType, dict[str, Any], str]] = {
    "ABORT": (ControlType.ABORT, {"Version": 0, "CoordinatorEpoch": 9}, "0000 00000009"),
    "COMMIT": (ControlType.COMMIT, {"Version": 0, "CoordinatorEpoch": 9}, "0000 00000009"),
    "LEADER_CHANGE v0": (
        ControlType.LEADER_CHANGE,
        {"Version": 0, "LeaderId": 1, "Voters": [{"VoterId": 1}], "GrantingVoters": [{"VoterId": 1}]},
        "00000000000102000000010002000000010000",
    ),
    "LEADER_CHANGE v1": (
        ControlType.LEADER_CHANGE,
        {"Version": 1, "LeaderId": 1, "Voters": [VOTER], "GrantingVoters": [VOTER]},
        "000100000001 02000000010102030405060708090a0b0c0d0e0f1000 02000000010102030405060708090a0b0c0d0e0f1000 00",
    ),
    "SNAPSHOT_HEADER": (*HEADER, "0000 0000018bcfe56418 00"),
    "SNAPSHOT_FOOTER": (*FOOTER, "000000"),
    "KRAFT_VERSION": (*KRAFT_VERSION, "0000000100"),
    "KRAFT_VOTERS": (
        ControlType.KRAFT_VOTERS,
        {
            "Version": 0,
            "Voters": [
                {
                    **VOTER,
                    "Endpoints": [{"Name": "C", "Host": "h", "Port": 9093}],
                    "KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": 1},
                }
            ],
        },
        "000002000000010102030405060708090a0b0c0d0e0f10020243026823850000000001000000",
    ),
}

HEADER_BATCH = bytes.fromhex(
    "00000000000000000000005700000002021058586b0020000000010000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff"
    "000000022a00000008000000031600000000018bcfe5641800001e00000208000000050a000000010000"
)
FOOTER_BATCH = bytes.fromhex(
    "00000000000000020000003f00000002028f6608e60020000000000000018bcfe568000000018bcfe56800ffffffffffffffffffffffffffff"
    "000000011a00000008000000040600000000"
)


def control_batch(offset: int, *controls: tuple[ControlType, dict[str, Any]]) -> bytes:
    records = [
        encode_control_record(kind, fields, offset=offset + index, timestamp=WRITTEN_AT)
        for index, (kind, fields) in enumerate(controls)
    ]
    return encode_batch(records, partition_leader_epoch=EPOCH, attributes=Attributes.CONTROL)


def data_batch(offset: int, *values: bytes) -> bytes:
    records = [Record(offset + index, WRITTEN_AT, None, value) for index, value in enumerate(values)]
    return encode_batch(records, partition_leader_epoch=EPOCH)


FEATURE = encode_kraft_record(KraftRecordType.FEATURE_LEVEL, 0, {"Name": "metadata.version", "FeatureLevel": 30})


def read(data: bytes) -> list[KraftLogRecord]:
    return list(read_kraft_snapshot([data], len(data)))


@pytest.mark.parametrize(("kind", "fields", "encoded"), VALUES.values(), ids=VALUES.keys())
def test_value_of_a_control_record(kind: ControlType, fields: dict[str, Any], encoded: str) -> None:
    record = encode_control_record(kind, fields, offset=0, timestamp=0)

    assert record.key == b"\0\0\0" + bytes([kind])
    assert record.value == bytes.fromhex(encoded)
    assert decode_control_record(record) == ControlRecord(kind, fields)


def test_a_control_record_of_a_later_type_is_not_read_but_is_not_an_error() -> None:
    record = decode_control_record(Record(0, 0, bytes.fromhex("00000063"), b"?"))

    assert record == ControlRecord(99, None, b"?")
    assert record.type_name == "UNKNOWN"


def test_a_transaction_marker_of_a_later_version_is_read_as_the_latest_known() -> None:
    record = Record(0, 0, bytes.fromhex("00000001"), bytes.fromhex("0007 00000009 ff"))

    assert decode_control_record(record).fields == {"Version": 7, "CoordinatorEpoch": 9}


@pytest.mark.parametrize("kind", CONTROL_MESSAGES)
def test_a_later_version_of_krafts_own_control_records_is_unknown(kind: ControlType) -> None:
    """By an older schema a voter could be missed, and who votes decides what is committed."""
    value = struct.pack(">hq", latest_version(kind) + 1, 1234) + b"\x00 and more"

    record = decode_control_record(Record(0, 0, struct.pack(">hh", 0, kind), value))

    assert record == ControlRecord(kind, None, value)
    assert kind_of(record).is_known is False


@pytest.mark.parametrize(
    ("key", "value"),
    [(None, b""), (b"\0\0", b""), (b"\0\0\0\1", None), (b"\0\0\0\1", b"\xff\xff\0\0\0\0"), (b"\0\0\0\1", b"\0\0\0")],
)
def test_a_damaged_control_record_is_refused(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(DecodeError):
        decode_control_record(Record(0, 0, key, value))


def test_header_and_footer_batch_are_written() -> None:
    assert control_batch(0, HEADER, KRAFT_VERSION) == HEADER_BATCH
    assert control_batch(2, FOOTER) == FOOTER_BATCH


def test_a_snapshot_may_hold_a_header_and_a_footer_alone() -> None:
    assert read(HEADER_BATCH + FOOTER_BATCH) == [
        KraftLogRecord(0, EPOCH, WRITTEN_AT, 0, ControlRecord(*HEADER)),
        KraftLogRecord(1, EPOCH, WRITTEN_AT, 0, ControlRecord(*KRAFT_VERSION)),
        KraftLogRecord(2, EPOCH, WRITTEN_AT, 99, ControlRecord(*FOOTER)),
    ]


def test_records_between_header_and_footer_are_decoded_where_their_schema_is_known() -> None:
    unknown = bytes.fromhex("01 63 00 beef")

    records = read(control_batch(0, HEADER) + data_batch(1, FEATURE, unknown) + control_batch(3, FOOTER))

    feature, other = (record.content for record in records[1:3])
    assert isinstance(feature, KraftRecord)
    assert (feature.api_key, feature.version, feature.fields) == (
        KraftRecordType.FEATURE_LEVEL,
        0,
        {"Name": "metadata.version", "FeatureLevel": 30},
    )
    assert other == KraftRecord(99, 0, bytes.fromhex("beef"), None)


def test_a_snapshot_may_arrive_in_pieces() -> None:
    data = HEADER_BATCH + FOOTER_BATCH

    assert list(read_kraft_snapshot((data[at : at + 7] for at in range(0, len(data), 7)), len(data))) == read(data)


BROKEN = {
    "nothing": (b"", 0),
    "no header": (data_batch(0, FEATURE) + control_batch(1, FOOTER), 0),
    "no footer": (control_batch(0, HEADER) + data_batch(1, FEATURE), 83 + len(data_batch(1, FEATURE))),
    "records after the footer": (HEADER_BATCH + FOOTER_BATCH + data_batch(3, FEATURE), 174),
    "a gap in the offsets": (control_batch(0, HEADER) + control_batch(2, FOOTER), 83),
    "offsets that do not begin with 0": (control_batch(7, HEADER) + control_batch(8, FOOTER), 0),
    "a batch cut short": (HEADER_BATCH + FOOTER_BATCH[:-1], 99),
    "a batch with another CRC": (HEADER_BATCH + FOOTER_BATCH[:-1] + b"\1", 99),
    "a record of another frame version": (
        control_batch(0, HEADER) + data_batch(1, b"\2" + FEATURE[1:]) + control_batch(2, FOOTER),
        83,
    ),
}


@pytest.mark.parametrize(("data", "position"), BROKEN.values(), ids=BROKEN.keys())
def test_a_snapshot_is_refused_that_has(data: bytes, position: int) -> None:
    with pytest.raises(DecodeError) as refused:
        read(data)
    assert refused.value.position == position
