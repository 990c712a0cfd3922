"""What tables had that a replay of metadata which is not whole does not say: it stays."""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame

from tieredctl_spark.tables.frames import write_frame
from tieredctl_spark.tables.kinds import SEGMENT_HISTORY, SEGMENTS, TableKind
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter

_IDENTITY = {
    SEGMENTS.name: ["topicId", "partition", "segmentId"],
    SEGMENT_HISTORY.name: ["metadataPartition", "metadataOffset"],
}
_TASKS = 8


def lost_rows(kind: TableKind, known: DataFrame, history: DataFrame) -> DataFrame:
    """The rows of a table as it was that the new history of segments does not know, by `kind.columns`: it knows those
    that were deleted since, too."""
    identity = _IDENTITY[kind.name]
    return known.join(history.select(*identity), identity, "left_anti").select(*kind.columns.names)


def write_kept_rows(kind: TableKind, lost: DataFrame, writer: TableWriter) -> list[DataFile]:
    """Writes these rows into files, on executors."""
    return write_frame(lost.coalesce(_TASKS), kind.columns, partial(writer.write, kind))
