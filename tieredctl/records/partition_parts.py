"""Writes the records of several partitions into a folder: for each partition a file, or several of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.findings import Finding
from tieredctl.records.asked_records import record_count
from tieredctl.records.part_folder import ByteSink, PartContent, PartFolder
from tieredctl.records.topic_reading import TopicReading

PART_BYTES = 256 << 20
"""The size of records in memory, after which a part ends; it is larger by less than what is read at a time."""
PartWriter = Callable[[pa.Schema, Iterable[pa.RecordBatch], ByteSink], int | None]
"""Gives how many keys and values it could not decode, if it decodes any."""


def write_parts(
    reading: TopicReading, folder: PartFolder, suffix: str, write: PartWriter, part_bytes: int = PART_BYTES
) -> None:
    """Adds what the folder lacks of the records that a reading, not begun yet, asks for; its account then has what
    earlier runs found, too. Where records cannot be read, or were deleted since the run that they should follow, those
    before them become a part, and `failure` has the error. Raises TieredctlError `world-changed` where a log ends
    before what the folder has of it, and for any other failure: what is whole in the folder stays."""
    _demand_ends(reading, folder)
    for content in [part.content for part in folder.parts]:
        reading.returned += content.records
        reading.lost_offsets += content.lost_offsets
        reading.undecoded += content.undecoded
        _add_new(reading.findings, content.findings)
    for remote in reading.partitions:
        written = folder.of_partition(remote.partition.partition)
        partition, request = remote, reading.request
        if written:
            reached = written[-1].content.next_offset
            partition, request = replace(remote, read_up_to=reached), replace(request, start=reached)
        own = TopicReading(
            *([partition], reading.store, reading.layout, request),
            most=None if reading.most is None else max(reading.most - reading.returned, 0),
            pattern=reading.pattern,
            is_deleted=reading.is_deleted,
        )
        parts = _Parts(own, part_bytes)
        while (first := parts.first_offset) is not None:
            name = f"{partition.partition.topic}-{partition.partition.partition}-{first:020d}.{suffix}"
            folder.add(name, lambda out, parts=parts: parts.write(write, out))  # type: ignore[misc]
        reading.returned += own.returned
        reading.lost_offsets += own.lost_offsets
        reading.open_transactions += own.open_transactions
        _add_new(reading.findings, own.findings)
        reading.failure = own.failure
        if reading.failure is not None:
            return


def _demand_ends(reading: TopicReading, folder: PartFolder) -> None:
    """A partition of which no event is here is not known to have ended, where events may be missing: the reading's
    findings say so."""
    ends = {one.partition.partition: one.end_offset for one in reading.partitions}
    for number, reached in {part.content.partition: part.content.next_offset for part in folder.parts}.items():
        if number not in ends and reading.findings:
            continue
        end = ends.get(number, 0)
        if end is not None and end < reached:
            name = f"{reading.partitions[0].partition.topic}-{number}"
            message = f"{name} ends at offset {end}, but {folder.path} has it up to offset {reached}."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Name another folder.")


def _add_new(findings: list[Finding], more: Iterable[Finding]) -> None:
    """Reading on may meet again what was found ahead of an earlier part's end."""
    findings += [finding for finding in more if finding not in findings]


class _Parts:
    """The batches of one partition, divided among parts."""

    def __init__(self, reading: TopicReading, part_bytes: int) -> None:
        self._reading = reading
        self._part_bytes = part_bytes
        self._batches = reading.batches()
        self._reached = -1
        """The last offset that was handed on."""
        self._noted_findings = self._noted_losses = 0
        self._following = next(self._batches, None)

    @property
    def first_offset(self) -> int | None:
        """The first offset of the next part; None where there is none."""
        return None if self._following is None else int(self._following.column("offset")[0].as_py())

    def write(self, write: PartWriter, out: ByteSink) -> PartContent:
        """Writes the next part. Raises the error that ended the reading, unless records that cannot be read did: a part
        may then lack what it only found lost."""
        reading = self._reading
        returned: list[int] = []
        undecoded = write(reading.schema, self._part(returned), out) or 0
        if reading.failure is not None and not reading.ends_at_damage:
            raise reading.failure
        records = reading.current
        assert records is not None
        ends_at = 1 if reading.ends_at_damage and self._following is None else 0
        findings = records.findings[self._noted_findings : len(records.findings) - ends_at]
        losses = 0 if ends_at else records.lost_offsets - self._noted_losses
        self._noted_findings, self._noted_losses = len(records.findings), records.lost_offsets
        return PartContent(
            records.partition.partition, self._next_offset(), sum(returned), losses, undecoded, tuple(findings)
        )

    def _part(self, returned: list[int]) -> Iterator[pa.RecordBatch]:
        size = 0
        while (batch := self._following) is not None:
            if size >= self._part_bytes and self._may_end_before(batch):
                return
            size += batch.nbytes
            returned.append(record_count(batch))
            self._reached = max(self._reached, int(batch.column("offset")[-1].as_py()))
            yield batch
            self._following = next(self._batches, None)

    def _may_end_before(self, batch: pa.RecordBatch) -> bool:
        """Whether reading on at this batch meets nothing again: a loss may be known before earlier records are."""
        assert self._reading.current is not None
        first = int(batch.column("offset")[0].as_py())
        return max(self._reached, self._reading.current.last_lost_offset) < first

    def _next_offset(self) -> int:
        first = self.first_offset
        if first is not None:
            return first
        reading, records = self._reading, self._reading.current
        assert records is not None
        is_whole = reading.failure is None and (reading.most is None or reading.returned < reading.most)
        return max(self._reached + 1, records.next_offset or 0) if is_whole else self._reached + 1
