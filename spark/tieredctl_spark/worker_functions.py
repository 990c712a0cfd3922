"""Functions of ours that Spark runs in its Python workers: the one way there, so that whatever they raise comes back as
what it is."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.session import has_jvm
from tieredctl_spark.worker_failures import one_sentence

if TYPE_CHECKING:
    from pyspark.sql import GroupedData
    from pyspark.sql.pandas.group_ops import PandasCogroupedOps

Value = TypeVar("Value")


@contextmanager
def given_to_workers(session: SparkSession, value: Value) -> Iterator[Callable[[], Value]]:
    """A large value as functions of ours ask for it while this is open: each Python worker reads it once. Within a
    function each task would read it again, and would have its bytes besides; Spark Connect has no other way."""
    if not has_jvm(session):
        yield lambda: value
        return
    sent = session.sparkContext.broadcast(value)
    try:
        yield lambda: sent.value
    finally:
        sent.destroy()


def mapped(
    frame: DataFrame, change: Callable[[Iterable[pa.RecordBatch]], Iterable[pa.RecordBatch]], schema: pa.Schema
) -> DataFrame:
    """What `change` makes, by `schema`, of the rows of each task."""

    def changed(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with one_sentence():
            yield from change(batches)

    return frame.mapInArrow(changed, spark_schema(schema))


def mapped_groups(groups: GroupedData, change: Callable[[pa.Table], pa.Table], schema: pa.Schema) -> DataFrame:
    """What `change` makes, by `schema`, of the rows of each group."""

    def changed(rows: pa.Table) -> pa.Table:
        with one_sentence():
            return change(rows)

    return groups.applyInArrow(changed, spark_schema(schema))


def mapped_pairs(
    groups: PandasCogroupedOps, change: Callable[[pa.Table, pa.Table], pa.Table], schema: pa.Schema
) -> DataFrame:
    """What `change` makes, by `schema`, of the rows of each two groups."""

    def changed(one: pa.Table, other: pa.Table) -> pa.Table:
        with one_sentence():
            return change(one, other)

    return groups.applyInArrow(changed, spark_schema(schema))
