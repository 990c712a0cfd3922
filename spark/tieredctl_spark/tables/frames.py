"""DataFrames as files of tables, written on executors: the driver gets their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

import pyarrow as pa
from pyspark.sql import DataFrame

from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import gathered
from tieredctl_spark.worker_functions import mapped

FILE_SCHEMA = pa.schema({"path": pa.string(), "rows": pa.int64(), "bytes": pa.int64(), "day": pa.string()})


def file_row(file: DataFile) -> dict[str, object]:
    """A file as a row by FILE_SCHEMA."""
    return {name: getattr(file, name) for name in FILE_SCHEMA.names}


def data_file(row: Mapping[str, object]) -> DataFile:
    """A file of a row by FILE_SCHEMA."""
    return DataFile(**{name: row[name] for name in FILE_SCHEMA.names})  # type: ignore[arg-type]


def write_frame(frame: DataFrame, schema: pa.Schema, write: Callable[[pa.Table], DataFile]) -> list[DataFile]:
    """Writes the rows of each partition of a frame, which has these columns, in as few files as memory allows."""

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for rows in gathered(pa.Table.from_batches([batch]).cast(schema) for batch in batches):
            yield pa.RecordBatch.from_pylist([file_row(write(rows))], FILE_SCHEMA)

    files = mapped(frame.select(*schema.names), written, FILE_SCHEMA)
    return [data_file(row) for row in files.toArrow().to_pylist()]
