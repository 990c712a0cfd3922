"""Checks the bytes of a part while they are read: what is certainly altered, no matter what the metadata says."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

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
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ports.layout import Part, SegmentIdentity

_OFFSETS_OF_A_SEGMENT = 1 << 31
_EXAMPLES = 8


@dataclass(slots=True)
class PartCheck:
    """Checks the bytes of one part as they are read."""

    segment: SegmentIdentity
    part: Part
    keys: Mapping[Part, str]
    """Of the segment's objects."""
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
    """Of the first."""
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
        found = np.flatnonzero((bases < self._first) | (lasts > self._last))
        if len(found):
            row = int(found[0])
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
