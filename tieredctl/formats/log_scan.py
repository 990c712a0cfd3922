"""Walks a `.log` file that arrives in pieces, and continues after damage.

A `BatchChecker` decides how batches are checked and kept: one at a time here, or as columns
(`batch_columns.py`), which is faster once a log is large.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Generator, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Generic, Protocol, TypeVar

from tieredctl.errors import DecodeError
from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.crc_ranges import RangeCrcs
from tieredctl.formats.record_batches import (
    BATCH_HEADER,
    CRC_AT,
    CRC_FROM,
    HEADER_BYTES,
    LENGTH_AT,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_AT,
    SHORTEST_LENGTH,
    BatchHeader,
    crc_matches,
    read_batch_header,
)

LARGEST_BATCH = 1 << 28
"""A batch that claims more bytes than this is taken for damaged (Kafka's default limit is 1 MiB)."""

_header_layout = struct.Struct(BATCH_HEADER.fixed_format)
_length_at = struct.Struct(">i").unpack_from
_crc_at = struct.Struct(">I").unpack_from
# The magic, and after the CRC attributes that Kafka knows: what the regular expression passes over is not a batch.
_MAGIC_AND_ATTRIBUTES = re.compile(rb"\x%02x.{%d}\x00[\x00-\x7f]" % (MAGIC, CRC_FROM - CRC_AT), re.DOTALL)
_HEADER_UNTIL_ATTRIBUTES = CRC_FROM + 2
_OFFSETS_OF_A_SEGMENT = 1 << 31
_SHORTEST_REACH = 1 << 10
_LONG_BATCH = 1 << 15
"""Where the length may be wrong, the CRC of so many bytes is not computed for each batch that claims them."""


class _Sliced(Protocol):
    def __getitem__(self, rows: slice, /) -> Any: ...


Headers = TypeVar("Headers", bound=_Sliced)
SomeHeaders = TypeVar("SomeHeaders", covariant=True, bound=_Sliced)


@dataclass(frozen=True, slots=True)
class LogBlock(Generic[Headers]):
    """Sound batches in a row. `buffer[0]` lies at `file_position` in the file."""

    buffer: bytes
    file_position: int
    positions: Sequence[int]
    """Where each batch begins in `buffer`."""
    headers: Headers
    """One per position, in the checker's own shape."""


@dataclass(frozen=True, slots=True)
class Damage:
    """A stretch that holds no sound batch: file positions from `position` up to, not including, `end`."""

    position: int
    end: int
    reason: str
    header: BatchHeader | None
    """The damaged batch's header, where there is enough of it."""
    torn: bool = False
    """True for a last batch whose end was never written: normal in a log that is being appended to."""
    is_too_large: bool = False
    """Whether it may be sound, but unfolds too far to be read."""


class BatchChecker(Protocol[SomeHeaders]):
    """Finds batches that lie wholly in a buffer, and checks their magic and CRC."""

    def chain(self, buffer: bytes, start: int, until: int) -> tuple[Sequence[int], int]:
        """Where batches begin from `start` on and before `until`, by their lengths alone, and where the first other
        one begins: a later, an impossible or an incomplete one."""
        ...

    def check(self, buffer: bytes, positions: Sequence[int], end: int) -> tuple[SomeHeaders, Sequence[int]]:
        """Headers of the batches at `positions`, and which of them are not sound, by their rising numbers.
        Each batch ends where the next begins, the last at `end`."""
        ...


class OneByOne:
    """Checks batches one at a time: for small logs, where importing numpy would take longer than reading them."""

    def chain(self, buffer: bytes, start: int, until: int) -> tuple[list[int], int]:
        fields, stop = length_fields(buffer, start, until)
        return [field - LENGTH_AT for field in fields], stop

    def check(self, buffer: bytes, positions: Sequence[int], end: int) -> tuple[list[BatchHeader], list[int]]:
        headers = [BatchHeader._make(_header_layout.unpack_from(buffer, position)) for position in positions]
        spans = enumerate(pairwise([*positions, end]))
        unsound = [row for row, (start, stop) in spans if _sound_header(buffer, start, stop) is None]
        return headers, unsound


def scan_log(
    chunks: Iterable[bytes], size: int, checker: BatchChecker[Headers], base_offset: int | None = None
) -> Iterator[LogBlock[Headers] | Damage]:
    """Sound batches and damage of a log of `size` bytes, in the order of the file.

    Memory follows the length of the chunks and the largest batch, not the log. The segment's `base_offset`, where it
    is known, keeps records from being taken for batches where the scan continues after damage.
    """
    pending = _Pending(iter(chunks), size, base_offset)
    # How many bytes are looked at together: few after damage that breaks the chain of lengths, then ever more, so that
    # no more is looked at in vain than was of use.
    reach = max(size, _SHORTEST_REACH)
    while True:
        until = min(pending.start + reach, len(pending.buffer))
        positions, stop = checker.chain(pending.buffer, pending.start, until)
        if len(positions) and pending.claims_too_much(int(positions[-1]), stop):
            stop, positions = int(positions[-1]), positions[:-1]
        headers, unsound = checker.check(pending.buffer, positions, stop)
        block = LogBlock(pending.buffer, pending.base, positions, headers)
        del headers
        if not (yield from _sound_and_damaged(pending, block, stop, unsound)):
            reach = _SHORTEST_REACH
            continue
        del block  # before more is read, so that its memory can be reused
        if until <= stop and until < len(pending.buffer):
            reach *= 2
            continue
        missing = pending.missing()
        if missing and pending.more(missing):
            continue
        if not pending.left:
            return
        yield _pass_over(pending)
        reach = _SHORTEST_REACH


def _sound_and_damaged(
    pending: _Pending, block: LogBlock[Headers], stop: int, unsound: Sequence[int]
) -> Generator[LogBlock[Headers] | Damage, None, bool]:
    """What is sound of a block whose last batch ends at `stop`, and the damage in it. False where damage ends elsewhere
    than one of the block's batches: no more of the block is handed out then."""
    positions, sound = block.positions, 0
    for row in unsound:
        if row < sound:
            continue
        if sound < row:
            yield _rows(block, sound, row)
        pending.start = int(positions[row])
        yield _pass_over(pending)
        sound = bisect_left(positions, pending.start, row)
        ended = positions[sound] if sound < len(positions) else stop
        if pending.buffer is not block.buffer or pending.start != ended:
            return False
    if sound < len(positions):
        yield _rows(block, sound, len(positions))
    pending.start = stop
    return True


def _rows(block: LogBlock[Headers], first: int, end: int) -> LogBlock[Headers]:
    if first == 0 and end == len(block.positions):
        return block
    return LogBlock(block.buffer, block.file_position, block.positions[first:end], block.headers[first:end])


class _Pending:
    """What was read of the log: `buffer[0]` lies at `base` in the file, and `buffer[start:]` is not handed out yet.

    Pieces are not joined, except for a batch that lies in two of them: the rest of the second piece waits
    in `_ahead` meanwhile.
    """

    def __init__(self, chunks: Iterator[bytes], size: int, base_offset: int | None) -> None:
        self._chunks = chunks
        self._base_offset = base_offset
        self._ahead: tuple[bytes, int] = (b"", 0)
        self._ranges = RangeCrcs()
        self.size = size
        self.buffer = b""
        self.base = 0
        self.start = 0

    @property
    def position(self) -> int:
        """Where in the file the part that is not handed out begins."""
        return self.base + self.start

    @property
    def left(self) -> int:
        """Bytes of the buffer that are not handed out."""
        return len(self.buffer) - self.start

    def more(self, missing: int = 0) -> bool:
        """Reads a piece where nothing is left, or nothing is missing; else what is missing, or a part of it. Drops what
        was handed out. False at the end of the log."""
        # Dropped before more is read, so that its memory can be reused.
        self.buffer, self.base, self.start = self.buffer[self.start :], self.position, 0
        piece, taken = self._ahead
        self._ahead = (b"", 0)
        if taken == len(piece):
            del piece
            piece, taken = next(self._chunks, b""), 0
        if taken == len(piece):
            return False
        if not self.buffer:
            self.buffer, self.base, self.start = piece, self.base - taken, taken
            return True
        # Some more than is missing: else a large batch would be copied for each of many that are cut off.
        wanted = max(missing, len(self.buffer) // 4) if missing else len(piece)
        pieces = [self.buffer]
        while wanted > 0 and taken < len(piece):
            until = min(taken + wanted, len(piece))
            pieces.append(piece[taken:until])
            wanted -= until - taken
            self._ahead = (piece, until)
            if wanted > 0:
                piece, taken = next(self._chunks, b""), 0
        self.buffer = b"".join(pieces)
        return True

    def ensure(self, end: int) -> bool:
        """Reads until the buffer reaches file position `end`; false where the file does not."""
        while (missing := end - self.base - len(self.buffer)) > 0:
            if not self.more(missing):
                return False
        return True

    def claims_too_much(self, start: int, end: int) -> bool:
        """Whether a long batch that lies in the buffer from `start` to `end` has another CRC, where none follows it."""
        if end - start < _LONG_BATCH or self._is_followed(end):
            return False
        (stated,) = _crc_at(self.buffer, start + CRC_AT)
        return self._ranges.crc(self.buffer, self.base, self.base + start + CRC_FROM, self.base + end) != int(stated)

    def _is_followed(self, end: int) -> bool:
        """Whether a batch may follow, or nothing does."""
        if self.base + end >= self.size:
            return True
        return _MAGIC_AND_ATTRIBUTES.match(self.buffer, end + MAGIC_AT) is not None

    def belongs(self, offset: int) -> bool:
        """Whether a segment with this base offset can hold an offset."""
        return self._base_offset is None or 0 <= offset - self._base_offset < _OFFSETS_OF_A_SEGMENT

    def pass_to(self, position: int) -> None:
        """Drops everything before a file position."""
        self.start = min(position - self.base, len(self.buffer))

    def missing(self) -> int:
        """How many bytes of the first batch are not here yet, if its length is possible."""
        if self.left < LOG_OVERHEAD:
            return HEADER_BYTES - self.left
        length = _length_at(self.buffer, self.start + LENGTH_AT)[0]
        possible = _possible(length, self.size - self.position)
        return max(length + LOG_OVERHEAD - self.left, 0) if possible else 0


def length_fields(buffer: bytes, start: int, until: int) -> tuple[list[int], int]:
    """Positions of the length fields of the batches from `start` on and before `until` that lie wholly in the buffer,
    by their lengths alone; and where the first other batch begins."""
    fields: list[int] = []
    append, length_at = fields.append, _length_at  # large logs spend their time in this loop
    field = start + LENGTH_AT
    last_field = min(len(buffer) - HEADER_BYTES, until - 1) + LENGTH_AT
    while field <= last_field:
        append(field)
        (length,) = length_at(buffer, field)
        if length < SHORTEST_LENGTH:
            break
        field += length + LOG_OVERHEAD
    if fields and not SHORTEST_LENGTH <= length <= len(buffer) - fields[-1] - (LOG_OVERHEAD - LENGTH_AT):
        field = fields.pop()
    return fields, field - LENGTH_AT


def _possible(length: int, left: int) -> bool:
    return SHORTEST_LENGTH <= length <= min(left - LOG_OVERHEAD, LARGEST_BATCH)


def _sound_header(buffer: bytes, position: int, end: int) -> BatchHeader | None:
    try:
        header = read_batch_header(buffer, position, end)
    except DecodeError:
        return None
    return header if position + header.size <= end and crc_matches(buffer, position, header) else None


def _pass_over(pending: _Pending) -> Damage:
    """The damage at the beginning of what is pending, which begins after the damage then."""
    position, left = pending.position, pending.size - pending.position
    rest = memoryview(pending.buffer)[pending.start :]
    header = _any_header(bytes(rest[:HEADER_BYTES]))
    if header and _possible(header.batch_length, left):
        reason = f"magic {header.magic} is not {MAGIC}" if header.magic != MAGIC else "CRC-32C does not match"
        # Not by its length, although a sound batch may follow there: a wrong length can hide others.
        _seek_sound(pending, position + 1)
        return Damage(position, pending.position, reason, header)
    _seek_sound(pending, position + 1)
    torn = not pending.left
    if torn and header and len(rest) == left and crc32c(rest[CRC_FROM:]) == header.crc:
        torn = False  # the batch is complete: its length is wrong
    reason = f"batch length {header.batch_length} is impossible" if header else "no batch header"
    return Damage(position, pending.position, "the last batch is incomplete" if torn else reason, header, torn)


def _any_header(head: bytes) -> BatchHeader | None:
    if len(head) < HEADER_BYTES or not any(head):
        return None
    return BatchHeader._make(_header_layout.unpack(head))


def _is_sound(pending: _Pending, position: int) -> bool:
    """Whether a sound batch begins where a magic and attributes were found."""
    if not pending.ensure(position + HEADER_BYTES):
        return False
    at = position - pending.base
    header = _any_header(pending.buffer[at : at + HEADER_BYTES])
    if header is None or not _possible(header.batch_length, pending.size - position):
        return False
    if not 0 <= header.records_count <= header.last_offset_delta + 1:
        return False
    if not pending.belongs(header.base_offset):
        return False
    if not pending.ensure(position + header.size):
        return False
    at = position - pending.base
    return not pending.claims_too_much(at, at + header.size) and crc_matches(pending.buffer, at, header)


def _seek_sound(pending: _Pending, position: int) -> None:
    """Drops what is pending up to the first sound batch at or after a file position, or all of it."""
    while True:
        match = _MAGIC_AND_ATTRIBUTES.search(pending.buffer, position - pending.base + MAGIC_AT)
        if match:
            position = pending.base + match.start() - MAGIC_AT
            if _is_sound(pending, position):
                pending.pass_to(position)
                return
            position += 1
            pending.pass_to(position)
        else:
            position = max(position, pending.base + len(pending.buffer) - _HEADER_UNTIL_ATTRIBUTES + 1)
            pending.pass_to(position)
            if not pending.more():
                pending.start = len(pending.buffer)
                return
