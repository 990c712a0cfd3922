"""The table of events: records from recorded offsets on are appended."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession

from tieredctl.ops.metadata.stretches import OffsetRange, stretches
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.arrow.event_table import event_table
from tieredctl_spark.kept_frames import task_numbers, task_rows
from tieredctl_spark.metadata_shares import MOST_OFFSETS, Share, Wanted, share_tables
from tieredctl_spark.tables.frames import FILE_SCHEMA, data_file, file_row
from tieredctl_spark.tables.kinds import EVENTS
from tieredctl_spark.tables.manifest import DataFile
from tieredctl_spark.tables.writing import TableWriter
from tieredctl_spark.worker_functions import mapped

_RECORDS_ALONE = Wanted(has_findings=False)
_APPENDED_SCHEMA = pa.schema([*FILE_SCHEMA, ("earliestMs", pa.int64())])


@dataclass(frozen=True, slots=True)
class Appended:
    """New events, written."""

    files: list[DataFile]
    earliest_ms: int | None
    """The time of the earliest of them, by its own account; None where there are none."""


def shares_between(place: MetadataPlace, begins: Mapping[int, int], ends: Mapping[int, int]) -> list[Share]:
    """What to read so that each record with an offset from `begins` up to, not including, `ends` is there once."""
    with closing(place.open_source()) as source:
        shares = []
        for number, end in ends.items():
            for stretch in stretches(source, number, MOST_OFFSETS):
                within = OffsetRange(max(begins[number], stretch.start), min(end, stretch.end))
                if within.start < within.end:
                    topic_id = source.metadata_topic_id
                    shares.append(Share(number, *within, is_exact=True, metadata_topic_id=topic_id, planned=within))
        return shares


def append_events(
    session: SparkSession, place: MetadataPlace, shares: Sequence[Share], writer: TableWriter
) -> Appended:
    """Writes the records of some shares, on executors. A share's records follow one another in one file."""

    def written(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        earliest: list[int] = []

        def tables() -> Iterator[pa.Table]:
            for batch in batches:
                for number in batch.column("id").to_pylist():
                    for table in share_tables(place, shares[number], _RECORDS_ALONE):
                        if (moment := pc.min(table.column("eventTimestampMs")).as_py()) is not None:
                            earliest.append(moment)
                        yield event_table(table)

        for file in writer.write_gathered(EVENTS, tables()):
            row = file_row(file) | {"earliestMs": min(earliest, default=None)}
            yield pa.RecordBatch.from_pylist([row], _APPENDED_SCHEMA)

    if not shares:
        return Appended([], None)
    numbers = task_numbers(session, len(shares), _tasks(shares))
    rows = mapped(numbers, written, _APPENDED_SCHEMA).toArrow().to_pylist()
    times = [row["earliestMs"] for row in rows if row["earliestMs"] is not None]
    return Appended([data_file(row) for row in rows], min(times, default=None))


def event_rows(session: SparkSession, place: MetadataPlace, shares: Sequence[Share]) -> DataFrame:
    """The records of some shares, by `EVENTS.columns`, read whenever this is computed."""

    def tables(number: int) -> Iterator[pa.Table]:
        return map(event_table, share_tables(place, shares[number], _RECORDS_ALONE))

    return task_rows(session, len(shares), tables, EVENTS.columns, _tasks(shares))


def _tasks(shares: Sequence[Share]) -> int:
    """New events of a night are few: one file for all metadata partitions serves whoever reads the table."""
    return -(-sum(share.end - share.first for share in shares) // MOST_OFFSETS)
