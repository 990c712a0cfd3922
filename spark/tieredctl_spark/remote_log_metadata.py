"""The data source `remote_log_metadata`: the events of `__remote_log_metadata` as a DataFrame, as in
`spark.read.format("remote_log_metadata").option("logDir", "/data/kafka-1,/data/kafka-2").load()`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.table import RECORD_TABLE_SCHEMA, record_table
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.finding_rows import FINDING_TYPE, finding_row
from tieredctl_spark.schemas import as_spark_reads, spark_schema

METADATA_SCHEMA = pa.schema([*(field.with_nullable(True) for field in RECORD_TABLE_SCHEMA), ("finding", FINDING_TYPE)])
"""A row for each record, as in `metadata export`: its value unchanged, and columns of its content, which are null where
it cannot be decoded. And a row for each finding, in which `finding` is not null."""

_BATCH_SCHEMA = as_spark_reads(METADATA_SCHEMA)
_PARTITION, _OFFSET = "metadataPartition", "metadataOffset"
_OF_NO_PARTITION = None


class RemoteLogMetadata(DataSource):
    """Options: `logDir`, brokers' log directories, separated by commas; or `export`, a file of `metadata export`.

    Executors read the files themselves. Each metadata partition is a partition of the DataFrame: its replicas are
    merged, its rows in the order of the topic.
    """

    @classmethod
    def name(cls) -> str:
        return "remote_log_metadata"

    def schema(self) -> StructType:
        return spark_schema(METADATA_SCHEMA)

    def reader(self, schema: StructType) -> DataSourceReader:  # noqa: ARG002 - Spark passes the schema that it got from here
        log_dirs, export = self.options.get("logDir", ""), self.options.get("export")
        folders = tuple(Path(folder) for folder in log_dirs.split(",") if folder)
        return _Reader(MetadataPlace(folders, export=Path(export) if export else None))


class _Reader(DataSourceReader):
    def __init__(self, place: MetadataPlace) -> None:
        self._place = place

    def partitions(self) -> Sequence[InputPartition]:
        with self._place.open() as stream:
            numbers = stream.source.metadata_partitions()
        return [InputPartition(number) for number in (_OF_NO_PARTITION, *numbers)]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with self._place.open(partition.value) as stream:
            if partition.value is _OF_NO_PARTITION:
                findings = [one for one in stream.findings if not isinstance(one.about, MetadataSubject)]
            else:
                for number, chunk in stream.chunks():
                    table = record_table(stream, number, chunk)
                    yield from _batches([*table.columns, pa.nulls(len(table), FINDING_TYPE)])
                findings = [one for one in stream.findings if isinstance(one.about, MetadataSubject)]
        yield _finding_batch(findings)


def _batches(columns: Sequence[Any]) -> Iterable[pa.RecordBatch]:
    batches: list[pa.RecordBatch] = pa.table(columns, schema=METADATA_SCHEMA).cast(_BATCH_SCHEMA).to_batches()
    return batches


def _finding_batch(findings: Iterable[Finding]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([_finding_columns(finding) for finding in findings], _BATCH_SCHEMA)


def _finding_columns(finding: Finding) -> dict[str, Any]:
    columns: dict[str, Any] = {"finding": finding_row(finding)}
    if isinstance(finding.about, MetadataSubject):
        columns |= {_PARTITION: finding.about.metadata_partition, _OFFSET: finding.about.metadata_offset}
    return columns
