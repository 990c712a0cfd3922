"""A store's objects as columns: a listing that is put aside until the metadata was read, or a list of keys in a file.

Names that are not UTF-8 are bytes here, as a store's own are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from tempfile import TemporaryFile
from types import TracebackType
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import bytes_array, few_texts_array, number_array, same_text_array
from tieredctl.formats.line_columns import line_columns
from tieredctl.model.counted import counted
from tieredctl.model.key_text import key_bytes, key_text
from tieredctl.ops.remote.repeated_keys import RepeatedKeys
from tieredctl.ports.object_store import StoredObject

LISTING_SCHEMA = pa.schema(
    {
        "key": pa.binary(),
        "size": pa.int64(),
        "lastModifiedMs": pa.int64(),
        "version": pa.binary(),
        "storageClass": pa.dictionary(pa.int32(), pa.string()),
    }
)
"""Size in bytes, as stored; time in ms; version as `StoredObject` has it, null if it is not known; storage class as
the store names it, empty if it is not known."""
_AT_ONCE = 1 << 18
_FEW = 1 << 9


class Listing(Protocol):
    """Objects of a store as they were at one time, at the latest when `batches` is called first."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All of them, by LISTING_SCHEMA, none null but versions."""
        ...

    def __enter__(self) -> Listing: ...

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class SpooledBatches:
    """Batches that are made when this is entered, and put into a temporary file: memory does not grow with them, and
    what is wrong with one is known before any is given."""

    def __init__(self, batches: Iterable[pa.RecordBatch], schema: pa.Schema = LISTING_SCHEMA) -> None:
        self._batches = batches
        self._schema = schema

    def __enter__(self) -> SpooledBatches:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with ExitStack() as stack:
            self._file = stack.enter_context(TemporaryFile())
            with pa.ipc.new_stream(self._file, self._schema, options=options) as writer:
                for batch in self._batches:
                    writer.write_batch(batch)
            stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        self._file.seek(0)
        yield from pa.ipc.open_stream(self._file)


class SpooledListing(SpooledBatches):
    """What a store lists when this is entered."""

    def __init__(self, objects: Iterable[StoredObject]) -> None:
        super().__init__(record_batches(iter(objects), _AT_ONCE))


class KeyFile:
    """A file with a key on each line.

    It has no times and no sizes. An object was there when the list was made, so it counts as modified when the file
    was, and as of 0 bytes. Pickled, it is the same list where its file is the same.
    """

    def __init__(self, file: Path) -> None:
        """Raises TieredctlError if it is not a file, and `usage` if it is empty: a listing that failed leaves that."""
        if not file.is_file():
            raise _no_file(file)
        status = file.stat()
        if not status.st_size:
            hint = "If the store itself is empty, scan it without --key-list."
            raise TieredctlError(ErrorCode.USAGE, f"{file} has no keys.", hint=hint)
        self._path, self._size, self._modified_ms = file, status.st_size, status.st_mtime_ns // 1_000_000

    @property
    def path(self) -> Path:
        return self._path

    def __enter__(self) -> KeyFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        return

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Raises TieredctlError if it is not the file that it was: keys that are added later may be of objects that
        the metadata does not know yet; and `usage`, at the end, if it has a key twice."""
        repeated = RepeatedKeys()
        if not self._path.is_file():
            raise _no_file(self._path)
        with self._path.open("rb", buffering=0) as file:
            self._demand_same(os.fstat(file.fileno()).st_size)
            for keys in line_columns(file):
                repeated.add(keys)
                yield _key_batch(keys, self._modified_ms)
            self._demand_same(file.tell())
        if count := repeated.count():
            message = f"{self._path} has {counted(count, 'key')} more than once."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give each key once: `sort -u` leaves one of each.")

    def _demand_same(self, size: int) -> None:
        if size != self._size:
            message = f"{self._path} has {size} bytes where it is read, but had {self._size} when the scan began."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Run it again with a list that does not change.")


def _no_file(file: Path) -> TieredctlError:
    return TieredctlError(ErrorCode.PATH_MISSING, f"There is no file {file}.")


def record_batches(objects: Iterator[StoredObject], at_once: int) -> Iterator[pa.RecordBatch]:
    """Objects by LISTING_SCHEMA, about so many at once. Few of them exist at a time: many that live long would keep
    Python's garbage collector busy."""
    columns: list[list[Any]] = [[] for _ in StoredObject._fields]
    while some := list(islice(objects, min(_FEW, at_once))):
        for column, values in zip(columns, zip(*some, strict=True), strict=True):
            column.extend(values)
        if len(columns[0]) >= at_once:
            yield _batch(columns)
            columns = [[] for _ in StoredObject._fields]
    if columns[0]:
        yield _batch(columns)


def record_batch(objects: Sequence[StoredObject]) -> pa.RecordBatch:
    """Objects by LISTING_SCHEMA."""
    return _batch(list(zip(*objects, strict=True)) or [()] * len(StoredObject._fields))


def stored_objects(batch: pa.RecordBatch) -> Iterator[StoredObject]:
    """The objects of a batch by LISTING_SCHEMA, with or without more columns."""
    columns = (column.to_pylist() for column in batch.columns[: len(LISTING_SCHEMA)])
    for key, size, modified_ms, version, storage_class in zip(*columns, strict=True):
        yield StoredObject(key_text(key), size, modified_ms, (version or b"").decode(), storage_class or None)


def stored_object(batch: pa.RecordBatch, row: int) -> StoredObject:
    """One of them."""
    return next(stored_objects(batch.slice(row, 1)))


def _batch(objects: Sequence[Sequence[Any]]) -> pa.RecordBatch:
    """What the fields of objects are, by field."""
    keys, sizes, times, versions, classes = objects
    columns = [
        _encoded(keys),
        number_array(np.array(sizes, np.int64)),
        number_array(np.array(times, np.int64)),
        _encoded(versions),
        few_texts_array([storage_class or "" for storage_class in classes]),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=LISTING_SCHEMA)


def _encoded(texts: Sequence[str]) -> pa.BinaryArray:
    """In UTF-8; names that are not UTF-8 come as lone surrogates."""
    joined = "".join(texts)
    if not joined.isascii():
        return bytes_array([key_bytes(text) for text in texts])
    bounds = np.zeros(len(texts) + 1, np.int32)
    np.cumsum(np.fromiter(map(len, texts), np.int32, len(texts)), out=bounds[1:])
    return pa.BinaryArray.from_buffers(
        pa.binary(), len(texts), [None, pa.py_buffer(bounds), pa.py_buffer(joined.encode("ascii"))]
    )


def _key_batch(keys: pa.BinaryArray, modified_ms: int) -> pa.RecordBatch:
    sizes, times = np.zeros(len(keys), np.int64), np.full(len(keys), modified_ms, np.int64)
    versions, classes = pa.nulls(len(keys), pa.binary()), same_text_array("", len(keys))
    columns = [keys, number_array(sizes), number_array(times), versions, classes]
    return pa.RecordBatch.from_arrays(columns, schema=LISTING_SCHEMA)
