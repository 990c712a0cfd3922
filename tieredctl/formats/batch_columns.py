"""Headers of many record batches as columns, and their CRCs checked a stretch at a time."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from tieredctl.formats.crc32c import crc32c
from tieredctl.formats.log_scan import length_fields
from tieredctl.formats.record_batches import BATCH_HEADER, CRC_AT, CRC_FROM, HEADER_BYTES, LENGTH_AT, MAGIC, MAGIC_AT
from tieredctl.formats.schema import Primitive, Struct
from tieredctl.formats.windows import Flags, Ints, structs_at, windows

HeaderColumns = NDArray[Any]
"""A structured array, one row per batch, with the field names of `BATCH_HEADER`, big-endian as on disk."""

_STRETCH = 1 << 20
_SMALL_BATCH = 1 << 12
_FEW_BATCHES = 8
_ALL_ONES = np.uint32(0xFFFFFFFF)
_ALL_ONES_CRC = 0xFFFFFFFF
_CRC_BYTES = 4
_crc_at = struct.Struct(">I").unpack_from


def fixed_dtype(schema: Struct) -> np.dtype[Any]:
    """A struct of fixed-width fields as a packed numpy type, big-endian."""
    codes = {
        Primitive.BOOL: "?",
        Primitive.INT8: "i1",
        Primitive.INT16: ">i2",
        Primitive.INT32: ">i4",
        Primitive.UINT32: ">u4",
        Primitive.INT64: ">i8",
        Primitive.UUID: "V16",
    }
    fields = []
    for field in schema.fields:
        if not isinstance(field.type, Primitive):
            raise TypeError(f"{schema.name}.{field.name} has no fixed width")
        fields.append((field.name, codes[field.type]))
    return np.dtype(fields)


HEADER_DTYPE = fixed_dtype(BATCH_HEADER)


def joined_headers(parts: Sequence[HeaderColumns]) -> HeaderColumns:
    """All parts in a row. numpy would compare each field of each part."""
    opaque = np.dtype((np.void, HEADER_DTYPE.itemsize))
    return np.concatenate([part.view(opaque) for part in parts]).view(HEADER_DTYPE)


class AsColumns:
    """Finds and checks batches by whole columns (a `BatchChecker`)."""

    def chain(self, buffer: bytes, start: int, until: int) -> tuple[Sequence[int], int]:
        fields, stop = length_fields(buffer, start, until)
        return cast("Sequence[int]", np.array(fields, np.int64) - LENGTH_AT), stop

    def check(self, buffer: bytes, positions: Sequence[int], end: int) -> tuple[HeaderColumns, Sequence[int]]:
        if len(positions) < _FEW_BATCHES:
            return _few_checked(buffer, positions, end)
        data = np.frombuffer(buffer, np.uint8)
        starts = np.asarray(positions, np.int64)
        headers = structs_at(data, starts, HEADER_DTYPE)
        wrong = _wrong_crcs(data, np.append(starts, end), headers["crc"])
        wrong |= headers["magic"] != MAGIC
        return headers, np.flatnonzero(wrong).tolist()


def _few_checked(buffer: bytes, positions: Sequence[int], end: int) -> tuple[HeaderColumns, list[int]]:
    """Checks batches one by one, without the start-up cost of columns: after damage, few batches are looked at
    together."""
    starts = list(map(int, positions))
    headers = np.frombuffer(b"".join([buffer[start : start + HEADER_BYTES] for start in starts]), HEADER_DTYPE)
    view = memoryview(buffer)
    unsound = []
    for row, (start, stop) in enumerate(pairwise([*starts, end])):
        (stated,) = _crc_at(buffer, start + CRC_AT)
        if buffer[start + MAGIC_AT] != MAGIC or crc32c(view[start + CRC_FROM : stop]) != stated:
            unsound.append(row)
    return headers, unsound


def _wrong_crcs(data: NDArray[np.uint8], bounds: Ints, stated: NDArray[Any]) -> Flags:
    """Flags the batches that do not match their CRC; batch i is bounds[i] to bounds[i + 1]."""
    count = len(bounds) - 1
    if (bounds[-1] - bounds[0]) // count >= _SMALL_BATCH:
        return _wrong_one_by_one(data, bounds, stated)
    wrong = np.zeros(count, np.bool_)
    cuts = np.searchsorted(bounds[:-1], np.arange(bounds[0], bounds[-1] + _STRETCH, _STRETCH))
    cuts[-1] = count
    for first, last in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if first < last and not _all_match(data, bounds[first : last + 1]):
            wrong[first:last] = _wrong_one_by_one(data, bounds[first : last + 1], stated[first:last])
    return wrong


def _wrong_one_by_one(data: NDArray[np.uint8], bounds: Ints, stated: NDArray[Any]) -> Flags:
    # In C throughout: a loop of Python's would take as long as the CRCs.
    sealed = map(data.data.__getitem__, map(slice, (bounds[:-1] + CRC_FROM).tolist(), bounds[1:].tolist()))
    wrong: Flags = np.fromiter(map(crc32c, sealed), np.uint32, len(stated)) != stated
    return wrong


def _all_match(data: NDArray[np.uint8], bounds: Ints) -> bool:
    """Whether every batch of a stretch has the CRC it states, found with one pass of the C function over a copy.

    A CRC is linear. In the copy, each batch's body begins with the register at all ones, as CRC-32C demands, by
    flipping its first four bytes; after each body stands the register that the stated CRC implies, which brings a
    sound batch's register to zero; the rest of each header is zero and keeps it there. So the register ends at zero
    if all is sound. One batch that is not is always noticed; two or more cancel out once in 2^32, as often as a CRC
    itself misses one.
    """
    start, end = int(bounds[0]), int(bounds[-1])
    work = np.zeros(end - start + _CRC_BYTES, np.uint8)
    work[: end - start] = data[start:end]
    begins, ends = bounds[:-1] - start, bounds[1:] - start
    words = windows(work, _CRC_BYTES)
    implied = words[begins + CRC_AT].view(">u4")[:, 0].astype("<u4") ^ _ALL_ONES
    windows(work, CRC_FROM)[begins] = 0
    words[begins + CRC_FROM] ^= 0xFF
    words[ends] = implied.view(np.uint8).reshape(-1, _CRC_BYTES)
    return bool(crc32c(work.data, _ALL_ONES_CRC) == _ALL_ONES_CRC)
