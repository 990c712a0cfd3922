"""A bucket of segments and of the objects whose keys name them, judged: Arrow in, Arrow out.

An object's bucket is that of the segment id in its key, not of its partition: what another partition says of the id
contradicts the key. So what other copies of its own partition prove is not seen here: `judge_unnamed` looks for that.
What is true of the whole cluster comes with the bucket as a value that can be pickled.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from tieredctl.formats.arrow_columns import flag_array, number_array, text_array
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import ObjectStatus, UnknownReason
from tieredctl.ops.cluster.live_topics import KnownTopics, LiveTopics
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.original_times import NO_ORIGINAL_TIMES, OriginalTimes
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.judgement import (
    NO_SEGMENT,
    Certainty,
    Judge,
    Verdicts,
    judged_objects,
    reason_of,
    verdict_of,
)
from tieredctl.ops.orphans.object_columns import KnownOwners, MetadataBegins, ObjectColumns, selected_rows
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl.ports.layout import ExplainedKey, Layout
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.rlmm.segment_rows import NO_STATE
from tieredctl_spark.arrow.state_columns import numbered_partitions, states_of

KNOWN_PARTITION_FIELDS = {"knownTopic": pa.string(), "topicId": pa.string(), "partition": pa.int32()}
OBJECT_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "size": pa.int64(),
        "lastModifiedMs": pa.int64(),
        "version": pa.binary(),
        "storageClass": pa.string(),
        **KNOWN_PARTITION_FIELDS,
    }
)
"""An object a row, as in a listing. The last three are the partition in its key where metadata knows it, `knownTopic`
by which name; they are asked for where metadata may lie elsewhere, else null."""
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
_NONE = -1
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


def judge_bucket(segments: pa.Table, objects: pa.Table, by: JudgedBy) -> Iterator[pa.RecordBatch]:
    """Verdicts by VERDICT_SCHEMA on objects by OBJECT_SCHEMA that are selected and not reserved, from all segments by
    STATE_SCHEMA whose ids their keys name. Objects that are not covered by what is seen here have a row each."""
    known = _known_partitions(segments, objects)
    states = states_of(segments, known, by.last_timestamp_ms)
    live, times = by.live_topics, by.original_times
    judge = Judge(states, by.now_ms, by.min_age_ms, live, by.certainty, times, by.has_times)
    owners = KnownOwners(known, KnownTopics(by.named_topics, by.live_topics), by.begins)
    stems = _StemTexts(by)
    for columns, verdicts in judged_objects(judge, owners, _listings(objects), by.layout):
        stems.extend(columns.said.explained)
        yield _verdict_batch(columns, verdicts, judge, stems, by)


def _known_partitions(segments: pa.Table, objects: pa.Table) -> dict[TopicIdPartition, int]:
    """Numbers the partitions of segments, and those of objects that metadata knows."""
    partitions, _ = numbered_partitions(segments.combine_chunks())
    elsewhere = objects.select(list(KNOWN_PARTITION_FIELDS)).filter(pc.is_valid(objects.column("knownTopic")))
    if len(elsewhere):
        found, _ = numbered_partitions(elsewhere.rename_columns(["topic", "topicId", "partition"]).combine_chunks())
        partitions = list(dict.fromkeys([*partitions, *found]))
    return {one: number for number, one in enumerate(partitions)}


def _listings(objects: pa.Table) -> Iterator[pa.RecordBatch]:
    """By LISTING_SCHEMA, without what is reserved."""
    for batch in objects.to_batches():
        here = batch.filter(pc.invert(are_reserved(batch.column("key"))))
        classes = pc.fill_null(here.column("storageClass"), "").dictionary_encode()
        columns = [here.column(name) for name in LISTING_SCHEMA.names[:-1]]
        yield pa.RecordBatch.from_arrays([*columns, classes], schema=LISTING_SCHEMA)


class _StemTexts:
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


def _verdict_batch(
    objects: ObjectColumns, verdicts: Verdicts, judge: Judge, stems: _StemTexts, by: JudgedBy
) -> pa.RecordBatch:
    rows = selected_rows(objects, by.selection)
    listed = np.isin(verdicts.codes[rows], _codes(verdicts, by.listed))
    each = _listed(objects, verdicts, rows[listed], judge, stems)
    rest = _totals(objects, verdicts, rows[~listed], stems)
    return pa.concat_tables([each, rest]).combine_chunks().to_batches()[0] if len(each) + len(rest) else _empty()


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], VERDICT_SCHEMA)


def _codes(verdicts: Verdicts, statuses: frozenset[ObjectStatus]) -> list[int]:
    codes: list[int] = np.unique(verdicts.codes).tolist()
    return [one for one in codes if verdict_of(one)[0] in statuses or reason_of(one) is UnknownReason.NOT_COVERED]


def _listed(objects: ObjectColumns, verdicts: Verdicts, rows: Ints, judge: Judge, stems: _StemTexts) -> pa.Table:
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


def _totals(objects: ObjectColumns, verdicts: Verdicts, rows: Ints, stems: _StemTexts) -> pa.Table:
    of_stems, times = objects.said.stems[rows], number_array(objects.last_modified_ms[rows])
    table = pa.table(
        {
            "topic": stems.of("topic", pa.string(), of_stems),
            "topicId": stems.of("topicId", pa.string(), of_stems),
            "storageClass": objects.storage_classes.take(number_array(rows)).cast(pa.string()),
            **_texts_of(verdicts.codes[rows]),
            "objects": number_array(np.ones(len(rows), np.int64)),
            "bytes": number_array(objects.sizes[rows]),
            "oldestMs": times,
            "newestMs": times,
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
