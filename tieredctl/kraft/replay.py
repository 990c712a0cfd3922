"""Replays a snapshot and the records after it, as brokers do (MetadataLoader, MetadataBatchLoader)."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.formats.control_records import ControlRecord
from tieredctl.formats.kraft_log import KraftLogRecord
from tieredctl.formats.kraft_records import KraftRecord, KraftRecordType
from tieredctl.formats.record_batches import ControlType
from tieredctl.kraft.image import ClusterImage, RefusedRecord
from tieredctl.kraft.record_effects import DoesNotFit, apply_record

_TRANSACTION_ENDS = (KraftRecordType.END_TRANSACTION, KraftRecordType.ABORT_TRANSACTION)


class MetadataReplay:
    """An image, and the records of a transaction of which no end came yet."""

    def __init__(self) -> None:
        self.image = ClusterImage()
        self.clock_fell_ms = 0
        """By how much the time of one record is at most before that of an earlier one."""
        self._latest_ms = -1
        self._waiting: list[tuple[int, KraftRecord]] | None = None

    @property
    def in_transaction(self) -> bool:
        """Whether the last records wait for the end of their transaction: no broker has applied them."""
        return self._waiting is not None

    def load_snapshot(self, records: Iterable[KraftLogRecord], end_offset: int) -> None:
        """The records of a snapshot with this end offset (exclusive), header and footer included. Comes first."""
        for record in records:
            self.take(end_offset - 1, record.content)
        self.image.end_offset = end_offset
        self._latest_ms = self.image.as_of_ms

    def load_log(self, records: Iterable[KraftLogRecord]) -> None:
        """The log's records from there on."""
        for record in records:
            self.take(record.offset, record.content)
            self.image.end_offset = record.offset + 1
            self.image.as_of_ms = record.timestamp
            self._latest_ms = max(self._latest_ms, record.timestamp)
            self.clock_fell_ms = max(self.clock_fell_ms, self._latest_ms - record.timestamp)

    def take(self, offset: int, record: KraftRecord | ControlRecord) -> None:
        """Applies the record at an offset of the log; those of a transaction when that ends. One that does not fit
        is noted in `image.refused`."""
        try:
            if isinstance(record, ControlRecord):
                _apply_control(self.image, record)
            elif record.api_key == KraftRecordType.BEGIN_TRANSACTION:
                self._begin()
            elif record.api_key in _TRANSACTION_ENDS:
                self._end(commits=record.api_key == KraftRecordType.END_TRANSACTION)
            elif self._waiting is not None:
                self._waiting.append((offset, record))
            else:
                self._apply(offset, record)
        except DoesNotFit as refused:
            self.image.refused.append(RefusedRecord(offset, record.type_name, str(refused)))

    def _begin(self) -> None:
        if self._waiting is not None:
            raise DoesNotFit("a transaction is open already")
        self._waiting = []

    def _end(self, *, commits: bool) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is None:
            raise DoesNotFit("no transaction is open")
        for offset, record in waiting if commits else ():
            self._apply(offset, record)

    def _apply(self, offset: int, record: KraftRecord) -> None:
        if record.fields is None:
            self.image.unknown_records[f"{record.type_name}, version {record.version}"] += 1
            return
        try:
            apply_record(self.image, KraftRecordType(record.api_key), record.fields)
        except DoesNotFit as refused:
            self.image.refused.append(RefusedRecord(offset, record.type_name, str(refused)))


def _apply_control(image: ClusterImage, record: ControlRecord) -> None:
    fields = record.fields
    if fields is None:
        image.unknown_records[f"control record {record.type}"] += 1
    elif record.type == ControlType.KRAFT_VOTERS:
        image.voters = {voter["VoterId"]: voter for voter in fields["Voters"]}
    elif record.type == ControlType.KRAFT_VERSION:
        image.kraft_version = fields["KRaftVersion"]
    elif record.type == ControlType.LEADER_CHANGE:
        image.leader = fields["LeaderId"]
    elif record.type == ControlType.SNAPSHOT_HEADER:
        image.as_of_ms = fields["LastContainedLogTimestamp"]
