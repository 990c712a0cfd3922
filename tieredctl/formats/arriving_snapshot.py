"""Checks a KRaft snapshot while it arrives: each batch as soon as it is whole."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.errors import DecodeError
from tieredctl.formats.log_scan import LARGEST_BATCH
from tieredctl.formats.record_batches import (
    HEADER_BYTES,
    BatchHeader,
    ControlType,
    crc_matches,
    read_batch_header,
    read_control_type,
    read_records,
)


class ArrivingSnapshot:
    """What arrived of a snapshot of `size` bytes, from its beginning.

    Its first record must be the header, its last the footer, which is in no other place; batches follow each other, by
    their bytes and their offsets, and each has its CRC. What is in other records is not looked at.
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self.position = 0
        """The byte after the last batch that is whole and sound: where the next begins."""
        self.batches = 0
        """How many are whole and sound."""
        self._rest = bytearray()
        self._following_offset = 0
        self._has_ended = False

    def add(self, data: bytes) -> Iterator[bytes]:
        """The batches that are whole now: to be read to the end, before more is added.

        Raises DecodeError, with the position in the snapshot, where the next one cannot be right.
        """
        self._rest += data
        if self.position + len(self._rest) > self.size:
            raise DecodeError(f"snapshot continues after its {self.size} bytes", self.size)
        start = 0
        try:
            while (end := self._end_of_next(self._rest, start)) is not None:
                self.position += end - start
                self.batches += 1
                batch = bytes(memoryview(self._rest)[start:end])
                start = end
                yield batch
        finally:
            self._rest = self._rest[start:]  # not cut in place: a refusal's traceback may still hold views of it

    def forget_rest(self) -> None:
        """Forgets what arrived of the batch that is not whole: it will arrive again."""
        self._rest = bytearray()

    def demand_whole(self) -> None:
        """Raises DecodeError where the snapshot does not end with what arrived."""
        if self.position < self.size:
            raise DecodeError(f"{self.size - self.position} of its {self.size} bytes are missing", self.position)
        if not self._has_ended:
            raise DecodeError("snapshot does not end with a footer", self.size)

    def _end_of_next(self, buffer: bytearray, start: int) -> int | None:
        """Where the batch at `start` ends; None where its end is not there yet. Raises DecodeError."""
        left = self.size - self.position
        if not left or (len(buffer) - start < HEADER_BYTES <= left):
            return None
        if self._has_ended:
            raise DecodeError("snapshot continues after its footer", self.position)
        try:
            header = read_batch_header(buffer, start, len(buffer))
        except DecodeError as error:
            raise DecodeError(error.reason, self.position + error.position - start) from None
        if header.size > min(left, LARGEST_BATCH):
            raise DecodeError(f"batch claims {header.size} bytes where {left} are left", self.position)
        if len(buffer) - start < header.size:
            return None
        self._check(buffer, start, header)
        return start + header.size

    def _check(self, buffer: bytearray, start: int, header: BatchHeader) -> None:
        if not crc_matches(buffer, start, header):
            raise DecodeError("CRC-32C does not match", self.position)
        if header.base_offset != self._following_offset:
            message = f"batch begins with offset {header.base_offset}, not {self._following_offset}"
            raise DecodeError(message, self.position)
        self._following_offset = header.last_offset + 1
        kinds = self._control_types(buffer, start, header) if header.is_control else []
        if not self.batches and kinds[:1] != [ControlType.SNAPSHOT_HEADER]:
            raise DecodeError("snapshot does not begin with a header", self.position)
        if ControlType.SNAPSHOT_FOOTER in kinds[:-1]:
            raise DecodeError("snapshot continues after its footer", self.position)
        self._has_ended = kinds[-1:] == [ControlType.SNAPSHOT_FOOTER]

    def _control_types(self, buffer: bytearray, start: int, header: BatchHeader) -> list[int]:
        try:
            return [read_control_type(record) for record in read_records(buffer, start, header)]
        except DecodeError as error:
            raise DecodeError(f"{error.reason}, in a record of the batch", self.position) from None
