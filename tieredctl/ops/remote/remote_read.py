"""`remote read`: a part of a segment from the remote store, as the broker wrote it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, BinaryIO, NamedTuple

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import AsColumns, HeaderColumns
from tieredctl.formats.index_columns import read_offset_index_columns, read_time_index_columns
from tieredctl.formats.log_scan import LARGEST_BATCH, Damage, LogBlock, scan_log
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.segment_parts import (
    leader_epoch_entries,
    offset_index_entries,
    time_index_entries,
    transaction_index_entries,
)
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.metadata.completeness import demand_nothing_lost
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ports.layout import Layout, Part, SegmentIdentity
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.progress import note
from tieredctl.process.replaced_file import replaced_file

_PIECE_BYTES = 1 << 22


class PartRead(NamedTuple):
    """How many bytes were read, and what is wrong with them."""

    size: int
    findings: Sequence[Finding]


@dataclass(frozen=True, slots=True)
class WrittenPart(ResultRow):
    """A part, and the file that it was written to."""

    topic: Wide[str]
    topic_id: JsonOnly[str]
    partition: Wide[int]
    segment_id: Annotated[str, Column(wide=True, after="start_offset")]
    start_offset: Annotated[int, Column("START", wide=True)]
    part: Part
    bytes: Size[int]
    file: str


@dataclass(frozen=True, slots=True)
class StoredPart:
    """One part of one segment, whose layout and store are known."""

    store: ObjectStore
    layout: Layout
    segment: SegmentIdentity
    part: Part

    def copy_to(self, target: BinaryIO) -> PartRead:
        """Writes the part's bytes, checking them as it goes; no further where whoever reads them has gone. Raises
        TieredctlError, possibly after some were written."""
        reader = self.layout.open_segment(self.store, self.segment)
        expected = self._expected_size()
        size = reader.parts().get(self.part, 0) if expected is None else expected
        keys = {**self.layout.promised_objects(self.segment), **self.layout.optional_objects(self.segment)}
        check, written = PartCheck(self.segment, self.part, keys), _Written(target)
        with suppress(BrokenPipeError):
            check.watch(written.all_of(self._within(reader.stream(self.part, _PIECE_BYTES), expected)), size)
        return PartRead(written.size, check.findings)

    def save_as(self, file: Path, *, force: bool, dry_run: bool = False) -> PartRead:
        """Writes a file of the part's bytes, whole or not at all, even if they are altered in the store: what looks so
        is read again over new connections. Replaces an existing file only with `force`; a dry run only reads. Raises
        TieredctlError."""
        with replaced_file(file, force=force, dry_run=dry_run, is_last=True) as target:
            try:
                read = self.copy_to(target)
                if not read.findings:
                    return read
            except TieredctlError as error:
                if error.code is not ErrorCode.UNDECODABLE:
                    raise
            target.seek(0)
            target.truncate()
            return replace(self, store=self.store.reconnected()).copy_to(target)

    def row(self, written: int, file: Path) -> WrittenPart:
        """The result."""
        segment = self.segment
        return WrittenPart(
            *(*segment.topic_id_partition.names, segment.segment_id, segment.start_offset),
            *(self.part, written, str(file)),
        )

    def _expected_size(self) -> int | None:
        """In bytes, if the metadata has it."""
        if self.part is not Part.LOG or not isinstance(self.segment, RemoteLogSegmentMetadata):
            return None
        return self.segment.known_size

    def _another_size(self, relation: str, expected: int) -> TieredctlError:
        message = f"The log of {self.segment.segment_id} has {relation} the {expected} bytes in its metadata."
        return TieredctlError(ErrorCode.UNDECODABLE, message, hint="Check the segment with `tieredctl verify`.")

    def _within(self, pieces: Iterator[bytes], expected: int | None) -> Iterator[bytes]:
        """The pieces; raises where their size is not the metadata's."""
        read = 0
        for piece in pieces:
            read += len(piece)
            if expected is not None and read > expected:
                raise self._another_size("more than", expected)
            note("bytes read", read, expected)
            yield piece
            del piece  # before the next is read: its memory can serve again
        if expected is not None and read < expected:
            raise self._another_size(f"{read}, not", expected)


@dataclass(slots=True)
class _Written:
    """Writes the pieces as they are read."""

    target: BinaryIO
    size: int = 0
    """In bytes."""

    def all_of(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            try:
                self.target.write(piece)
            except BrokenPipeError:
                yield piece  # it is read, and checked
                if next(pieces, None) is not None:
                    raise
                return
            self.size += len(piece)
            yield piece
            del piece  # as above


def segment_in_metadata(stream: EventStream, selection: Selection) -> SegmentIdentity:
    """The segment with the selection's id. Raises TieredctlError `unknown-segment`."""
    metadata = replayed(stream, selection)
    row = next(metadata.known(segments(metadata, selection)), None)
    if row is None:
        why = f"The metadata has no {selection}, or it was deleted."
        demand_nothing_lost(stream, why)
        selection.demand_known(stream.partitions, "The metadata has no event of")
        raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)
    if selection.names_several:
        selection.demand_known(stream.partitions, "The metadata has no event of")
    _, segment = row
    return segment.metadata


def segment_in_store(store: ObjectStore, layout: Layout, selection: Selection) -> SegmentIdentity:
    """The segment with the selection's id, by the store's keys, all of which may have to be listed. Raises
    TieredctlError `unknown-segment`."""
    inventory = Inventory(store, layout, selection)
    objects = inventory.objects()
    explained = next((one.explained for one in objects if one.explained), None)
    if explained is None or selection.names_several:
        for _ in objects:
            pass
        inventory.demand_known()
    assert explained is not None
    return explained


