"""DataFrames that are computed by tasks of our own, and once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

import pyarrow as pa
from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_spark.schemas import as_spark_reads
from tieredctl_spark.worker_functions import mapped

Keep = Callable[[DataFrame, str], DataFrame]
"""Computes a DataFrame once, now, and gives what was kept of it under a name: what is read of it later is the same."""

_DYNAMIC, _CHECKPOINTS = "spark.dynamicAllocation.enabled", "spark.checkpoint.dir"


def kept_by_executors(frame: DataFrame, _name: str) -> DataFrame:
    """`Keep` on their disks. If one is lost, the scan fails: nothing is computed again at another time. Executors that
    Spark gives up between two steps would take their part along: then it is kept in the folder for checkpoints. Raises
    TieredctlError `usage` where there is none."""
    settings = frame.sparkSession.conf
    if str(settings.get(_DYNAMIC, "false")).lower() != "true":
        return frame.localCheckpoint(True, StorageLevel.DISK_ONLY)
    if not settings.get(_CHECKPOINTS, ""):
        message = f"With {_DYNAMIC}, Spark may give up executors that still keep a part of the scan."
        hint = f"Set {_CHECKPOINTS} to a folder that all of them reach, or run the job `orphans`, which has one."
        raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
    return frame.checkpoint(True)


def task_numbers(session: SparkSession, count: int, most_tasks: int | None = None) -> DataFrame:
    """The numbers below `count` as `id`, each in a task of its own, or some of them in each of `most_tasks`."""
    tasks = count if most_tasks is None else min(count, most_tasks)
    return session.range(0, count, 1, max(1, tasks))


def task_rows(
    session: SparkSession,
    count: int,
    tables: Callable[[int], Iterable[pa.Table]],
    schema: pa.Schema,
    most_tasks: int | None = None,
) -> DataFrame:
    """What `tables` gives, by `schema`, for each number below `count`, in the tasks of `task_numbers`, and again
    whenever this is computed."""
    as_read = as_spark_reads(schema)

    def reading(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for table in tables(number):
                    yield from table.cast(as_read).to_batches()

    return mapped(task_numbers(session, count, most_tasks), reading, schema)
