"""Columns find the same about a whole cluster as looking at each segment and each object alone."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from tieredctl_local import LocalLayout

from tests.event_histories import PARTITIONS, TEMPERS, HistoryInMemory, Temper, event_by_event, random_histories
from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured
from tests.metadata_logs import FIRST_TIMESTAMP_MS
from tests.shares import divided
from tieredctl.layouts.registry import layout_named
from tieredctl.model.clock import Clock
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import AnyFindingCode, FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.verification.engine import LocalEngine
from tieredctl.ops.verification.options import Subset, VerifyOptions
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.tasks import task_batches, tasks_in
from tieredctl.ops.verification.verify import verify
from tieredctl.ports.layout import ExplainedKey, Layout, Part, SegmentIdentity
from tieredctl.ports.object_store import ObjectStore
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.storage.memory import MemoryStore

EVENTS = 9_000
"""Of all histories of a temper."""
STUCK_AFTER_MS = 500_000
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
BY_COLUMNS = {
    FindingCode.OBJECT_MISSING,
    FindingCode.OBJECT_UNREFERENCED,
    FindingCode.SIZE_MISMATCH,
    FindingCode.OFFSET_GAP,
    FindingCode.OFFSET_OVERLAP,
    FindingCode.COPY_STUCK,
    FindingCode.DELETE_STUCK,
}
Told = tuple[AnyFindingCode, str, str]
"""A finding's code; what it is about; a key, or the offsets."""


@dataclass(frozen=True)
class Scattered(LocalLayout):
    """Has a folder for each part, so that the objects of a segment are not listed together."""

    def explain(self, key: str) -> ExplainedKey | None:
        folder, _, rest = key.partition("/")
        part, _, name = rest.partition("/")
        found = super().explain(f"{folder}/{name}")
        return found if found and found.part == part else None

    def _keys(self, segment: SegmentIdentity, suffixes: Mapping[Part, str]) -> dict[Part, str]:
        return {part: key.replace("/", f"/{part}/") for part, key in LocalLayout._keys(self, segment, suffixes).items()}


LAYOUTS: dict[str, Layout] = {
    "local": LAYOUT,
    "aiven": layout_named("aiven"),
    "scattered": Scattered(),
    "hdfs": layout_named("hdfs"),
}
each_layout = pytest.mark.parametrize("layout", LAYOUTS.values(), ids=LAYOUTS)


