"""A second look at objects that metadata never named, by what is true of their partitions: Arrow in, Arrow out.

`judge_bucket` sees the segments whose ids are in keys, and leaves such objects unknown: what proves that their records
are elsewhere are other segments of their partitions.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import flag_array, numbers_in
from tieredctl.formats.windows import Flags
from tieredctl.model.ownership import ObjectStatus, OrphanCause, UnknownReason
from tieredctl.ops.orphans.judgement import clocks_may_differ_ms
from tieredctl.ops.orphans.segment_states import NOTHING, CopiedOffsets
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS
from tieredctl_spark.arrow.verdict_columns import VERDICT_SCHEMA, JudgedBy, summed

UNNAMED_SCHEMA = pa.schema([*VERDICT_SCHEMA, *COPIED_FIELDS.items(), ("isRemoved", pa.bool_())])
"""Verdicts on objects that are not covered, with what is true of their partitions: null where metadata does not know
them. `isRemoved`: an event says that the partition is being removed."""


def judge_unnamed(objects: pa.RecordBatch, by: JudgedBy) -> pa.Table:
    """Verdicts by VERDICT_SCHEMA on objects by UNNAMED_SCHEMA."""
    removed, held = pc.fill_null(objects.column("isRemoved"), False), flag_array(_are_held(objects, by))
    none = pa.scalar(None, pa.string())
    causes = pc.if_else(
        removed, OrphanCause.PARTITION_GONE.value, pc.if_else(held, OrphanCause.NO_METADATA.value, none)
    )
    orphans = causes.is_valid()
    said = {
        "status": pc.if_else(orphans, ObjectStatus.ORPHAN.value, ObjectStatus.UNKNOWN.value),
        "cause": causes,
        "reason": pc.if_else(orphans, none, UnknownReason.NOT_COVERED.value),
    }
    columns = [said[name] if name in said else objects.column(name) for name in VERDICT_SCHEMA.names]
    judged = pa.table(columns, schema=VERDICT_SCHEMA)
    if ObjectStatus.UNKNOWN in by.listed:
        return judged
    return pa.concat_tables([judged.filter(orphans), summed(judged.filter(pc.invert(orphans)))])


def _are_held(objects: pa.RecordBatch, by: JudgedBy) -> Flags:
    columns = (pc.fill_null(objects.column(name), none) for name, none in zip(COPIED_FIELDS, NOTHING, strict=True))
    copied = CopiedOffsets(*map(numbers_in, columns))
    latest_ms = numbers_in(pc.coalesce(objects.column("originalMs"), objects.column("newestMs")))
    start_offsets = KeyExplainer(by.layout).explain(objects.column("key")).start_offsets
    return copied.hold(np.arange(len(objects)), start_offsets, latest_ms + clocks_may_differ_ms(by.min_age_ms))
