"""Packed rows are the same rows, each once, in the one bucket that its number names."""

from __future__ import annotations

from collections import Counter
from unittest.mock import patch

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark import packed
from tieredctl_spark.packed import packed_groups, packed_parts, packed_rows, together
from tieredctl_spark.transforms.buckets import numbers_of_partitions, numbers_of_segments

from tieredctl.model.ids import uuid_text

SCHEMA = pa.schema({"segmentId": pa.string(), "size": pa.int64(), "key": pa.binary()})
COUNT_SCHEMA = pa.schema({"segmentId": pa.string(), "count": pa.int64()})
IDS = [uuid_text(bytes([number]) * 16) for number in range(40)]
ROWS = [(id_text, number, b"key %d" % number) for number, id_text in enumerate([*IDS, *IDS, None, None, None])]


def table_of(rows: list[tuple[str | None, int, bytes]]) -> pa.Table:
    return pa.Table.from_pylist([dict(zip(SCHEMA.names, row, strict=True)) for row in rows], SCHEMA)


@pytest.mark.spark
def test_rows_are_what_they_were_and_in_a_bucket_together(spark: SparkSession) -> None:
    frame = spark.createDataFrame(table_of(ROWS)).repartition(3)

    def counted(group: pa.Table) -> pa.Table:
        rows = together(group, SCHEMA)
        ids = rows.column("segmentId").drop_null()
        return pa.table([ids.unique(), ids.value_counts().field("counts")], schema=COUNT_SCHEMA)

    found = packed_rows(frame, SCHEMA)
    groups = packed_groups(found.by_bucket(4, numbers_of_segments, SCHEMA), counted, COUNT_SCHEMA)

    assert sorted(map(tuple, found.rows().collect()), key=lambda row: row[1]) == ROWS
    assert sorted(map(tuple, groups.rows().collect())) == sorted((one, 2) for one in IDS)


@pytest.mark.spark
def test_parts_are_read_each_once_and_changed_where_they_are_read(spark: SparkSession) -> None:
    def part(number: int) -> pa.Table:
        return table_of([(None, number, b"key")])

    def doubled(table: pa.Table) -> pa.Table:
        return pa.concat_tables([table, table])

    found = packed_parts(spark, 5, lambda number: iter([part(number), SCHEMA.empty_table()]), SCHEMA, 2)

    assert Counter(row["size"] for row in found.through(doubled, SCHEMA).rows().collect()) == dict.fromkeys(range(5), 2)


@pytest.mark.parametrize("bytes_in_value", [1, 100, 1 << 20])
def test_values_are_small_and_hold_every_row_once(bytes_in_value: int) -> None:
    table = table_of(ROWS)

    with patch.object(packed, "_BYTES_IN_VALUE", bytes_in_value):
        values = list(packed._values(table))
        batch = packed._bucketed(table, numbers_of_segments(table) % 3)

    assert pa.concat_tables(pa.ipc.open_stream(value).read_all() for value in values).equals(table)
    assert len(together(pa.Table.from_batches([batch]), SCHEMA)) == len(table)


def test_a_row_has_its_bucket_in_any_order_and_rows_of_a_segment_and_of_a_partition_have_one() -> None:
    random = np.random.default_rng(1)
    ids = [uuid_text(random.bytes(16)) for _ in range(2_000)]
    columns = {
        "segmentId": ids,
        "topic": ["orders"] * len(ids),
        "topicId": [IDS[number % 30] for number in range(len(ids))],
        "partition": pa.array([number % 7 for number in range(len(ids))], pa.int32()),
    }
    columns["segmentId"] = [None if number % 5 == 0 else one for number, one in enumerate(ids)]
    columns["key"] = pa.array([f"key {one}".encode() for one in ids], pa.binary())
    table = pa.table(columns)
    order = pa.array(random.permutation(len(ids)))

    for numbers_of in (numbers_of_segments, numbers_of_partitions):
        numbers, elsewhere = numbers_of(table), numbers_of(table.take(order))

        assert np.array_equal(numbers[order], elsewhere)
        assert (numbers >= 0).all()
    assert np.bincount(numbers_of_segments(table) % 8, minlength=8).min() > len(ids) / 16
    places = set(zip(columns["topicId"], columns["partition"].to_pylist(), numbers_of_partitions(table), strict=True))
    assert len(places) == 30 * 7
