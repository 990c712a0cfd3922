"""The controllers' log, record by record, and around damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.kraft_snapshots import read_kraft_log, topic_record
from tieredctl.formats.control_records import ControlRecord, encode_control_record
from tieredctl.formats.kraft_log import KraftLogRecord, KraftRecordType
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import Attributes, ControlType, Record, encode_batch
from tieredctl.model.ids import uuid_text

TOPIC_ID = uuid_text(bytes(range(16)))
LEADER = {"Version": 0, "LeaderId": 1, "Voters": [], "GrantingVoters": []}


def leader_batch(offset: int, epoch: int) -> bytes:
    record = encode_control_record(ControlType.LEADER_CHANGE, LEADER, offset=offset, timestamp=10)
    return encode_batch([record], partition_leader_epoch=epoch, attributes=Attributes.CONTROL)


def data_batch(offset: int, epoch: int, *values: bytes) -> bytes:
    records = [Record(offset + index, 20 + index, None, value) for index, value in enumerate(values)]
    return encode_batch(records, partition_leader_epoch=epoch)


def read(data: bytes) -> list[KraftLogRecord | Damage]:
    return list(read_kraft_log([data], len(data)))


def test_records_have_their_offset_epoch_and_time() -> None:
    first, second = leader_batch(100, 3), data_batch(101, 3, topic_record(TOPIC_ID, "a"), topic_record(TOPIC_ID, "b"))

    found = [part for part in read(first + second) if isinstance(part, KraftLogRecord)]

    assert [part[:4] for part in found] == [(100, 3, 10, 0), (101, 3, 20, len(first)), (102, 3, 21, len(first))]
    assert found[0].content == ControlRecord(ControlType.LEADER_CHANGE, LEADER)
    names = [part.content.fields["Name"] for part in found[1:] if part.content.fields]
    assert names == ["a", "b"]


def test_what_is_sound_around_a_damaged_batch_is_read() -> None:
    first, damaged, last = leader_batch(0, 1), data_batch(1, 1, topic_record(TOPIC_ID)), leader_batch(2, 2)
    flipped = damaged[:-1] + bytes([damaged[-1] ^ 1])

    before, damage, after = read(first + flipped + last)

    assert isinstance(before, KraftLogRecord)
    assert isinstance(damage, Damage)
    assert isinstance(after, KraftLogRecord)
    assert (before.offset, after.offset) == (0, 2)
    assert (damage.position, damage.end, damage.torn) == (len(first), len(first + flipped), False)


@pytest.mark.parametrize("value", [b"", b"\x00\x02\x00", b"\x01\x02\x00\xff", b"\x01\x02\x00" + b"\xff" * 9])
def test_a_record_that_is_not_one_is_a_damage_and_the_rest_is_read(value: bytes) -> None:
    first = data_batch(0, 1, topic_record(TOPIC_ID), value)
    rest = leader_batch(2, 1)

    before, damage, after = read(first + rest)

    assert isinstance(before, KraftLogRecord)
    assert isinstance(damage, Damage)
    assert isinstance(after, KraftLogRecord)
    assert (damage.position, damage.end) == (0, len(first))
    assert "in a record of the batch" in damage.reason


def test_a_last_batch_that_was_not_written_to_its_end_is_torn() -> None:
    whole = leader_batch(0, 1)

    before, damage = read(whole + data_batch(1, 1, topic_record(TOPIC_ID))[:-5])

    assert isinstance(before, KraftLogRecord)
    assert isinstance(damage, Damage)
    assert damage.torn
    assert damage.position == len(whole)


def test_the_logs_of_every_captured_node_are_read_in_full(captures: Path) -> None:
    logs = [log for log in captures.rglob("__cluster_metadata-0/*.log") if log.stat().st_size]
    types = set()

    assert len(logs) >= 5
    for log in logs:
        data = log.read_bytes()
        offsets = []
        for part in read_kraft_log([data], len(data), int(log.stem)):
            assert isinstance(part, KraftLogRecord)
            assert part.content.fields is not None
            offsets.append(part.offset)
            types.add(part.content.type_name)
        assert offsets == list(range(offsets[0], offsets[-1] + 1))
    assert types >= {"LEADER_CHANGE", KraftRecordType.PARTITION_CHANGE.kafka_name}
