"""Rows that only Python looks at, many of them in one value of bytes.

Spark turns each row that passes between it and Python from columns into a row and back, and sorts it by its bucket:
that takes longer than replaying and judging. Of packed rows it moves some thousands of values, whatever they hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, GroupedData, SparkSession
from pyspark.sql.types import BinaryType, IntegerType, StructField, StructType

from tieredctl.formats.arrow_columns import bytes_array, number_array
from tieredctl.formats.windows import Ints
from tieredctl_spark.schemas import as_spark_reads, spark_schema

Keep = Callable[[DataFrame, str], DataFrame]
"""Computes a DataFrame once, now, and gives what was kept of it under a name: what is read of it later is the same."""
Change = Callable[[pa.Table], pa.Table]

_VALUES, _BUCKET = "packed", "bucket"
_VALUE = StructField(_VALUES, BinaryType())
_BYTES_IN_VALUE = 1 << 19
"""About. Java's serializer, by which Spark checkpoints, holds the last hundred values."""
_COMPRESSED = pa.ipc.IpcWriteOptions(compression="lz4")
_ROWS_AT_ONCE = 1 << 17
"""So many are put into buckets together: the more, the fewer values."""


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows by `schema` in the values of a DataFrame."""

    frame: DataFrame
    schema: pa.Schema
    changes: tuple[Change, ...] = ()
    """What is done to rows, some at a time, wherever they are read."""

    def kept(self, keep: Keep, name: str) -> Packed:
        """The same, computed once."""
        return Packed(keep(self.frame, name), self.schema, self.changes)

    def through(self, change: Change, schema: pa.Schema) -> Packed:
        """What `change` makes, by `schema`, of some rows at a time."""
        return Packed(self.frame, schema, (*self.changes, change))

    def rows(self) -> DataFrame:
        """A row for each."""
        wanted, changes = as_spark_reads(self.schema), self.changes

        def unpacked(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in _tables(batches, changes):
                yield from table.cast(wanted).to_batches()

        return self.frame.select(_VALUES).mapInArrow(unpacked, spark_schema(self.schema))

    def by_bucket(self, count: int, numbers_of: Callable[[pa.Table], Ints], schema: pa.Schema) -> GroupedData:
        """Groups of values whose rows have the same number below `count`, with the columns of `schema` alone;
        `together` reads a group."""

        changes = self.changes

        def bucketed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
            for table in _gathered(_tables(batches, changes)):
                yield _bucketed(table.select(schema.names), numbers_of(table) % count)

        numbered = StructType([StructField(_BUCKET, IntegerType()), _VALUE])
        return self.frame.select(_VALUES).mapInArrow(bucketed, numbered).groupBy(_BUCKET)


def together(group: pa.Table, schema: pa.Schema) -> pa.Table:
    """All rows, by `schema`, of a group of `Packed.by_bucket`."""
    found = [_unpacked(value) for value in group.column(_VALUES)]
    return pa.concat_tables(found).combine_chunks() if found else schema.empty_table()


def packed_rows(frame: DataFrame, schema: pa.Schema, change: Change | None = None) -> Packed:
    """Packs what `change` makes, by `schema`, of some rows of a DataFrame at a time; without it, rows that have these
    columns."""
    made = change or (lambda table: table.select(schema.names).cast(schema))

    def packing(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        return _packed(made(pa.Table.from_batches([batch])) for batch in batches)

    return Packed(frame.mapInArrow(packing, StructType([_VALUE])), schema)


def packed_parts(
    session: SparkSession, parts: int, tables: Callable[[int], Iterator[pa.Table]], schema: pa.Schema, tasks: int
) -> Packed:
    """What `tables` gives for each number below `parts`, computed on executors by at most so many tasks."""
    numbers = session.range(0, parts, 1, max(1, min(parts, tasks)))

    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        read = (table for batch in batches for number in batch.column("id").to_pylist() for table in tables(number))
        return _packed(read)

    return Packed(numbers.mapInArrow(reading, StructType([_VALUE])), schema)


def packed_groups(groups: GroupedData, change: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> Packed:
    """What `change` makes, by `schema`, of each group of `Packed.by_bucket`."""

    def changed(group: pa.Table) -> pa.Table:
        return pa.Table.from_batches(list(_packed([change(group)])), pa.schema({_VALUES: pa.binary()}))

    return Packed(groups.applyInArrow(changed, StructType([_VALUE])), schema)


def _tables(batches: Iterable[pa.RecordBatch], changes: tuple[Change, ...]) -> Iterator[pa.Table]:
    for batch in batches:
        for value in batch.column(_VALUES):
            table = _unpacked(value)
            for change in changes:
                table = change(table)
            yield table


def _packed(tables: Iterable[pa.Table]) -> Iterator[pa.RecordBatch]:
    for table in _gathered(tables):
        yield pa.RecordBatch.from_arrays([bytes_array(list(_values(table)))], [_VALUES])


def _gathered(tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer tables, none empty."""
    some: list[pa.Table] = []
    rows = 0
    for table in filter(len, tables):
        some.append(table)
        rows += len(table)
        if rows >= _ROWS_AT_ONCE:
            yield pa.concat_tables(some)
            some, rows = [], 0
    if some:
        yield pa.concat_tables(some)


def _bucketed(table: pa.Table, buckets: Ints) -> pa.RecordBatch:
    """Values each of one bucket."""
    order = np.argsort(buckets, kind="stable")
    ordered = table.take(number_array(order))
    distinct, firsts = np.unique(buckets[order], return_index=True)
    ends = np.append(firsts[1:], len(table))
    spans = zip(firsts.tolist(), ends.tolist(), strict=True)
    values = [list(_values(ordered.slice(first, end - first))) for first, end in spans]
    numbers = number_array(np.repeat(distinct, [len(some) for some in values]).astype(np.int32))
    return pa.RecordBatch.from_arrays([numbers, bytes_array(list(chain.from_iterable(values)))], [_BUCKET, _VALUES])


def _values(table: pa.Table) -> Iterator[bytes]:
    parts = min(-(-table.nbytes // _BYTES_IN_VALUE), len(table)) or 1
    rows = -(-len(table) // parts)
    return (_value(table.slice(first, rows)) for first in range(0, len(table), rows))


def _value(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema, options=_COMPRESSED) as stream:
        stream.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _unpacked(value: pa.BinaryScalar) -> pa.Table:
    with pa.ipc.open_stream(value.as_buffer()) as stream:
        return stream.read_all()
