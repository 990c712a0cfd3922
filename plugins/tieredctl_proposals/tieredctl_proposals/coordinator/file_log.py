"""A partition of `__diskless_metadata` in a folder of this machine, in Kafka's own segment files.

It has one replica: what is on the disk is replicated, so the high watermark follows `sync`.
"""

from __future__ import annotations

import os
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Self

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import SegmentPart, segment_file_name
from tieredctl.formats.log_scan import Damage, OneByOne, scan_log
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header, read_records
from tieredctl_proposals.coordinator.durable_folders import make_folder
from tieredctl_proposals.coordinator.metadata_log import LoggedRecord
from tieredctl_proposals.formats.diskless_records import decode_diskless_record, encode_diskless_record
from tieredctl_proposals.model.diskless_records import DisklessRecord

SEGMENT_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20
_SEGMENT = re.compile(r"([0-9]{20})\.log")


@dataclass(slots=True)
class _Segment:
    """A segment file, and where its batches are."""

    file: Path
    base_offset: int
    size: int = 0
    end_offset: int = 0
    first_offsets: list[int] = field(default_factory=list)
    positions: list[int] = field(default_factory=list)


class FileLog:
    """A log for one process at a time. To be closed, or used as a context."""

    def __init__(self, name: str, folder: Path, segment_bytes: int = SEGMENT_BYTES) -> None:
        """Opens what is there. An append that was cut off by the end of its process is taken away.

        Raises DecodeError for any other damage, and TieredctlError `locked` while another has it open: what that one
        is appending would be taken for an append that was cut off.
        """
        self.name = name
        self._folder = folder
        self._segment_bytes = segment_bytes
        make_folder(folder)
        with ExitStack() as held:
            self._held = _hold(folder, held)
            self._open()
            self._until_closed = held.pop_all()

    def _open(self) -> None:
        names = filter(None, map(_SEGMENT.fullmatch, sorted(file.name for file in self._folder.iterdir())))
        self._segments = [_Segment(self._folder / name[0], int(name[1])) for name in names]
        for number, segment in enumerate(self._segments):
            if number and segment.base_offset != self._segments[number - 1].end_offset:
                raise DecodeError(f"{segment.file} does not continue the log", 0)
            _scan(segment, is_last=segment is self._segments[-1])
        self._segments = self._segments or [_Segment(self._folder / segment_file_name(0, SegmentPart.LOG), 0)]
        self._open_last()
        self.high_watermark = self.end_offset
        self.sync()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def start_offset(self) -> int:
        return self._segments[0].base_offset

    @property
    def end_offset(self) -> int:
        return self._segments[-1].end_offset

    def append(self, records: Sequence[DisklessRecord], timestamp_ms: int) -> int:
        """Appends all of them or none, as one batch; returns the offset of the first."""
        first = self.end_offset
        values = [
            Record(first + at, timestamp_ms, None, encode_diskless_record(record)) for at, record in enumerate(records)
        ]
        batch = encode_batch(values)
        if self._segments[-1].size + len(batch) > self._segment_bytes and self._segments[-1].size:
            self._roll()
        segment = self._segments[-1]
        try:
            left = memoryview(batch)
            while left:  # a disk that is nearly full takes a part first
                left = left[self._written.write(left) :]
        except BaseException:
            self._written.truncate(segment.size)
            raise
        segment.first_offsets.append(first)
        segment.positions.append(segment.size)
        segment.size += len(batch)
        segment.end_offset = first + len(records)
        return first

    def sync(self) -> None:
        """Puts what was appended on the disk; it is replicated then. Where that fails, the log is closed."""
        try:
            os.fsync(self._written.fileno())
        except OSError:
            self.close()  # the kernel forgets what it could not write, and the next fsync would not say so
            raise
        self.high_watermark = self.end_offset

    def read(self, offset: int) -> Iterator[LoggedRecord]:
        """The records from an offset up to the high watermark."""
        end = self.high_watermark
        for segment in self._segments:
            if offset < segment.end_offset:
                yield from _read(segment, max(offset, segment.base_offset), end)

    def prune(self, offset: int) -> None:
        """Removes the segments all of which is before an offset."""
        if offset >= self.end_offset and self._segments[-1].size:
            self._roll()
        while len(self._segments) > 1 and self._segments[0].end_offset <= offset:
            self._segments.pop(0).file.unlink()

    def close(self) -> None:
        self._written.close()
        self._until_closed.close()

    def _roll(self) -> None:
        self.sync()
        self._written.close()
        offset = self.end_offset
        self._segments.append(
            _Segment(self._folder / segment_file_name(offset, SegmentPart.LOG), offset, end_offset=offset)
        )
        self._open_last()

    def _open_last(self) -> None:
        self._written = self._segments[-1].file.open("ab", buffering=0)
        os.fsync(self._held)


def _hold(folder: Path, until: ExitStack) -> int:
    """A descriptor of a folder that one alone can have."""
    descriptor = os.open(folder, os.O_RDONLY)
    until.callback(os.close, descriptor)
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        raise TieredctlError(ErrorCode.LOCKED, f"Another process has the log in {folder} open.") from None
    return descriptor


def _scan(segment: _Segment, is_last: bool) -> None:
    """Finds a segment's batches, and cuts off the end of the last one's that was never written."""
    segment.end_offset = segment.base_offset
    size = segment.file.stat().st_size
    with segment.file.open("rb") as stored:
        for block in scan_log(iter(lambda: stored.read(_CHUNK_BYTES), b""), size, OneByOne(), segment.base_offset):
            if isinstance(block, Damage):
                if not (is_last and block.torn):
                    raise DecodeError(f"{segment.file}: {block.reason}", block.position)
                os.truncate(segment.file, block.position)
                break
            for position, header in zip(block.positions, block.headers, strict=True):
                if header.base_offset != segment.end_offset:
                    raise DecodeError(f"{segment.file}: offset {header.base_offset}", block.file_position + position)
                segment.first_offsets.append(header.base_offset)
                segment.positions.append(block.file_position + position)
                segment.end_offset = header.last_offset + 1
                segment.size = block.file_position + position + header.size


def _read(segment: _Segment, offset: int, end: int) -> Iterator[LoggedRecord]:
    first = bisect_right(segment.first_offsets, offset) - 1
    ends = [*segment.positions[1:], segment.size]
    spans = zip(segment.first_offsets[first:], segment.positions[first:], ends[first:], strict=True)
    with segment.file.open("rb") as stored:
        for first_offset, position, until in spans:
            if first_offset >= end:
                return
            stored.seek(position)
            batch = stored.read(until - position)
            for record in read_records(batch, 0, read_batch_header(batch, 0, len(batch))):
                if offset <= record.offset:
                    yield LoggedRecord(record.offset, record.timestamp, decode_diskless_record(record.value or b""))