_OFFSETS_OF_A_SEGMENT = 1 << 31
_EXAMPLES = 8


@dataclass(slots=True)
class PartCheck:
    """Checks the bytes of one part as they are read."""

    segment: SegmentIdentity
    part: Part
    keys: Mapping[Part, str]
    """The keys of the segment's objects."""
    findings: list[Finding] = field(default_factory=list)

    def watch(self, pieces: Iterable[bytes], size: int) -> None:
        """Reads all pieces of a part that should have this many bytes; what is wrong is in `findings`, also where they
        end with an error.

        Raises TieredctlError `undecodable` where a log continues without a sound batch for longer than a batch can be,
        and no metadata has its size: a manifest may claim any size, and a few compressed bytes expand to it.
        """
        if self.part is Part.LOG:
            self._watch_log(pieces, size)
        else:
            self._watch_small_part(b"".join(pieces))

    def _watch_log(self, pieces: Iterable[bytes], size: int) -> None:
        stretch, damages, outside = _Stretch(pieces, self.segment), _Damages(), _Outside(self.segment)
        bounded = iter(stretch)
        try:
            for part in scan_log(bounded, size, AsColumns(), self.segment.start_offset):
                if isinstance(part, Damage):
                    damages.add(part)
                else:
                    stretch.sound_until = part.file_position + len(part.buffer)
                    outside.look(part)
                del part  # before the next is read: its memory can serve again
            for _ in bounded:  # the scan may end before the pieces do
                pass
        finally:
            if damages.count:
                self._add(FindingCode.BATCH_CORRUPT, damages.message(), damages.examples[0])
            if outside.first_position is not None:
                self._add(FindingCode.RECORDS_OUTSIDE_SEGMENT, outside.message, outside.first_position)

    def _watch_small_part(self, data: bytes) -> None:
        code, readers = _SMALL_PARTS[self.part]
        try:
            for read in readers:
                read(data)
        except DecodeError as error:
            self._add(code, error.reason, error.position)

    def _add(self, code: FindingCode, message: str, position: int) -> None:
        self.findings.append(part_finding(code, self.segment, self.keys, self.part, message, position=position))


@dataclass(slots=True)
class _Stretch:
    """Pieces of a log, as long as they contain sound batches, or metadata has the log's size."""

    pieces: Iterable[bytes]
    segment: SegmentIdentity
    sound_until: int = 0
    """Up to where the log's bytes are accounted for."""

    def __iter__(self) -> Iterator[bytes]:
        read, is_bounded = 0, isinstance(self.segment, RemoteLogSegmentMetadata)
        for piece in self.pieces:
            if not is_bounded and read - self.sound_until > LARGEST_BATCH:
                where = f"bytes {self.sound_until} to {read - 1}"
                message = f"The log of {self.segment.segment_id} has no sound batch in its {where}; nothing was kept."
                hint = "Give its metadata, which has its size, or check it with `tieredctl verify`."
                raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint)
            read += len(piece)
            yield piece
            del piece  # before the next is read: its memory can serve again


@dataclass(slots=True)
class _Damages:
    """Stretches of a log without a sound batch."""

    count: int = 0
    bytes: int = 0
    reason: str = ""
    """The reason of the first."""
    examples: list[int] = field(default_factory=list)
    """The starts of the first few."""

    def add(self, damage: Damage) -> None:
        self.reason = self.reason or damage.reason
        self.count += 1
        self.bytes += damage.end - damage.position
        if self.count <= _EXAMPLES:
            self.examples.append(damage.position)

    def message(self) -> str:
        if self.count == 1:
            return f"{self.reason}; {size_text(self.bytes)} without a sound batch"
        return f"{self.reason}; {self.count} stretches, {size_text(self.bytes)} in all, without a sound batch"


class _Outside:
    """Batches with offsets that the segment cannot have."""

    def __init__(self, segment: SegmentIdentity) -> None:
        self._first = segment.start_offset
        self._last = self._first + _OFFSETS_OF_A_SEGMENT - 1
        if isinstance(segment, RemoteLogSegmentMetadata):
            self._last = segment.end_offset
        self.first_position: int | None = None
        self.message = ""

    def look(self, block: LogBlock[HeaderColumns]) -> None:
        if self.first_position is not None:
            return
        bases = block.headers["baseOffset"].astype(np.int64)
        lasts = bases + block.headers["lastOffsetDelta"]
        outside = np.flatnonzero((bases < self._first) | (lasts > self._last))
        if len(outside):
            row = int(outside[0])
            self.first_position = block.file_position + int(block.positions[row])
            self.message = f"a batch has offsets {bases[row]} to {lasts[row]}, but the segment begins at {self._first}"


_Read = Callable[[bytes], object]
_SMALL_PARTS: Mapping[Part, tuple[FindingCode, tuple[_Read, ...]]] = MappingProxyType(
    {
        Part.OFFSET_INDEX: (FindingCode.INDEX_DAMAGED, (offset_index_entries, read_offset_index_columns)),
        Part.TIME_INDEX: (FindingCode.INDEX_DAMAGED, (time_index_entries, read_time_index_columns)),
        Part.TRANSACTION_INDEX: (FindingCode.INDEX_DAMAGED, (transaction_index_entries,)),
        Part.PRODUCER_SNAPSHOT: (FindingCode.PRODUCER_SNAPSHOT_DAMAGED, (read_producer_snapshot,)),
        Part.LEADER_EPOCH: (FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED, (leader_epoch_entries,)),
    }
)
