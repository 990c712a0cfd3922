"""Reads several partitions one after the other, and keeps account of what was found."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import pyarrow as pa

from tieredctl.errors import TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.segment_objects import SegmentObjects
from tieredctl.records.arrow_records import chosen_schema
from tieredctl.records.asked_records import TextPattern, first_records, record_count
from tieredctl.records.lost_records import LostRecords
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.remote_partition import RemotePartition, never_deleted
from tieredctl.records.request import OnDamage, RecordRequest


@dataclass(slots=True)
class TopicReading:
    """What is asked for of some partitions, in their order."""

    partitions: Sequence[RemotePartition]
    store: ObjectStore
    layout: SegmentObjects
    request: RecordRequest
    most: int | None = None
    """How many records at most; None for all."""
    pattern: TextPattern | None = None
    """What a record's key or value has to match."""
    is_deleted: Callable[[TopicIdPartition, str], bool] = never_deleted
    """As `PartitionRecords` has it."""
    findings: list[Finding] = field(default_factory=list)
    """What the metadata lacks, and what is damaged as far as was read."""
    returned: int = 0
    """How many records were given out; rows about damage are none."""
    lost_offsets: int = 0
    """How many offsets could not be read."""
    undecoded: int = 0
    """How many keys and values earlier runs could not decode."""
    open_transactions: list[tuple[TopicIdPartition, int]] = field(default_factory=list)
    """The partitions whose readable part an open transaction ended, with its first offset."""
    current: PartitionRecords | None = None
    """The partition that is being read, or was read last."""
    failure: TieredctlError | None = None
    """What ended the reading early."""

    @property
    def schema(self) -> pa.Schema:
        """The schema of every record batch."""
        return chosen_schema(self.request.columns, with_damage=self.request.on_damage is OnDamage.ROW)

    @property
    def ends_at_damage(self) -> bool:
        """Whether records that cannot be read ended it; the last finding says which."""
        return isinstance(self.failure, LostRecords)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Ends early where `PartitionRecords` raises, so that whoever gathers records writes those that came before;
        `failure` has the error then. Raises it only where the store answers nothing from the beginning."""
        records = self._of_all()
        if self.pattern is not None:
            records = self.pattern.matching(records)
        if self.most is not None:
            records = first_records(records, self.most)
        has_begun = False
        try:
            for batch in records:
                self.returned += record_count(batch)
                has_begun = True
                yield batch
        except TieredctlError as error:
            if not has_begun and not isinstance(error, LostRecords):
                raise
            self.failure = error

    def with_columns(self, columns: tuple[str, ...]) -> TopicReading:
        """The same, of which only some columns are made; not begun yet."""
        return replace(self, request=replace(self.request, columns=columns))

    def _of_all(self) -> Iterator[pa.RecordBatch]:
        for partition in self.partitions:
            reading = self.current = PartitionRecords(partition, self.store, self.layout, self.request, self.is_deleted)
            try:
                yield from reading
            finally:
                self.findings += reading.findings
                self.lost_offsets += reading.lost_offsets
                if reading.open_transaction_from is not None:
                    self.open_transactions.append((partition.partition, reading.open_transaction_from))
