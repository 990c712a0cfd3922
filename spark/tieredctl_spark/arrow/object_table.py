"""A store's objects as an Arrow table: the columns of `remote ls`, made of a listing's."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import distinct_numbers, flag_array, number_array
from tieredctl.formats.windows import Ints
from tieredctl.model.key_text import key_text
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ports.layout import UNNAMED_OFFSET
from tieredctl_spark.arrow.instants import INSTANT, instants

OBJECT_TABLE_SCHEMA = pa.schema(
    {
        "key": pa.string(),
        "size": pa.int64(),
        "lastModified": INSTANT,
        "segmentId": pa.string(),
        "topicId": pa.string(),
        "partition": pa.int32(),
        "part": pa.string(),
        "storageClass": pa.string(),
        "topic": pa.string(),
        "startOffset": pa.int64(),
        "version": pa.string(),
    }
)
"""A row for each object, its size in bytes, as stored. What its key says is null where the layout does not explain it;
`lastModified` is null for a time outside the years 1 to 9999, `storageClass` and `version` (the ETag or generation)
where the listing does not tell them. Bytes of a key that are not UTF-8 are written as `\\udcff`."""


def object_table(batch: pa.RecordBatch, explainer: KeyExplainer) -> pa.Table:
    """The objects of a listing's batch (LISTING_SCHEMA), by OBJECT_TABLE_SCHEMA."""
    keys, sizes, times, versions, storage_classes = batch.columns
    said = explainer.explain(keys)
    numbers, stem_of = distinct_numbers(said.stems)
    stems = [said.explained[number] for number in numbers.tolist()]
    is_explained = flag_array(np.array([stem is not None for stem in stems], np.bool_)[stem_of])

    def of_stem(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array([stem and getattr(stem, name) for stem in stems], kind).take(number_array(stem_of))

    def of_name(values: pa.Array) -> pa.Array:
        return pc.if_else(is_explained, values, pa.scalar(None, values.type))

    columns = {
        "key": _texts(keys),
        "size": sizes,
        "lastModified": instants(times),
        "segmentId": of_name(said.named_segments.text_array().take(number_array(said.names))),
        "topicId": of_stem("topic_id", pa.string()),
        "partition": of_stem("partition", pa.int32()),
        "part": of_stem("part", pa.string()),
        "storageClass": _known(pc.cast(storage_classes, pa.string())),
        "topic": of_stem("topic", pa.string()),
        "startOffset": of_name(_named(said.start_offsets)),
        "version": _known(_texts(versions)),
    }
    return pa.table(columns, schema=OBJECT_TABLE_SCHEMA)


def _named(offsets: Ints) -> pa.Array:
    return pa.array(offsets, mask=offsets == UNNAMED_OFFSET)


def _texts(values: pa.BinaryArray) -> pa.StringArray:
    try:
        return pc.cast(values, pa.string())
    except pa.ArrowInvalid:
        return pa.array([value and _text(value) for value in values.to_pylist()], pa.string())


def _text(value: bytes) -> str:
    as_listed = key_text(value)
    return as_listed.encode("utf-8", "backslashreplace").decode("utf-8")


def _known(texts: pa.StringArray) -> pa.StringArray:
    return pc.if_else(pc.equal(texts, ""), pa.scalar(None, pa.string()), texts)
