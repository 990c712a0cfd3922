"""What the listing said of a segment's objects is taken from it, and asked for again where anything looks wrong."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.captured_segments import large_segment
from tests.faults.cluster import LAYOUT, EventsInMemory, captured, key_of
from tests.faults.segment_writer import WrittenSegment
from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id, updated
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy
from tests.rigs.object_servers import ObjectServer
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store

MOST_REQUESTS_AT_HEADERS = 7
READ_AT_HEADERS = (Part.LOG, Part.OFFSET_INDEX, Part.TIME_INDEX)
DEEP = [Level.HEADERS, Level.FULL]


@pytest.fixture(scope="module")
def segment(captures: Path) -> WrittenSegment:
    return large_segment(captured(captures / "kafka-4.3.1"))


@pytest.fixture
def store(segment: WrittenSegment) -> MemoryStore:
    store = MemoryStore()
    for part, data in segment.parts.items():
        store.put(key_of(segment.metadata, part), data)
    return store


def listed_task(segment: WrittenSegment, store: ObjectStore, level: Level) -> SegmentTask:
    by_key = {stored.key: stored for stored in store.list()}
    listed = {part: by_key[key_of(segment.metadata, part)] for part in segment.parts}
    return SegmentTask(segment.metadata, {part: one.key for part, one in listed.items()}, level, listed=listed)


def codes(report: SegmentReport) -> list[str]:
    return [finding.code for finding in report.findings]


def test_headers_take_at_most_seven_requests_and_no_head_of_what_was_listed(
    moto: ObjectServer, segment: WrittenSegment
) -> None:
    bucket = S3Bucket(moto.endpoint)
    for part, data in segment.parts.items():
        bucket.put(f"listed-sizes/{key_of(segment.metadata, part)}", data)
    with FaultyProxy(moto.endpoint) as proxy:
        store = open_store(f"s3://{BUCKET}/listed-sizes", {"endpoint": proxy.endpoint, "addressing-style": "path"})
        task = listed_task(segment, store, Level.HEADERS)
        proxy.requests.clear()

        report = check_segment(task, store, LAYOUT)

    asked = Counter(request.method for request in proxy.requests)
    described = {request.path for request in proxy.requests if request.method == "HEAD"}
    assert report.findings == ()
    assert asked.total() <= MOST_REQUESTS_AT_HEADERS
    assert not any(stored.key in path for path in described for stored in task.listed.values())


@pytest.mark.parametrize(
    ("level", "part"),
    [(Level.HEADERS, part) for part in READ_AT_HEADERS]
    + [(Level.FULL, part) for part in (*READ_AT_HEADERS, Part.PRODUCER_SNAPSHOT, Part.LEADER_EPOCH)],
)
def test_an_object_that_went_after_it_was_listed_is_missing_not_unreadable(
    segment: WrittenSegment, store: MemoryStore, level: Level, part: Part
) -> None:
    task = listed_task(segment, store, level)
    store.delete([task.listed[part]])

    report = check_segment(task, store, LAYOUT)

    assert codes(report).count("object-missing") == 1
    assert "unreadable" not in codes(report)
    assert {finding.evidence["key"] for finding in report.findings if finding.code == "object-missing"} == {
        task.keys[part]
    }


@pytest.mark.parametrize("level", DEEP)
def test_a_segment_all_of_which_went_is_missing(segment: WrittenSegment, store: MemoryStore, level: Level) -> None:
    task = listed_task(segment, store, level)
    store.delete(list(task.listed.values()))

    assert set(codes(check_segment(task, store, LAYOUT))) == {"object-missing"}


@pytest.mark.parametrize("level", DEEP)
@pytest.mark.parametrize("change", [-7, 7])
@pytest.mark.parametrize("part", READ_AT_HEADERS)
def test_a_size_that_the_listing_has_wrong_is_not_damage(
    segment: WrittenSegment, store: MemoryStore, level: Level, part: Part, change: int
) -> None:
    task = listed_task(segment, store, level)
    wrong = task.listed[part]._replace(size=task.listed[part].size + change)

    report = check_segment(replace(task, listed={**task.listed, part: wrong}), store, LAYOUT)

    assert codes(report) == []


class Retention(MemoryStore):
    """Deletes a segment's objects once they were listed."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        listed = [*super().list(prefix, start_after)]
        self.delete([stored for stored in listed if segment_id(2) in stored.key])
        yield from listed


@pytest.mark.parametrize("level", DEEP)
@pytest.mark.parametrize(("afterwards", "missing"), [([DELETING, DELETED], set()), ([DELETING], set()), ([], {2})])
def test_what_retention_deletes_between_listing_and_reading_has_moved_on_and_is_not_corrupt(
    level: Level, afterwards: list[RemoteLogSegmentState], missing: set[int]
) -> None:
    store = Retention()
    events = [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)]
    for number in (1, 2, 3):
        identity = ExplainedKey(
            PARTITION.topic, PARTITION.topic_id, PARTITION.partition, number * 10 - 10, segment_id(number), Part.LOG
        )
        for key in LAYOUT.promised_objects(identity).values():
            store.put(key, b"", FIRST_TIMESTAMP_MS)
    later = [*events, *(updated(2, state) for state in afterwards)]

    result = verify(
        EventStream(EventsInMemory(events)),
        store,
        LAYOUT,
        LocalEngine(),
        VerifyOptions(level, Clock(FIRST_TIMESTAMP_MS, 1 << 60)),
        read_again=lambda: EventStream(EventsInMemory(later)),
    )

    of_the_second = [one for one in result.findings if one.evidence.get("segmentId") == segment_id(2)]
    assert {one.code.value for one in of_the_second if one.code != "size-mismatch"} == (
        {"object-missing"} if missing else set()
    )
