"""Verdicts on objects as Arrow columns, and what they are judged by: Arrow out.

What is true of the whole cluster goes to each task as a value that can be pickled.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import distinct_numbers, flag_array, number_array, numbers_in, text_array
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.cluster.live_topics import KnownTopics, LiveTopics
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.judgement import NO_SEGMENT, Certainty, Judge, Verdicts, reason_of, verdict_of
from tieredctl.ops.orphans.object_columns import KnownOwners, MetadataBegins, ObjectColumns
from tieredctl.ops.orphans.segment_states import SegmentStates
from tieredctl.ports.layout import ExplainedKey, Layout
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.segment_rows import NO_STATE

VERDICT_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "version": pa.binary(),
        "topic": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "segmentId": pa.string(),
        "part": pa.string(),
        "storageClass": pa.string(),
        "status": pa.string(),
        "cause": pa.string(),
        "reason": pa.string(),
        "topicLive": pa.bool_(),
        "state": pa.string(),
        "metadataPartition": pa.int32(),
        "metadataOffset": pa.int64(),
        "noEventBefore": pa.int64(),
        "originalMs": pa.int64(),
        "objects": pa.int64(),
        "bytes": pa.int64(),
        "oldestMs": pa.int64(),
        "newestMs": pa.int64(),
    }
)
"""A row for each object that is listed: 1 of `objects`, its size and its time of modification. And one for all others
of a topic, status, cause, reason and storage class, whose `key` is null. `reason` says why it is unknown or
in progress, as `UnknownReason` and `InProgressReason` have it.

