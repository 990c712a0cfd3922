"""A topic's records as rows of tables."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa

from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.object_store import ObjectStore
from tieredctl.records.arrow_records import DAMAGE, RECORD_SCHEMA, damage_row
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.request import RecordRequest
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace
from tieredctl.wiring.records import deleted_meanwhile
from tieredctl_spark.arrow.instants import INSTANT, instants
from tieredctl_spark.record_shares import RecordShare
from tieredctl_spark.schemas import Projection

_TIMESTAMP = "timestamp"
_TYPES = {_TIMESTAMP: INSTANT, "headers": pa.list_(pa.struct({"key": pa.string(), "value": pa.binary()}))}
RECORD_TABLE_SCHEMA = pa.schema(
    [(field.name, _TYPES.get(field.name, field.type)) for field in [*RECORD_SCHEMA, DAMAGE]]
)
"""A row for each record, as a consumer gets it: RECORD_SCHEMA, its `timestamp` null where the record has none. `damage`
is null but in a row that stands for offsets that cannot be read. Spark takes every column that a schema names for one
that may be null: so all may."""


@dataclass(frozen=True, slots=True)
class RecordRows:
    """Those that are asked for. They travel to executors."""

    metadata: MetadataPlace
    remote: Remote[ObjectStore]
    columns: Projection

    def batches(self, share: RecordShare) -> Iterator[pa.RecordBatch]:
        """The batches of one share. Raises TieredctlError as PartitionRecords does."""
        for batch in self._records(share):
            yield from self.columns.batches(record_table(batch))

    def _records(self, share: RecordShare) -> Iterator[pa.RecordBatch]:
        with read_share(self.metadata, self.remote, share) as records:
            for finding in share.findings:
                reason = f"{finding.code}: {finding.message}"
                start = share.request.start
                assert isinstance(start, int)
                yield damage_row(records.schema, share.remote.partition, None, start, reason)
            yield from records
            if share.passes_over_deleted:
                for finding in records.findings:
                    note_in_log(finding.message)


def note_in_log(message: str) -> None:
    """Writes a sentence of `tiered_log` into the log of the driver or the executor: a query goes on, and has no other
    place for it."""
    sys.stderr.write(f"tiered_log: {message}\n")


@dataclass(frozen=True, slots=True)
class LogQuery:
    """What a DataFrame of a topic's records is asked for, and where it is."""

    metadata: MetadataPlace
    store: StorePlace
    selection: Selection
    request: RecordRequest
    columns: Projection

    def rows(self) -> RecordRows:
        """Opens the store."""
        return RecordRows(self.metadata, self.store.open(), self.columns)


@contextmanager
def read_share(metadata: MetadataPlace, remote: Remote[ObjectStore], share: RecordShare) -> Iterator[PartitionRecords]:
    """The records of a share, not begun yet. Where an object is missing, the metadata of now says whether its segment
    was deleted since the shares were made."""
    with deleted_meanwhile(metadata) as is_deleted:
        yield PartitionRecords(
            *(share.remote, *remote, share.request, is_deleted),
            continues=share.continues,
            passes_over_deleted=share.passes_over_deleted,
        )


def record_table(batch: pa.RecordBatch) -> pa.Table:
    """With times as tables of data sources have them, and the column of damage."""
    table = pa.Table.from_batches([batch])
    at = table.schema.get_field_index(_TIMESTAMP)
    if at >= 0:
        table = table.set_column(at, _TIMESTAMP, instants(table.column(at)))
    if DAMAGE.name in table.column_names:
        return table
    return table.append_column(DAMAGE, pa.nulls(len(table), DAMAGE.type))