@each_layout
@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_histories_and_stores_are_judged_as_segment_by_segment(temper: Temper, layout: Layout) -> None:
    for number, history in divided([*enumerate(random_histories("listing", temper, EVENTS // len(LAYOUTS)))]):
        source = random.Random(f"{temper} {number}")
        (store,) = event_by_event([history])
        state = {partition: store.caches[partition] for partition in PARTITIONS if partition in store.caches}
        objects = filled(source, history, layout)
        now_ms = FIRST_TIMESTAMP_MS + 10**6

        result = verified(history, objects, layout, now_ms)

        expected = Counter(told_one_by_one(state, objects, layout, now_ms))
        assert Counter(map(told, (one for one in result.findings if one.code in BY_COLUMNS))) == expected
        assert result.segments == sum(1 for cache in state.values() for _ in finished(cache))


def filled(source: random.Random, history: Sequence[EventRecord], layout: Layout) -> MemoryStore:
    """What copies left, but that some objects are gone, cut short, or were there before the metadata."""
    store, chance = MemoryStore(), source.choice([0, 0.02, 0.3])
    for event in (record.event for record in history):
        is_first = not next(store.list(), None)  # without any object it would be another cluster's
        if isinstance(event, RemoteLogSegmentMetadata) and (is_first or source.random() >= chance):
            for part, key in layout.promised_objects(replace(event, custom_metadata=None)).items():
                size = event.segment_size_in_bytes if part is Part.LOG else 8
                if source.random() >= chance / 4:
                    store.put(key, bytes(size - (source.random() < chance / 4)))
    for partition in PARTITIONS:
        if source.random() < chance:
            store.put(f"{layout.partition_prefix(partition)}notes", b"?")
    return store


def verified(history: Sequence[EventRecord], store: ObjectStore, layout: Layout, now_ms: int) -> Verification:
    options = VerifyOptions(Level.LISTING, Clock(now_ms, STUCK_AFTER_MS))
    return verify(EventStream(HistoryInMemory(history)), store, layout, LocalEngine(), options)


def told(finding: Finding) -> Told:
    evidence = finding.evidence
    where = evidence["offsets"] if finding.code in (FindingCode.OFFSET_GAP, FindingCode.OFFSET_OVERLAP) else None
    about = f"{evidence['topicId']}-{evidence['partition']}" if where else evidence.get("segmentId")
    return finding.code, str(about), str(where or evidence.get("key"))


def told_one_by_one(
    state: Mapping[TopicIdPartition, RemoteLogMetadataCache], store: MemoryStore, layout: Layout, now_ms: int
) -> Iterator[Told]:
    """What should be found, of one segment and one object after the other."""
    listed = {stored.key: stored for stored in store.list()}
    known = set()
    for partition, cache in state.items():
        for segment in cache.list_remote_log_segments():
            metadata = segment.metadata
            known.add((partition, metadata.segment_id))
            if metadata.state is FINISHED:
                promised = layout.promised_objects(metadata)
                sizes = {part: listed[key].size for part, key in promised.items() if key in listed}
                missing = (key for key in promised.values() if key not in listed)
                yield from ((FindingCode.OBJECT_MISSING, metadata.segment_id, key) for key in missing)
                if layout.original_log_size(sizes) not in (None, metadata.segment_size_in_bytes):
                    yield FindingCode.SIZE_MISMATCH, metadata.segment_id, promised[Part.LOG]
            elif now_ms - segment.entered_ms > STUCK_AFTER_MS:
                copies = metadata.state is RemoteLogSegmentState.COPY_SEGMENT_STARTED
                code = FindingCode.COPY_STUCK if copies else FindingCode.DELETE_STUCK
                yield code, metadata.segment_id, "None"
        for code, first, last in breaks(list(finished(cache))):
            told_of = f"{partition.topic_id}-{partition.partition}"
            lost = cache.deleted.not_among(first, last) if code is FindingCode.OFFSET_GAP else [(first, last)]
            yield from ((code, told_of, str(list(one))) for one in lost)
    for key in listed:
        explained = layout.explain(key)
        if explained is None or (explained.topic_id_partition, explained.segment_id) not in known:
            yield FindingCode.OBJECT_UNREFERENCED, str(explained and explained.segment_id), key


def finished(cache: RemoteLogMetadataCache) -> Iterator[RemoteLogSegmentMetadata]:
    for known in cache.list_remote_log_segments():
        if known.metadata.state is FINISHED:
            yield known.metadata


def breaks(segments: Sequence[RemoteLogSegmentMetadata]) -> Iterator[tuple[FindingCode, int, int]]:
    """Gaps and overlaps along the leader epochs, each of which begins where a segment has it first."""
    starts: dict[int, int] = {}
    for epoch, offset in (pair for one in segments for pair in one.segment_leader_epochs):
        starts[epoch] = min(offset, starts.get(epoch, offset))
    following = [*sorted(starts.items()), (-1, 1 << 63)]
    ends = {epoch: after - 1 for (epoch, _), (_, after) in pairwise(following)}
    ranges = (
        (max(first, starts[epoch]), min(last, ends[epoch]), one.segment_id)
        for one in segments
        for epoch, first, last in one.epoch_ranges()
    )
    reached, by, overlapping = -1, "", set[str]()
    for number, (first, last, segment) in enumerate(sorted(one for one in ranges if one[0] <= one[1])):
        if number and first > reached + 1:
            yield FindingCode.OFFSET_GAP, reached + 1, first - 1
        elif number and first <= reached and segment not in {by, *overlapping}:
            overlapping.add(segment)
            yield FindingCode.OFFSET_OVERLAP, first, min(last, reached)
        if not number or last > reached:
            reached, by = last, segment


class Noting:
    """An engine that reads nothing, and notes what it was to read."""

    def __init__(self) -> None:
        self.batches: list[pa.RecordBatch] = []

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        self.batches = list(task_batches(tasks))
        yield SegmentReport("", segments=sum(map(len, self.batches)))

    @property
    def tasks(self) -> dict[str, SegmentTask]:
        return {task.metadata.segment_id: task for batch in self.batches for task in tasks_in(batch)}


@pytest.fixture(scope="module")
def cluster(captures: Path) -> Cluster:
    return captured(captures / "kafka-4.3.1")


@pytest.mark.parametrize("at_once", [7, 1 << 14])
@pytest.mark.parametrize("layout", [LAYOUTS["local"], LAYOUTS["scattered"]], ids=["together", "scattered"])
def test_tasks_have_the_segment_and_all_that_is_listed_of_it(
    cluster: Cluster, layout: Layout, at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tieredctl.ops.verification.listed_objects._AT_ONCE", at_once)
    store, engine = MemoryStore(), Noting()
    for metadata in cluster.finished():
        keys = layout.promised_objects(metadata) | layout.optional_objects(metadata)
        for part in (part for part in keys if cluster.has(metadata, part)):
            store.put(keys[part], cluster.data(metadata, part), 1_700_000_000_000)
    options = VerifyOptions(Level.FULL, Clock(cluster.last_event_ms, 1 << 40), index_interval_bytes=4_097)

    result = verify(EventStream(EventsInMemory(cluster.events)), store, layout, engine, options)

    assert result.segments == len(engine.tasks) == len(cluster.finished())
    for metadata in cluster.finished():
        keys = layout.promised_objects(metadata) | layout.optional_objects(metadata)
        listed = {part: found for part, key in keys.items() if (found := store.head(key))}
        expected = SegmentTask(metadata, {part: keys[part] for part in listed}, Level.FULL, 4_097, listed)
        assert engine.tasks[metadata.segment_id] == expected


@pytest.mark.parametrize("subset", [Subset.parse("2/3"), Subset.parse("5%")], ids=["2 of 3", "5%"])
def test_a_share_of_the_segments_is_the_same_for_columns_as_for_each(cluster: Cluster, subset: Subset) -> None:
    engine = Noting()
    options = VerifyOptions(Level.HEADERS, Clock(cluster.last_event_ms, 1 << 40), subset=subset)

    result = verify(EventStream(EventsInMemory(cluster.events)), cluster.store(), LAYOUT, engine, options)

    chosen = {one.segment_id for one in cluster.finished() if subset.has(one.segment_id)}
    assert set(engine.tasks) == chosen
    assert result.segments == len(chosen)
