"""A bucket of segments and of the objects whose keys name them, judged: Arrow in, Arrow out.

An object's bucket is that of the segment id in its key, not of its partition: what another partition says of the id
contradicts the key. So what other copies of its own partition prove is not seen here: `judge_unnamed` looks for that.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import ObjectStatus, UnknownReason
from tieredctl.ops.orphans.judgement import Judge, Verdicts, judged_objects, reason_of, verdict_of
from tieredctl.ops.orphans.object_columns import ObjectColumns, selected_rows
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl_spark.arrow.state_columns import numbered_partitions, states_of
from tieredctl_spark.arrow.verdict_columns import (
    VERDICT_SCHEMA,
    JudgedBy,
    StemTexts,
    listed_verdicts,
    verdict_totals,
)

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


def judge_bucket(segments: pa.Table, objects: pa.Table, by: JudgedBy) -> Iterator[pa.RecordBatch]:
    """Verdicts by VERDICT_SCHEMA on objects by OBJECT_SCHEMA that are selected and not reserved, from all segments by
    STATE_SCHEMA whose ids their keys name. Objects that are not covered by what is seen here have a row each."""
    known = _known_partitions(segments, objects)
    states = states_of(segments, known, by.last_timestamp_ms)
    judge, stems = by.judge(states), StemTexts(by)
    for columns, verdicts in judged_objects(judge, by.owners(known), _listings(objects), by.layout):
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


def _verdict_batch(
    objects: ObjectColumns, verdicts: Verdicts, judge: Judge, stems: StemTexts, by: JudgedBy
) -> pa.RecordBatch:
    rows = selected_rows(objects, by.selection)
    listed = np.isin(verdicts.codes[rows], _codes(verdicts, by.listed))
    each = listed_verdicts(objects, verdicts, rows[listed], judge, stems)
    rest = verdict_totals(objects, verdicts, rows[~listed], stems)
    return pa.concat_tables([each, rest]).combine_chunks().to_batches()[0] if len(each) + len(rest) else _empty()


def _empty() -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], VERDICT_SCHEMA)


def _codes(verdicts: Verdicts, statuses: frozenset[ObjectStatus]) -> list[int]:
    codes: list[int] = np.unique(verdicts.codes).tolist()
    return [one for one in codes if verdict_of(one)[0] in statuses or reason_of(one) is UnknownReason.NOT_COVERED]
