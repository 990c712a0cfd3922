"""What tables had that a replay of metadata which is not whole does not say: it stays."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from tieredctl_spark.pipeline.events import FILE_SCHEMA, data_file, file_row
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.tables.kinds import SEGMENT_HISTORY, SEGMENTS, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.reading import files_frame
from tieredctl_spark.tables.writing import TableWriter

_IDENTITY = {
    SEGMENTS.name: ["topicId", "partition", "segmentId"],
    SEGMENT_HISTORY.name: ["metadataPartition", "metadataOffset"],
}
_TASKS = 8


def kept_rows(
    session: SparkSession,
    kind: TableKind,
    before: Sequence[DataFile],
    history: Sequence[DataFile],
    writer: TableWriter,
) -> list[DataFile]:
    """Writes the rows of a table's earlier files that the new history of segments does not know, on executors: it
    knows those that were deleted since, too."""
    if not before:
        return []
    identity = _IDENTITY[kind.name]
    known = files_frame(session, writer.store, kind, before, kind.columns.names)
    now = files_frame(session, writer.store, SEGMENT_HISTORY, history, identity)
    lost = known.join(now, identity, "left_anti").select(*kind.columns.names).coalesce(_TASKS)

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        tables = (pa.Table.from_batches([batch]).cast(kind.columns) for batch in batches)
        for file in writer.write_gathered(kind, tables):
            yield pa.RecordBatch.from_pylist([file_row(file)], FILE_SCHEMA)

    return [data_file(row) for row in lost.mapInArrow(written, spark_schema(FILE_SCHEMA)).toArrow().to_pylist()]
