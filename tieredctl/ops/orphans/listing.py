"""A store's objects as columns: a listing that is put aside until the metadata was read, or a list of keys in a file.

Names that are not UTF-8 are bytes here, as a store's own are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Protocol

import numpy as np
import pyarrow as pa

from tieredctl.errors import TieredctlError
from tieredctl.formats.arrow_columns import binary_array, number_array
from tieredctl.storage.protocol import StoredObject

LISTING_SCHEMA = pa.schema({"key": pa.binary(), "size": pa.int64(), "lastModifiedMs": pa.int64()})
"""Size in bytes, as stored; time in ms."""
_AT_ONCE = 1 << 18
_PIECE_BYTES = 1 << 26
_NEW_LINE = ord("\n")


class Listing(Protocol):
    """Objects of a store as they were at one time, at the latest when `batches` is called first."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them, by LISTING_SCHEMA, none null."""
        ...

    def __enter__(self) -> Listing: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SpooledListing:
    """What a store lists when this is entered, in a temporary file: memory does not grow with it."""

    def __init__(self, objects: Iterable[StoredObject]) -> None:
        self._objects = objects

    def __enter__(self) -> SpooledListing:
        self._file = TemporaryFile()
        objects = iter(self._objects)
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with pa.ipc.new_stream(self._file, LISTING_SCHEMA, options=options) as writer:
            while batch := list(islice(objects, _AT_ONCE)):
                writer.write_batch(_record_batch(batch))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


class KeyFile:
    """A file with a key on each line.

    It has no times and no sizes. An object was there when the list was made, so it counts as modified when the file
    was, and as of 0 bytes.
    """

    def __init__(self, file: Path) -> None:
        """Raises TieredctlError where it is no file."""
        if not file.is_file():
            raise TieredctlError("path-missing", f"There is no file {file}.")
        self._path = file

    def __enter__(self) -> KeyFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def batches(self) -> Iterator[pa.RecordBatch]:
        with self._path.open("rb", buffering=0) as file:
            modified_ms = os.fstat(file.fileno()).st_mtime_ns // 1_000_000
            rest = b""
            while piece := file.read(_PIECE_BYTES):
                whole, _, rest = (rest + piece).rpartition(b"\n")
                if whole:
                    yield _key_batch(whole + b"\n", modified_ms)
            if rest:
                yield _key_batch(rest + b"\n", modified_ms)


def _record_batch(objects: list[StoredObject]) -> pa.RecordBatch:
    # Names that are not UTF-8 come as lone surrogates.
    keys = [stored.key.encode("utf-8", "surrogateescape") for stored in objects]
    bounds = np.zeros(len(keys) + 1, np.int32)
    np.cumsum([len(key) for key in keys], out=bounds[1:])
    column = pa.BinaryArray.from_buffers(
        pa.binary(), len(keys), [None, pa.py_buffer(bounds), pa.py_buffer(b"".join(keys))]
    )
    sizes = np.array([stored.size for stored in objects], np.int64)
    times = np.array([stored.last_modified_ms for stored in objects], np.int64)
    return pa.RecordBatch.from_arrays([column, number_array(sizes), number_array(times)], schema=LISTING_SCHEMA)


def _key_batch(lines: bytes, modified_ms: int) -> pa.RecordBatch:
    data = np.frombuffer(lines, np.uint8)
    ends = np.flatnonzero(data == _NEW_LINE)
    starts = np.append(0, ends[:-1] + 1)
    keys = binary_array(data, starts, ends)
    sizes, times = np.zeros(len(keys), np.int64), np.full(len(keys), modified_ms, np.int64)
    return pa.RecordBatch.from_arrays([keys, number_array(sizes), number_array(times)], schema=LISTING_SCHEMA)
