"""A metadata log that was compacted: gaps and tombstones are no damage, and what they took away is unknown."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    copied,
    event_records,
    segment_id,
    segment_key,
    started,
    text_key,
    tombstone,
    updated,
    write_log,
    write_records,
)
from tieredctl.errors import ExitCode
from tieredctl.formats.compression import Codec
from tieredctl.formats.event_keys import is_event_key
from tieredctl.formats.record_batches import Record, encode_batch
from tieredctl.kafka.export_file import ExportFile
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.metadata_source import MetadataSource

STARTED = RemoteLogSegmentState.COPY_SEGMENT_STARTED
BINARY_KEYS = [segment_key(1, state) for state in RemoteLogSegmentState]
TEXT_KEYS = [text_key(9), text_key(9, is_update=True)]
FOREIGN_KEYS = [
    b"",
    bytes(36),
    bytes(38),
    bytes(36) + b"\x05",
    TEXT_KEYS[0] + b":DELETE",
    TEXT_KEYS[0] + b"\n",
    TEXT_KEYS[0].replace(b":9:", b":-9:"),
    TEXT_KEYS[0].replace(b":9:", b":9223372036854775808:"),
    b"ABEiM0RVZneImaq7zN3u_w:0:9:0",
    b"ABEiM0RVZneImaq7zN3u_x:t:0:9:0",
]
WHOLE: list[MetadataEvent] = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]


def codes(source: MetadataSource) -> list[str]:
    stream = EventStream(source)
    replayed(stream)
    return [finding.code for finding in stream.findings]


def as_log(tmp_path: Path, *records: Record) -> MetadataSource:
    write_records(tmp_path / "data", *records)
    return LogDirectories([tmp_path / "data"])


def as_replicas(tmp_path: Path, *records: Record) -> MetadataSource:
    write_records(tmp_path / "data", *records)
    write_records(tmp_path / "other", *records)
    return LogDirectories([tmp_path / "data", tmp_path / "other"])


def as_export(suffix: str) -> Callable[..., MetadataSource]:
    def written(tmp_path: Path, *records: Record) -> MetadataSource:
        file = tmp_path / f"export{suffix}"
        export_metadata(EventStream(as_log(tmp_path, *records)), file, force=False)
        return ExportFile(file)

    return written


SOURCES = pytest.mark.parametrize(
    "source",
    [as_log, as_replicas, as_export(".jsonl"), as_export(".parquet")],
    ids=["log", "replicas", "jsonl", "parquet"],
)


@SOURCES
@pytest.mark.parametrize("offsets", [(0, 5), (3, 4)], ids=["in the middle", "at the beginning"])
def test_a_gap_says_that_something_is_gone(
    tmp_path: Path, source: Callable[..., MetadataSource], offsets: tuple[int, int]
) -> None:
    events: dict[int, MetadataEvent] = dict(zip(offsets, copied(1, 0, 9), strict=True))
    stream = EventStream(source(tmp_path, *event_records(events)))

    replayed(stream)

    (found,) = stream.findings
    assert (found.code, exit_code_of(stream.findings)) == ("metadata-compacted", ExitCode.INCOMPLETE)
    assert found.evidence["missingRecords"] == max(offsets) - 1


@SOURCES
@pytest.mark.parametrize(
    "left",
    [{7: updated(1, COPIED)}, {0: started(1, 0, 9), 7: updated(1, DELETED)}, {7: updated(1, DELETED)}],
    ids=["started", "finished and deleting", "all before"],
)
def test_an_event_whose_predecessor_is_gone_is_not_illegal(
    tmp_path: Path, source: Callable[..., MetadataSource], left: dict[int, MetadataEvent]
) -> None:
    assert codes(source(tmp_path, *event_records(left))) == ["metadata-compacted"]


def test_an_event_before_the_first_gap_is_illegal_as_ever(tmp_path: Path) -> None:
    left: dict[int, MetadataEvent] = {0: updated(1, COPIED), 1: started(2, 0, 9), 5: updated(2, COPIED)}
    assert sorted(codes(as_log(tmp_path, *event_records(left)))) == ["event-illegal", "metadata-compacted"]


@pytest.mark.parametrize("key", [TEXT_KEYS[0], BINARY_KEYS[0], None], ids=["text", "binary", "no keys"])
def test_without_a_gap_nothing_is_excused(tmp_path: Path, key: bytes | None) -> None:
    (record,) = event_records({0: updated(1, COPIED)})
    assert codes(as_log(tmp_path, record._replace(key=key))) == ["event-illegal"]


@SOURCES
@pytest.mark.parametrize("keys", [BINARY_KEYS, TEXT_KEYS], ids=["binary", "text"])
def test_tombstones_before_compaction_change_nothing(
    tmp_path: Path, source: Callable[..., MetadataSource], keys: list[bytes]
) -> None:
    events = event_records(dict(enumerate([*WHOLE, *copied(2, 10, 19)])))
    tombstones = [tombstone(6 + number, key) for number, key in enumerate(keys)]
    stream = EventStream(source(tmp_path, *events, *tombstones))

    store = replayed(stream)

    assert stream.findings == []
    assert [known.metadata.segment_id for _, known in store.segments()] == [segment_id(2)]


@SOURCES
@pytest.mark.parametrize("key", FOREIGN_KEYS)
def test_what_a_tombstone_of_another_key_took_away_is_unknown(
    tmp_path: Path, source: Callable[..., MetadataSource], key: bytes
) -> None:
    stream = EventStream(source(tmp_path, *event_records(dict(enumerate(copied(1, 0, 9)))), tombstone(2, key)))

    replayed(stream)

    (found,) = stream.findings
    assert (found.code, exit_code_of(stream.findings)) == ("metadata-compacted", ExitCode.INCOMPLETE)
    assert (found.evidence["unknownTombstones"], found.evidence["metadataOffset"]) == (1, 2)


@SOURCES
def test_a_record_with_neither_key_nor_value_is_not_a_tombstone(
    tmp_path: Path, source: Callable[..., MetadataSource]
) -> None:
    assert codes(source(tmp_path, tombstone(0, None))) == ["event-undecodable"]


@pytest.mark.parametrize("count", [200, 500], ids=["rows", "columns"])
@pytest.mark.parametrize("records_per_batch", [1, 500])
def test_tombstones_keep_their_keys_however_they_are_read(
    tmp_path: Path, count: int, records_per_batch: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl.formats.log_blocks.MOST_ROWS", 499)
    monkeypatch.setattr("tieredctl.formats.log_blocks.COLUMNS_FROM", 40_000)
    keys = [segment_key(number, DELETED) for number in range(count)]
    records = [tombstone(offset, key) for offset, key in enumerate(keys)]
    batches = [
        encode_batch(records[first : first + records_per_batch], codec=Codec.ZSTD)
        for first in range(0, count, records_per_batch)
    ]
    write_log(tmp_path, 0, batches)
    assert (sum(map(len, batches)) >= 40_000) is (count == 500 and records_per_batch == 1)
    source = LogDirectories([tmp_path])

    read = [record for chunk in source.chunks(0) for record in chunk.records()]

    assert [record.tombstone_key for record in read] == keys
    assert {record.value for record in read} == {None}


def test_damage_is_told_as_damage_alone(tmp_path: Path) -> None:
    records = event_records(dict(enumerate(WHOLE)))
    path = write_records(tmp_path, *records)
    data = bytearray(path.read_bytes())
    data[len(encode_batch([records[0]])) + 70] ^= 1
    path.write_bytes(data)

    assert "metadata-compacted" not in codes(LogDirectories([tmp_path]))


def test_a_lost_file_in_the_middle_is_noticed(tmp_path: Path) -> None:
    records = event_records(dict(enumerate([*WHOLE, *copied(2, 10, 19)])))
    write_log(tmp_path, 0, [encode_batch([record]) for record in records[:2]])
    write_log(tmp_path, 0, [encode_batch([record]) for record in records[4:]], first_offset=4)

    assert codes(LogDirectories([tmp_path])) == ["metadata-compacted"]


def test_the_key_of_a_segments_state() -> None:
    assert len(segment_key(1, STARTED)) == 37
    assert all(map(is_event_key, [*BINARY_KEYS, *TEXT_KEYS]))
    assert not any(map(is_event_key, FOREIGN_KEYS))


def test_replicas_that_are_compacted_to_different_extents_fill_each_others_gaps(tmp_path: Path) -> None:
    records = event_records(dict(enumerate(WHOLE)))
    write_records(tmp_path / "one", records[0], records[3])
    write_records(tmp_path / "other", *records[:3])

    assert codes(LogDirectories([tmp_path / "one", tmp_path / "other"])) == []


def test_tombstones_with_different_keys_at_one_offset_are_a_conflict(tmp_path: Path) -> None:
    write_records(tmp_path / "one", tombstone(0, segment_key(1, DELETED)))
    write_records(tmp_path / "other", tombstone(0, segment_key(2, DELETED)))

    assert codes(LogDirectories([tmp_path / "one", tmp_path / "other"])) == ["metadata-conflict"]


def test_a_log_of_which_nothing_is_left_is_not_taken_for_a_new_one(tmp_path: Path) -> None:
    write_log(tmp_path, 0, [])
    write_log(tmp_path, 0, [], first_offset=8)

    assert codes(LogDirectories([tmp_path])) == ["metadata-compacted"]
