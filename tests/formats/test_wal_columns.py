"""Events of `__remote_wal_log_metadata` are the same read as columns and read one at a time."""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_proposals.formats.wal_columns import ENTRIES, CombinedGroup, decode_wal_columns
from tieredctl_proposals.formats.wal_records import decode_wal_event, encode_wal_event
from tieredctl_proposals.formats.wal_schemas import WAL_SCHEMAS
from tieredctl_proposals.model.wal_events import WalEvent

from tests.conftest import examples
from tests.formats.wal_event_strategies import WAL_EVENTS
from tests.metadata_logs import COPIED, DELETED, DELETING
from tests.wal_histories import OTHER, combined_started, combined_updated, entry, wal_started, wal_updated
from tieredctl.errors import DecodeError
from tieredctl.formats.columns import Lists, Spans
from tieredctl.formats.event_frame import FRAME_BYTES
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.wire import reader

PLAIN: list[WalEvent] = [
    wal_started(1, 0, 9),
    wal_started(2, 3, 5, leader_epoch=4, segment_leader_epochs=((2, 3), (4, 4)), custom_metadata=b"x"),
    wal_updated(1, COPIED, partition=OTHER),
    wal_updated(1, DELETING, start_file_position=-1, end_file_position=-1),
    combined_started([entry(1), entry(2, partition=OTHER), entry(3)]),
    combined_updated([entry(1, 100, 199), entry(2, 200, 200, OTHER)], COPIED),
    combined_updated([entry(1, 100, 199)], DELETED, custom_metadata=b""),
]


def columns_of(values: Sequence[bytes]) -> tuple[dict[int, tuple[int, Any]], set[int]]:
    """By number, the apiKey and fields of each value that was read as columns; and those left."""
    lengths = np.array([len(value) for value in values], np.int64)
    ends = np.cumsum(lengths)
    data = np.frombuffer(b"".join(values), np.uint8)
    found, whole = decode_wal_columns(data, ends - lengths, ends), data.tobytes()
    read: dict[int, tuple[int, Any]] = {}
    groups: list[EventGroup | CombinedGroup] = [*found.segments, *found.combined]
    for group in groups:
        columns = dict(group.columns)
        if isinstance(group, CombinedGroup):
            columns[ENTRIES] = group.entries
            spans = group.entries.elements["RemoteLogSegmentId.TopicIdPartition.Name"]
            assert list(texts(whole, spans)) == [name.encode() for name in names_of(group)]
        for place, row in enumerate(group.rows.tolist()):
            read[row] = group.api_key, {path: at(whole, one, place) for path, one in columns.items()}
    return read, set(found.left.tolist())


def names_of(group: CombinedGroup | EventGroup) -> Iterator[str]:
    return (group.partitions[number].topic for number in group.partition_index.tolist())


def texts(data: bytes, spans: Spans) -> Iterator[bytes]:
    return (data[start:end] for start, end in zip(spans.starts.tolist(), spans.ends.tolist(), strict=True))


def at(data: bytes, column: Any, row: int) -> Any:
    if isinstance(column, Spans):
        start = int(column.starts[row])
        return None if start < 0 else data[start : int(column.ends[row])]
    if isinstance(column, Lists):
        inside = range(int(column.bounds[row]), int(column.bounds[row + 1]))
        return [{name: at(data, inner, one) for name, inner in column.elements.items()} for one in inside]
    value = column[row]
    return value.tobytes() if value.dtype.kind == "V" else value.item()


def flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{prefix}{name}.")
        elif isinstance(value, list):
            yield prefix + name, [dict(flat(one)) for one in value]
        else:
            yield prefix + name, value.encode() if isinstance(value, str) else value


def one_at_a_time(value: bytes) -> tuple[int, Any] | None:
    try:
        decode_wal_event(value)
    except DecodeError:
        return None
    values, _ = reader(WAL_SCHEMAS[value[1]])(value, FRAME_BYTES, len(value))
    return value[1], dict(flat(values))


def test_what_brokers_would_write_is_read_as_columns() -> None:
    values = [encode_wal_event(event) for event in PLAIN * 10]

    read, left = columns_of(values)

    assert not left
    assert read == {number: one_at_a_time(value) for number, value in enumerate(values)}


@settings(max_examples=examples(50))
@given(st.lists(WAL_EVENTS, max_size=10), st.sampled_from([1, 9]), st.integers(0, 1 << 30))
def test_any_event_is_read_as_one_at_a_time_or_left(events: list[WalEvent], repeats: int, seed: int) -> None:
    source = random.Random(seed)
    values = [damaged(encode_wal_event(event), source) for event in (*events, *PLAIN) * repeats]

    read, left = columns_of(values)

    assert read.keys() | left == set(range(len(values)))
    for number, fields in read.items():
        assert fields == one_at_a_time(values[number])


def damaged(value: bytes, source: random.Random) -> bytes:
    if source.random() < 0.7:
        return value
    damage = bytearray(value)
    damage[source.randrange(len(damage))] = source.choice([0, 1, 0x7F, 0x80, 0xFF, source.randrange(256)])
    return bytes(damage[: source.choice([len(damage), source.randrange(len(damage))])])


@pytest.mark.parametrize(
    ("event", "field", "width", "value"),
    [
        (wal_updated(0, COPIED), -9, 8, -5),
        (wal_updated(0, COPIED), -17, 8, 1 << 40),
        (wal_started(0, 4, 9, start_file_position=0, end_file_position=99), -9, 8, 98),
        *((wal_started(0, 4, 9, segment_leader_epochs=((1, 4), (2, 7))), -65, 8, first) for first in (0, 3, 5)),
        *((wal_started(0, 4, 9, segment_leader_epochs=((1, 4), (2, 7))), -52, 8, second) for second in (0, 4, 10)),
        (combined_updated([entry(0, 0, 9), entry(1, 10, 19)], COPIED), -34, 8, 9),
        (combined_updated([entry(0)], DELETING), -14, 1, COPIED),
    ],
)
def test_what_no_object_can_have_is_left_to_the_reader_that_tells_why(
    event: WalEvent, field: int, width: int, value: int
) -> None:
    altered = bytearray(encode_wal_event(event))
    altered[field : field + width] = value.to_bytes(width, signed=True)

    read, left = columns_of([bytes(altered)] * 20)

    assert (len(read), len(left)) == (0, 20)
    assert one_at_a_time(bytes(altered)) is None
