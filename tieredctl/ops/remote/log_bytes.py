"""The bytes of a segment's log, also where some of them cannot be recovered."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.ports.layout import DamagedRange, Part, SegmentReader


class LogBytes:
    """Reads a log as the broker wrote it, with zeros, which make no batch, for what cannot be decoded."""

    def __init__(self, segment: SegmentReader) -> None:
        self.bytes_read = 0
        self._segment = segment
        self._damages: dict[int, DamagedRange] = {}

    @property
    def damages(self) -> Sequence[DamagedRange]:
        """What could not be decoded so far, by position."""
        return sorted(self._damages.values(), key=lambda damage: damage.position)

    def whole(self, size: int, piece_bytes: int) -> Iterator[bytes]:
        """The log from its first byte, in pieces; bytes beyond `size` are left out."""
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
        """The bytes from `start` up to, not including, `end`."""
        for position in range(start, end, piece_bytes):
            piece = self._read_around_damage(position, min(position + piece_bytes, end))
            self.bytes_read += len(piece)
            yield piece

    def _read_around_damage(self, start: int, end: int) -> bytes:
        pieces: list[bytes] = []
        while start < end:
            try:
                pieces.append(self._segment.read(Part.LOG, start, end))
                break
            except DamagedRange as damage:
                self._damages[damage.position] = damage
                first, behind = (min(max(bound, start), end) for bound in damage.original)
                pieces += [self._segment.read(Part.LOG, start, first), bytes(behind - first)]
                start = behind
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)