The evidence is `state`, `metadataPartition` and `metadataOffset` of the segment's last event; or `noEventBefore`, up to
where (exclusive) that partition of the metadata has none; and `originalMs`, of what was put back, its time before."""

_NAMES = ("topic", "topicId", "storageClass", "status", "cause", "reason")
_STATES = [state.name for state in RemoteLogSegmentState]


@dataclass(frozen=True)
class AskedTopics:
    """The answers about topics, as a value."""

    answers: Mapping[str, bool | None]

    def is_live(self, topic_id: str) -> bool | None:
        return self.answers.get(topic_id)

    def describe(self) -> Document | None:
        return None


@dataclass(frozen=True)
class JudgedBy:
    """What is true of the whole cluster, and how to judge. Times in ms."""

    layout: Layout
    now_ms: int
    min_age_ms: int
    last_timestamp_ms: int
    """The time of the last record of all metadata."""
    certainty: Certainty
    live_topics: LiveTopics
    named_topics: Container[str]
    """The topic ids that metadata names."""
    begins: MetadataBegins
    end_offsets: Mapping[int, int]
    """Up to where (exclusive) each metadata partition was read."""
    original_times: OriginalTimes = NO_ORIGINAL_TIMES
    selection: Selection = field(default_factory=Selection)
    has_times: bool = True
    """As `Judge` has it."""
    listed: frozenset[ObjectStatus] = frozenset(ObjectStatus)
    """Which objects have a row each."""

    def judge(self, segments: SegmentStates) -> Judge:
        """By these segments."""
        how = self.live_topics, self.certainty, self.original_times, self.has_times
        return Judge(segments, self.now_ms, self.min_age_ms, *how)

    def owners(self, known: Mapping[TopicIdPartition, int]) -> KnownOwners:
        """With these partitions, numbered."""
        return KnownOwners(known, KnownTopics(self.named_topics, self.live_topics), self.begins)


class StemTexts:
    """What verdicts need about each stem, computed when it first occurs."""

    def __init__(self, by: JudgedBy) -> None:
        self._by = by
        self._stems: list[ExplainedKey | None] = []
        self._columns: dict[str, list[object]] = {
            name: [] for name in ("topic", "topicId", "partition", "part", "topicLive", "metadataPartition", "end")
        }

    def extend(self, explained: list[ExplainedKey | None]) -> None:
        """`explained` begins with those that are known already."""
        for stem in explained[len(self._stems) :]:
            self._stems.append(stem)
            for column, value in zip(self._columns.values(), self._said(stem), strict=True):
                column.append(value)

    def of(self, name: str, kind: pa.DataType, stems: Ints) -> pa.Array:
        """A column for rows of these stems."""
        return pa.array(self._columns[name], kind).take(number_array(stems))

    def _said(self, stem: ExplainedKey | None) -> tuple[object, ...]:
        if stem is None:
            return (None,) * len(self._columns)
        number = metadata_partition(stem.topic_id, stem.partition, max(len(self._by.end_offsets), 1))
        live = self._by.live_topics.is_live(stem.topic_id)
        end = self._by.end_offsets.get(number)
        return stem.topic, stem.topic_id, stem.partition, stem.part.value, live, number, end


def listed_verdicts(objects: ObjectColumns, verdicts: Verdicts, rows: Ints, judge: Judge, stems: StemTexts) -> pa.Table:
    """Some rows of objects that were judged, by VERDICT_SCHEMA."""
    taken = number_array(rows)
    segments, of_stems = verdicts.segments[rows], objects.said.stems[rows]
    explained, times = objects.is_explained[rows], objects.last_modified_ms[rows]
    named = segments != NO_SEGMENT
    states, at = judge.segments, np.where(named, segments, 0)
    ids = objects.said.named_segments.text_array().take(number_array(objects.said.names[rows]))
    has_state = np.zeros(len(rows), np.bool_)
    number = np.zeros(len(rows), np.int32)
    place, offset = np.zeros(len(rows), np.int32), np.zeros(len(rows), np.int64)
    if named.any():
        number[named] = states.states[at[named]]
        has_state = named & (number != NO_STATE)
        place[named], offset[named] = states.metadata_partitions[at[named]], states.metadata_offsets[at[named]]
    absent = stems.of("metadataPartition", pa.int32(), of_stems)
    ends = stems.of("end", pa.int64(), of_stems)
    texts = _texts_of(verdicts.codes[rows])
    original = verdicts.modified_ms[rows]
    sizes = number_array(objects.sizes[rows])
    columns = {
        "key": objects.keys.take(taken),
        "version": objects.versions.take(taken),
        "topic": stems.of("topic", pa.string(), of_stems),
        "topicId": stems.of("topicId", pa.string(), of_stems),
        "partition": stems.of("partition", pa.int32(), of_stems),
        "segmentId": _where(explained, ids),
        "part": stems.of("part", pa.string(), of_stems),
        "storageClass": objects.storage_classes.take(taken).cast(pa.string()),
        **texts,
        "topicLive": stems.of("topicLive", pa.bool_(), of_stems),
        "state": _where(has_state, text_array(_STATES).take(number_array(np.where(has_state, number, 0)))),
        "metadataPartition": pc.if_else(flag_array(named), number_array(place), absent),
        "metadataOffset": _where(named, number_array(offset)),
        "noEventBefore": _where(~named & explained, ends),
        "originalMs": _where(original != times, number_array(original)),
        "objects": number_array(np.ones(len(rows), np.int64)),
        "bytes": sizes,
        "oldestMs": number_array(times),
        "newestMs": number_array(times),
    }
    return pa.Table.from_arrays([columns[name] for name in VERDICT_SCHEMA.names], schema=VERDICT_SCHEMA)


def verdict_totals(objects: ObjectColumns, verdicts: Verdicts, rows: Ints, stems: StemTexts) -> pa.Table:
    """What some rows of objects that were judged count, as `summed` gives it."""
    classes = objects.storage_classes.dictionary
    class_of = numbers_in(objects.storage_classes.indices)[rows]
    owners = objects.said.stems[rows] * len(classes) + class_of
    kinds, kind_of = distinct_numbers(owners << 8 | verdicts.codes[rows])
    of_stems, of_classes = np.divmod(kinds >> 8, max(len(classes), 1))
    sizes = np.zeros(len(kinds), np.int64)
    oldest, newest = np.full(len(kinds), np.iinfo(np.int64).max), np.full(len(kinds), np.iinfo(np.int64).min)
    np.add.at(sizes, kind_of, objects.sizes[rows])
    np.minimum.at(oldest, kind_of, objects.last_modified_ms[rows])
    np.maximum.at(newest, kind_of, objects.last_modified_ms[rows])
    table = pa.table(
        {
            "topic": stems.of("topic", pa.string(), of_stems),
            "topicId": stems.of("topicId", pa.string(), of_stems),
            "storageClass": classes.cast(pa.string()).take(number_array(of_classes)),
            **_texts_of((kinds & 0xFF).astype(np.int8)),
            "objects": number_array(np.bincount(kind_of, minlength=len(kinds))),
            "bytes": number_array(sizes),
            "oldestMs": number_array(oldest),
            "newestMs": number_array(newest),
        }
    )
    return summed(table)


def summed(rows: pa.Table) -> pa.Table:
    """What rows count, by VERDICT_SCHEMA: a row for all of a topic, status, cause, reason and storage class."""
    measures = [("objects", "sum"), ("bytes", "sum"), ("oldestMs", "min"), ("newestMs", "max")]
    totals = rows.group_by(list(_NAMES)).aggregate(measures)
    found = dict(zip(("objects", "bytes", "oldestMs", "newestMs"), ("_".join(one) for one in measures), strict=True))
    columns = [
        totals.column(name)
        if name in _NAMES
        else totals.column(found[name])
        if name in found
        else pa.nulls(len(totals), VERDICT_SCHEMA.field(name).type)
        for name in VERDICT_SCHEMA.names
    ]
    return pa.table(columns, schema=VERDICT_SCHEMA)


def _texts_of(codes: NDArray[np.int8]) -> dict[str, pa.Array]:
    """Statuses, causes, and why objects are unknown or in progress."""
    distinct, number_of = np.unique(codes, return_inverse=True)
    said, reasons = [verdict_of(code) for code in distinct.tolist()], map(reason_of, distinct.tolist())
    taken = number_array(number_of)
    statuses = pa.array([status.value for status, _ in said], pa.string())
    causes = pa.array([cause and cause.value for _, cause in said], pa.string())
    why = pa.array([reason and reason.value for reason in reasons], pa.string())
    return {"status": statuses.take(taken), "cause": causes.take(taken), "reason": why.take(taken)}


def _where(flags: Flags, values: pa.Array) -> pa.Array:
    """Values, null where a flag is not set."""
    return pc.if_else(flag_array(flags), values, pa.scalar(None, values.type))
