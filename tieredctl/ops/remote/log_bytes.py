"""The bytes of a segment's log, also where some of them cannot be recovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import NamedTuple

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.ops.guards.in_parallel import in_turn
from tieredctl.ports.layout import DamagedRange, Part, SegmentReader

MOST_BYTES_IN_FLIGHT = 64 << 20
"""How much of a log is asked for, and not handed out yet."""


class _Piece(NamedTuple):
    """What was read of a range, which ends at `end`."""

    end: int
    data: bytes
    damages: Sequence[DamagedRange]


class LogBytes:
    """Reads a log as the broker wrote it, with zeros, which make no batch, for what cannot be decoded."""

    def __init__(
        self,
        segment: SegmentReader,
        parallel_reads: int = 1,
        *,
        reads_on: bool = False,
        bytes_in_flight: int | None = None,
    ) -> None:
        """With several `parallel_reads`, the pieces that follow are asked for ahead, up to the limit, but no more than
        were handed out before: whoever wants a few bytes has only these read. `reads_on` says that as much as the limit
        was read before this log. `bytes_in_flight` is a lower limit."""
        self.bytes_read = 0
        self._segment = segment
        self._parallel_reads = parallel_reads
        self._reads_on = reads_on
        self._bytes_in_flight = bytes_in_flight
        self._damages: dict[int, DamagedRange] = {}
        self._asked: _Piece | None = None

    @property
    def damages(self) -> Sequence[DamagedRange]:
        """What could not be decoded so far, by position."""
        return sorted(self._damages.values(), key=lambda damage: damage.position)

    def ask(self, size: int) -> None:
        """Reads the whole of a small log, to be handed out as one piece. What fails is read again then."""
        with suppress(DecodeError, TieredctlError):
            self._asked = self._read_around_damage((0, size))

    def whole(self, size: int, piece_bytes: int) -> Iterator[bytes]:
        """The log from its first byte, in pieces; bytes beyond `size` are left out."""
        if self._parallel_reads > 1 and size:
            yield from self.pieces(0, size, piece_bytes)
            return
        read = 0
        try:
            for chunk in self._segment.stream(Part.LOG, piece_bytes):
                piece = chunk[: size - read]
                read += len(piece)
                self.bytes_read += len(piece)
                if piece:
                    yield piece
                if read == size:
                    return
                del chunk, piece  # before the next is read, so that its memory can be reused
        except DamagedRange:
            yield from self.pieces(read, size, piece_bytes)

    def pieces(self, start: int, end: int, piece_bytes: int) -> Iterator[bytes]:
        """The bytes from `start` up to, not including, `end`; fewer where the log ends before. A piece has about
        `piece_bytes`, or whole chunks where the layout stores some."""
        position = start
        for piece in self._read_pieces(start, end, piece_bytes):
            self._damages |= {damage.position: damage for damage in piece.damages}
            data = piece.data
            position += len(data)
            self.bytes_read += len(data)
            is_end = position < piece.end
            yield data
            if is_end:
                return
            del piece, data  # as above

    def _read_pieces(self, start: int, end: int, piece_bytes: int) -> Iterator[_Piece]:
        asked, self._asked = self._asked, None
        if asked is not None and (start, end) == (0, asked.end):
            return iter([asked])
        if self._parallel_reads == 1 or end - start <= piece_bytes:
            return map(self._read_around_damage, _ranges(start, end, piece_bytes, 1))
        unit = self._segment.chunk_bytes()
        limit = MOST_BYTES_IN_FLIGHT if self._bytes_in_flight is None else self._bytes_in_flight
        most = max(min(self._parallel_reads, limit // max(piece_bytes, unit)), 1)
        ranges = _ranges(start, end, piece_bytes, unit)
        at_first = most if self._reads_on else 1
        return in_turn(self._read_around_damage, ranges, most, most=most, at_first=at_first)

    def _read_around_damage(self, within: tuple[int, int]) -> _Piece:
        start, end = within
        pieces: list[bytes] = []
        damages: list[DamagedRange] = []
        while start < end:
            try:
                pieces.append(self._segment.read(Part.LOG, start, end))
                break
            except DamagedRange as damage:
                damages.append(damage)
                first, behind = (min(max(bound, start), end) for bound in damage.original)
                pieces += [self._segment.read(Part.LOG, start, first), bytes(behind - first)]
                start = behind
        return _Piece(within[1], pieces[0] if len(pieces) == 1 else b"".join(pieces), damages)


def _ranges(start: int, end: int, piece_bytes: int, unit: int) -> Iterator[tuple[int, int]]:
    """Ranges that follow each other, all but the first of them from a multiple of `unit` on."""
    first = -(-(start + piece_bytes) // unit) * unit
    bounds = [start, *range(first, end, max(piece_bytes // unit, 1) * unit), end]
    return pairwise(bounds) if start < end else iter(())
