"""Nothing becomes an orphan, and nothing is called missing, as compaction took its events away."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import (
    COPIED,
    DELETED,
    DELETING,
    PARTITION,
    TOPIC_ID,
    copied,
    event_records,
    segment_id,
    segment_key,
    started,
    tombstone,
    updated,
    write_records,
)
from tests.orphans.test_rules import HOUR_MS, NOW_MS, OLD_MS, OTHER_TOPIC_ID, key
from tieredctl.formats.record_batches import Record
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.clock import Clock
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import Part
from tieredctl.storage.memory import MemoryStore

LIFE: list[MetadataEvent] = [
    *copied(1, 0, 9),
    started(2, 10, 19),
    updated(2, COPIED),
    started(3, 10, 19),
    updated(1, DELETING),
    updated(1, DELETED),
    updated(3, COPIED),
    *copied(4, 20, 29),
]
LAST = len(LIFE) - 1
SUBSETS = [kept for size in (1, 3, 5, 7) for kept in combinations(range(LAST), size)]


@dataclass
class Left(EventsInMemory):
    """Some of the events are there, and the last; the others were compacted away."""

    kept: tuple[int, ...] = ()

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        for chunk in super().chunks(metadata_partition, from_offset):
            rows = [row for row in range(len(chunk)) if chunk.offsets[row] in (*self.kept, LAST)]
            columns = (chunk.offsets, chunk.timestamps, chunk.starts, chunk.ends)
            offsets, timestamps, starts, ends = ([column[row] for row in rows] for column in columns)
            yield RecordChunk(chunk.buffer, offsets, timestamps, starts, ends)


def statuses(
    stream: EventStream, keys: list[str], live: frozenset[str] | None = None, modified_ms: int = OLD_MS
) -> dict[str, str]:
    store = MemoryStore()
    for one in keys:
        store.put(one, b"bytes", modified_ms)
    options = ScanOptions(now_ms=NOW_MS, min_age_ms=24 * HOUR_MS, topic_sources=TopicSources(live))
    scan = Scan(SpooledListing(store.list()), LAYOUT, store.url, lambda: stream, options)
    found = {document["key"]: document["status"] for document in scan.documents()}
    assert not scan.metadata_is_whole
    return found


def verified(stream: EventStream) -> Verification:
    options = VerifyOptions(level=Level.LISTING, clock=Clock(NOW_MS, HOUR_MS))
    store = MemoryStore()
    store.put(key(4, start=20), b"bytes", OLD_MS)
    return verify(stream, store, LAYOUT, LocalEngine(threads=1), options)


def log_of(tmp_path: Path, events: Mapping[int, MetadataEvent], *others: Record) -> EventStream:
    write_records(tmp_path, *event_records(events), *others)
    return EventStream(LogDirectories([tmp_path]))


def test_whatever_events_are_gone_no_live_segment_is_an_orphan() -> None:
    alive = [key(2, start=10), key(3, start=10), key(4, start=20)]
    for live in (None, frozenset({TOPIC_ID})):
        for kept in SUBSETS:
            found = statuses(EventStream(Left(LIFE, kept)), [*alive, key(5, start=30)], live)

            assert set(found.values()) <= {"owned", "unknown"}, (live, kept)


def test_what_the_events_that_are_left_prove_still_holds_and_nothing_else() -> None:
    # What the events that are left prove still holds.
    found = statuses(EventStream(Left(LIFE, (0, 1, 5, 6))), [key(1)])
    assert found == {key(1): "orphan"}
    # A topic without events may be this clusters.
    cases: list[int] = [OLD_MS, NOW_MS - 50 * HOUR_MS]
    for modified_ms in cases:
        other = key(7, partition=replace(PARTITION, topic_id=OTHER_TOPIC_ID))
        assert statuses(EventStream(Left(LIFE, (0,))), [other], modified_ms=modified_ms) == {other: "unknown"}


def test_a_copy_whose_end_is_gone_is_not_given_up_for_a_later_one(tmp_path: Path) -> None:
    stream = log_of(tmp_path, {0: started(1, 0, 9), 2: started(2, 0, 9)})
    assert statuses(stream, [key(1)]) == {key(1): "unknown"}


def test_a_tombstone_of_another_key_makes_no_orphans(tmp_path: Path) -> None:
    stream = log_of(tmp_path, dict(enumerate(copied(1, 0, 9))), tombstone(2, b"topic:0:9:0"))
    assert statuses(stream, [key(1), key(2)]) == {key(1): "owned", key(2): "unknown"}


def test_nothing_is_missing_or_unreferenced_where_events_are_gone() -> None:
    cases: list[tuple[int, ...]] = [(0, 1), (1, 2, 3), (0, 4, 7), (6,)]
    for kept in cases:
        result = verified(EventStream(Left(LIFE, kept)))
        assert {finding.code for finding in result.findings} <= {"metadata-compacted", "offset-overlap"}, kept
        assert not result.complete, kept


def test_a_tombstone_of_another_key_makes_nothing_missing(tmp_path: Path) -> None:
    stream = log_of(tmp_path, dict(enumerate(LIFE)), tombstone(LAST + 1, b"topic:0:9:0"))
    result = verified(stream)

    assert "metadata-compacted" in {finding.code for finding in result.findings}
    assert "object-missing" not in {finding.code for finding in result.findings}
    assert not result.complete


def test_known_tombstones_hide_nothing_that_is_missing(tmp_path: Path) -> None:
    tombstones = [tombstone(LAST + 1, segment_key(1, DELETED))]
    stream = log_of(tmp_path, dict(enumerate(LIFE)), *tombstones)

    missing = [finding for finding in verified(stream).findings if finding.code == "object-missing"]

    assert {finding.evidence["segmentId"] for finding in missing} >= {segment_id(2), segment_id(3)}
    assert Part.LOG.value in {finding.evidence["part"] for finding in missing}
