"""Buckets of partitions and of segments, judged apart, say what one scan of everything does."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import pyarrow as pa
import pytest
from tieredctl_spark.arrow.judged_bucket import OBJECT_SCHEMA, judge_bucket
from tieredctl_spark.arrow.state_blocks import StateBlock
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS, EVENT_SCHEMA, STATE_SCHEMA, replayed_states
from tieredctl_spark.arrow.unnamed_objects import UNNAMED_SCHEMA, judge_unnamed
from tieredctl_spark.arrow.verdict_columns import AskedTopics, JudgedBy
from tieredctl_spark.verdict_rows import group_of, verdict_document

from tests.event_histories import PARTITIONS, TEMPERS, HistoryInMemory, Temper, random_histories
from tests.faults.cluster import LAYOUT
from tests.metadata_logs import FIRST_TIMESTAMP_MS
from tests.replayed_states import event_row, in_buckets
from tieredctl.model.events import EventRecord, RemoteLogSegmentMetadata, RemotePartitionDeleteMetadata
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.model.ownership import ObjectStatus, OrphanCause, UnknownReason
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.judgement import Certainty
from tieredctl.ops.orphans.object_columns import MetadataBegins
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.orphans.totals import Group, GroupTotals
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.memory import MemoryStore

BUCKETS = 3
UNKNOWN_TOPIC = "Ex-aw3fEQIi3do0H9Y7cKQ"
NOW_MS = FIRST_TIMESTAMP_MS + 1_000_000
MIN_AGES_MS = (999_900, 0)


class Unsure(HistoryInMemory):
    """Nobody tells how many metadata partitions there are."""

    @property
    def partition_count(self) -> int | None:
        return None


@dataclass
class Answers:
    """A cluster that answers as it likes."""

    source: random.Random

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return {one: self.source.choice([True, False, None]) for one in topic_ids}

    def describe(self) -> Document:
        return {}


def stored(history: Sequence[EventRecord], source: random.Random) -> MemoryStore:
    """Objects that the history's events name, and others like them: of another partition, offset, topic or id."""
    store = MemoryStore()
    starts = [record.event for record in history if isinstance(record.event, RemoteLogSegmentMetadata)]
    for event in starts:
        owner = source.choice([event.topic_id_partition, event.topic_id_partition, *PARTITIONS])
        owner = source.choice([owner] * 5 + [TopicIdPartition(UNKNOWN_TOPIC, owner.topic, owner.partition)])
        offset = event.start_offset + source.choice([0, 0, 0, 1])
        name = event.segment_id
        if source.random() < 0.3:
            offset, name = event.end_offset, uuid_text(source.randbytes(16))
        for part in (Part.LOG, Part.OFFSET_INDEX):
            identity = ExplainedKey(owner.topic, owner.topic_id, owner.partition, offset, name, part)
            modified_ms = FIRST_TIMESTAMP_MS + source.choice(
                [source.randint(-100, 600), source.randrange(len(history))]
            )
            store.put(LAYOUT.promised_objects(identity)[part], b"bytes", modified_ms)
    for key in ("readme.txt", "t-0/stray", ".tieredctl/lease.json"):
        store.put(key, b"more bytes", FIRST_TIMESTAMP_MS)
    return store


def first_records_ms(history: Sequence[EventRecord]) -> dict[int, int]:
    """Of each metadata partition."""
    return {one.metadata_partition: one.timestamp_ms for one in reversed(history)}


