"""The header of a segment's file: where in the file each part begins (LogSegmentDataHeader of Uber's HDFS plugin)."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from struct import Struct

from tieredctl.errors import DecodeError
from tieredctl.ports.layout import Part

PARTS = (
    Part.OFFSET_INDEX,
    Part.TIME_INDEX,
    Part.LEADER_EPOCH,
    Part.PRODUCER_SNAPSHOT,
    Part.TRANSACTION_INDEX,
    Part.LOG,
)
"""In the order of the file."""
_HEADER = Struct(">b6i")
HEADER_BYTES = _HEADER.size
_VERSION = 0


def encode_header(sizes: Mapping[Part, int]) -> bytes:
    """The header of a file with parts of these sizes in bytes; what is not there has none."""
    positions = [HEADER_BYTES]
    for part in PARTS[:-1]:
        positions.append(positions[-1] + sizes.get(part, 0))
    return _HEADER.pack(_VERSION, *positions)


def decode_header(data: bytes, file_bytes: int) -> dict[Part, tuple[int, int]]:
    """Where each part is in a file of that size, first byte inclusive, last exclusive. Raises DecodeError with the byte
    of the file that is wrong."""
    if len(data) < HEADER_BYTES:
        raise DecodeError(f"the file ends within its header of {HEADER_BYTES} bytes,", len(data))
    version, *positions = _HEADER.unpack_from(data)
    if version != _VERSION:
        raise DecodeError(f"the header has version {version}, not {_VERSION},", 0)
    if positions[0] != HEADER_BYTES:
        raise DecodeError(f"the header says that the {PARTS[0]} begins at {positions[0]}, not after it,", _field(0))
    for number, (before, position) in enumerate(pairwise(positions), 1):
        if position < before:
            message = f"the header says that the {PARTS[number]} begins at {position}, before the {PARTS[number - 1]},"
            raise DecodeError(message, _field(number))
        if position > file_bytes:
            message = (
                f"the header says that the {PARTS[number]} begins at {position}, but the file ends at {file_bytes},"
            )
            raise DecodeError(message, _field(number))
    return dict(zip(PARTS, pairwise([*positions, file_bytes]), strict=True))


def _field(number: int) -> int:
    return 1 + 4 * number
