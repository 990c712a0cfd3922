"""What keeps the table of events small: days past their retention go, and the files of a past day become few."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import pyarrow as pa
from pyspark.sql import SparkSession

from tieredctl_spark.kept_frames import task_rows
from tieredctl_spark.tables.due import EventsDue
from tieredctl_spark.tables.files import columns_of_file
from tieredctl_spark.tables.frames import FILE_SCHEMA, data_file, file_row
from tieredctl_spark.tables.kinds import EVENTS
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter, gathered


def kept_events(
    session: SparkSession, files: Iterable[DataFile], due: EventsDue, writer: TableWriter
) -> list[DataFile]:
    """The files of events after what is due was done. Executors write those of scattered days again, with the same
    rows."""
    past = {*due.expired, *(one for files_of_day in due.scattered.values() for one in files_of_day)}
    return [*(one for one in files if one not in past), *_compacted(session, due.scattered, writer)]


def _compacted(
    session: SparkSession, scattered: Mapping[str, tuple[DataFile, ...]], writer: TableWriter
) -> list[DataFile]:
    days = sorted(scattered.items())
    if not days:
        return []

    def written(number: int) -> Iterator[pa.Table]:
        day, files = days[number]
        names = EVENTS.schema.names
        tables = (table for one in files for table in columns_of_file(writer.store, EVENTS, one, names))
        for rows in gathered(tables):
            yield pa.Table.from_pylist([file_row(writer.write_unchanged(EVENTS, rows, day))], FILE_SCHEMA)

    rows = task_rows(session, len(days), written, FILE_SCHEMA).toArrow().to_pylist()
    return [replace(data_file(row), is_compacted=True) for row in rows]