def judged(scan: Scan, history: Sequence[EventRecord], store: MemoryStore, source: random.Random) -> Iterator[Document]:
    """The rows of a scan that is done, by buckets."""
    stream, live = scan.stream, scan.live_topics
    assert stream is not None
    assert live is not None
    by_partition = in_buckets(map(event_row, history), EVENT_SCHEMA, BUCKETS, source, "topicId", "partition")
    segments = [row for bucket in by_partition for row in StateBlock.of(replayed_states(bucket)).rows().to_pylist()]
    known = {(one.topic_id, one.partition): one.topic for one in stream.partitions}
    topics = {one.topic_id for one in stream.partitions}
    asked = {UNKNOWN_TOPIC, *(one.topic_id for one in PARTITIONS)}
    objects = []
    for one in store.list():
        said = LAYOUT.explain(one.key)
        owner = (said.topic_id, said.partition) if said else ("", 0)
        objects.append(
            {
                "key": one.key.encode(),
                "size": one.size,
                "lastModifiedMs": one.last_modified_ms,
                "version": one.version.encode(),
                "segmentId": said.segment_id if said else None,
                "knownTopic": known.get(owner),
                "topicId": owner[0],
                "partition": owner[1],
            }
        )
    by = JudgedBy(
        layout=LAYOUT,
        now_ms=NOW_MS,
        min_age_ms=scan.options.min_age_ms,
        last_timestamp_ms=history[-1].timestamp_ms,
        certainty=Certainty.of(stream),
        live_topics=AskedTopics({one: live.is_live(one) for one in asked}),
        named_topics=topics,
        begins=MetadataBegins.of(stream.coverage, first_records_ms(history)),
        end_offsets={one: stream.source.offset_range(one).end for one in stream.source.metadata_partitions()},
        selection=scan.options.selection,
        has_times=scan.options.has_times,
    )
    schema = OBJECT_SCHEMA.append(pa.field("segmentId", pa.string()))
    pairs = zip(
        in_buckets(segments, STATE_SCHEMA, BUCKETS, random.Random(1), "segmentId"),
        in_buckets(objects, schema, BUCKETS, random.Random(1), "segmentId"),
        strict=True,
    )
    for number, (of_segments, of_objects) in enumerate(pairs):
        # One bucket lists orphans alone: what it counts besides is still all there is.
        listed = frozenset(ObjectStatus) if number or not source.random() < 0.2 else frozenset({ObjectStatus.ORPHAN})
        for batch in judge_bucket(of_segments, of_objects, replace(by, listed=listed)):
            for row in batch.to_pylist():
                is_open = row["reason"] == UnknownReason.NOT_COVERED
                yield from second_look(row, segments, history, replace(by, listed=listed)) if is_open else [row]


def second_look(
    row: Document, segments: Sequence[Document], history: Sequence[EventRecord], by: JudgedBy
) -> list[Document]:
    """The verdict on an object that metadata never named, once all segments of its partition are seen."""
    assert row["key"] is not None
    place = row["topic"], row["topicId"], row["partition"]
    of_partition = [one for one in segments if (one["topic"], one["topicId"], one["partition"]) == place]
    proof = {name: one[name] for one in of_partition for name in COPIED_FIELDS}
    deletes = (one.event for one in history if isinstance(one.event, RemotePartitionDeleteMetadata))
    is_removed = TopicIdPartition(row["topicId"], row["topic"], row["partition"]) in {
        one.topic_id_partition for one in deletes
    }
    batch = pa.RecordBatch.from_pylist([row | proof | {"isRemoved": is_removed or None}], UNNAMED_SCHEMA)
    found: list[Document] = judge_unnamed(batch, by).to_pylist()
    return found


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
@pytest.mark.parametrize("kind", [HistoryInMemory, Unsure], ids=["all is here", "more may be elsewhere"])
def test_buckets_say_what_one_scan_does(temper: Temper, kind: type[HistoryInMemory]) -> None:
    source, kinds = random.Random(str(temper)), set()
    for history in random_histories("buckets", temper, 1_500):
        store = stored(history, source)
        selection = source.choice([Selection(), Selection(), Selection.of(partition=0)])
        options = ScanOptions(NOW_MS, source.choice(MIN_AGES_MS), TopicSources(cluster=Answers(source)), selection)
        options = replace(options, has_times=source.random() < 0.9)
        read = partial(EventStream, kind(history))
        scan = Scan(SpooledListing(store.list()), LAYOUT, store.url, read, options)
        expected = {one["key"]: one for one in scan.documents()}

        rows = list(judged(scan, history, store, source))

        found = {row["key"].decode(): verdict_document(row) for row in rows if row["key"] is not None}
        for key, one in found.items():
            assert one == expected[key]
        assert {key for key, one in expected.items() if one["status"] == "orphan"} <= set(found)
        groups: dict[Group, GroupTotals] = {}
        for group, totals in map(group_of, rows):
            groups.setdefault(group, GroupTotals()).add(totals)
        assert groups == scan.groups
        kinds |= {(group.cause, group.reason) for group in groups}
    # The histories are worth it.
    assert kinds >= {(one, None) for one in OrphanCause}
    assert kinds >= {(None, one) for one in UnknownReason}
