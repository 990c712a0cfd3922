"""Indexes and producer snapshots rebuilt from the logs that real brokers copied, beside those that they wrote."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.indexes import OffsetIndexEntry, read_offset_index
from tieredctl.formats.log_scan import LogBlock, scan_log
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_in
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.healing.index_rebuilding import earlier_producers, rebuilt_parts
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.storage.registry import open_store

INTERVAL = 4_096
STORES = {
    "kafka-4.3.1": "remote/kafka-tiered-storage",
    "kafka-3.9.1": "remote/kafka-tiered-storage",
    "aiven-plain-4.3.1": "bucket",
    "aiven-zstd-encrypted-4.3.1": "bucket",
    "aiven-crash-4.3.1": "bucket",
}


@dataclass(frozen=True)
class RebuiltSegment:
    """A segment, what the broker wrote next to its log, and what was rebuilt from the log."""

    metadata: RemoteLogSegmentMetadata
    log: bytes
    written: Mapping[Part, bytes]
    rebuilt: Mapping[Part, bytes]


@pytest.fixture(scope="module", params=STORES)
def segments(request: pytest.FixtureRequest, captures: Path) -> list[RebuiltSegment]:
    capture = captures / request.param
    store = open_store(f"file:{capture / STORES[request.param]}", {})
    private_key = capture / "keys" / "private.pem"
    layout = layout_in(store, "auto", {"private-key": str(private_key)} if private_key.exists() else {})
    state = replayed(EventStream(LogDirectories([capture / "data"])))
    return [
        rebuilt_segment(known.metadata, state.caches[partition], store, layout)
        for partition, known in state.segments()
        if known.metadata.state.name == "COPY_SEGMENT_FINISHED"
    ]


def rebuilt_segment(
    metadata: RemoteLogSegmentMetadata, cache: RemoteLogMetadataCache, store: ObjectStore, layout: Layout
) -> RebuiltSegment:
    reader = layout.open_segment(store, metadata)
    before = earlier_producers(metadata, cache, store, layout)
    written = {part: reader.read(part) for part in reader.parts()}
    rebuilt = rebuilt_parts(metadata, store, layout, INTERVAL, before.entries)
    return RebuiltSegment(metadata, written[Part.LOG], written, rebuilt)


def blocks(log: bytes) -> Iterator[LogBlock[HeaderColumns]]:
    for block in scan_log([log], len(log), AsColumns()):
        assert isinstance(block, LogBlock)
        yield block


def looked_up(entries: list[OffsetIndexEntry], relative_offset: int) -> int:
    """The byte from which a broker looks for an offset."""
    number = bisect_right(entries, relative_offset, key=lambda entry: entry.relative_offset)
    return entries[number - 1].position if number else 0


def test_time_and_transaction_indexes_are_byte_for_byte_the_brokers(segments: list[RebuiltSegment]) -> None:
    # All parts are rebuilt of every segment.
    parts = {Part.OFFSET_INDEX, Part.TIME_INDEX, Part.TRANSACTION_INDEX, Part.PRODUCER_SNAPSHOT}
    assert len(segments) > 100
    assert all(segment.rebuilt.keys() == parts for segment in segments)
    # Time indexes are byte for byte the brokers.
    wrong = [one.metadata for one in segments if one.rebuilt[Part.TIME_INDEX] != one.written[Part.TIME_INDEX]]
    assert wrong == []
    # Transaction indexes are byte for byte the brokers. A broker writes none where no transaction was aborted.
    index = Part.TRANSACTION_INDEX
    wrong = [one.metadata for one in segments if one.rebuilt[index] != one.written.get(index, b"")]
    assert wrong == []


def test_producer_snapshots_hold_the_brokers_entries(segments: list[RebuiltSegment]) -> None:
    """By rising producer id, which is the order of a broker's too as long as its hash table has room for all ids."""
    snapshot = Part.PRODUCER_SNAPSHOT
    wrong = [
        one.metadata
        for one in segments
        if read_producer_snapshot(one.rebuilt[snapshot]) != sorted(read_producer_snapshot(one.written[snapshot]))
    ]

    assert wrong == []


def test_offset_indexes_are_byte_for_byte_those_of_brokers_that_were_not_restarted(
    segments: list[RebuiltSegment],
) -> None:
    """A broker that is restarted, which begins a leader epoch, begins to count the bytes between two entries again."""
    index = Part.OFFSET_INDEX
    wrong = [one.metadata for one in segments if one.rebuilt[index] != one.written[index]]

    assert [one for one in wrong if len(one.segment_leader_epochs) == 1] == []
    assert len(wrong) <= 1


def test_every_look_up_comes_to_a_batch_at_or_before_the_one_that_is_looked_for(
    segments: list[RebuiltSegment],
) -> None:
    """And to one that is no more than an interval and a batch before it: that goes for the offset indexes too that are
    not the broker's byte for byte."""
    for segment in segments:
        entries = read_offset_index(segment.rebuilt[Part.OFFSET_INDEX])
        bases = [int(base) for block in blocks(segment.log) for base in block.headers["baseOffset"]]
        starts = [int(start) for block in blocks(segment.log) for start in block.positions]
        longest = max(end - start for start, end in pairwise([*starts, len(segment.log)]))
        for base, start in zip(bases, starts, strict=True):
            found = looked_up(entries, base - segment.metadata.start_offset)

            assert found in starts
            assert start - INTERVAL - longest <= found <= start
