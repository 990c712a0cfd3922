"""The data source `segment_batches`: the record batches of remote segments as a DataFrame, as in
`spark.read.format("segment_batches").option("log-dir", "/data/kafka").option("store", "file:/remote").load()`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

import numpy as np
import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.model.events import RecordForm, RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.metadata import demand_known
from tieredctl.wiring.places import MetadataPlace, Remote
from tieredctl_spark.arrow.batch_table import BATCH_TABLE_SCHEMA, batch_tables
from tieredctl_spark.schemas import Projection, projection, spark_schema
from tieredctl_spark.source_options import METADATA_OPTIONS, PARTITION_OPTIONS, STORE_OPTIONS, SourceOptions
from tieredctl_spark.worker_failures import one_sentence

_NAME = "segment_batches"
_OPTIONS = (*METADATA_OPTIONS, *STORE_OPTIONS, *PARTITION_OPTIONS, "segment-id")
_TASK_BYTES = 256 << 20
_TASK_SEGMENTS = 1_000


class SegmentBatches(DataSource):
    """Options, as on the command line: where the metadata is, as `remote_log_metadata` has them; where the store is, as
    `remote_objects` has them; and which segments are meant: `topic`, `topic-id`, `partition`, `segment-id`.

    BATCH_TABLE_SCHEMA has the columns; a schema that is given to `spark.read.schema` names those that are wanted.
    Segments whose copy is finished and that are not being deleted are read, from beginning to end, on executors; each
    partition of the DataFrame has some of them, of about 256 MiB. What was deleted since the metadata was read is a row
    with a `problem`. Filters are not pushed down, as in `remote_log_metadata`.
    """

    @classmethod
    def name(cls) -> str:
        return _NAME

    def schema(self) -> StructType:
        return spark_schema(BATCH_TABLE_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:
        with one_sentence():
            options = SourceOptions(_NAME, self.options, _OPTIONS)
            selection = options.selection(options.text("segment-id"))
            metadata, remote = options.metadata_place(), options.store_place().open()
            return _Reader(metadata, remote, selection, projection(_NAME, schema, BATCH_TABLE_SCHEMA))


class _Reader(DataSourceReader):
    def __init__(
        self, metadata: MetadataPlace, remote: Remote[ObjectStore], selection: Selection, columns: Projection
    ) -> None:
        self._metadata = metadata
        self._remote = remote
        self._selection = selection
        self._columns = columns

    def partitions(self) -> Sequence[InputPartition]:
        with one_sentence(), self._metadata.open() as stream:
            metadata = replayed(stream, self._selection.partitions)
            demand_known(self._metadata, stream, self._selection)
            rows = metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])
            rows = metadata.selected(rows, self._selection.has, self._selection.segment_ids)
            known = metadata.known(rows)
            found = []
            for count in _task_lengths(metadata.sizes(rows)):
                segments = [
                    encode_event(replace(one.metadata, form=RecordForm.KAFKA)) for _, one in islice(known, count)
                ]
                found.append(InputPartition(segments))
            return found

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        for encoded in partition.value or ():
            segment = decode_event(encoded)
            assert isinstance(segment, RemoteLogSegmentMetadata)
            with one_sentence():
                for table in batch_tables(segment, *self._remote):
                    yield from self._columns.batches(table)


def _task_lengths(sizes: np.ndarray[tuple[int], np.dtype[np.int64]]) -> list[int]:
    """How many segments in a row each task reads."""
    lengths: list[int] = []
    room = 0
    for size in sizes.tolist():
        if lengths and size <= room and lengths[-1] < _TASK_SEGMENTS:
            lengths[-1] += 1
            room -= size
        else:
            lengths.append(1)
            room = _TASK_BYTES - size
    return lengths
