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
from typing import Protocol

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import bytes_array, few_texts_array, number_array, same_text_array
from tieredctl.formats.line_columns import line_columns
from tieredctl.storage.protocol import StoredObject

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
    """Batches by LISTING_SCHEMA that are made when this is entered, and put into a temporary file: memory does not grow
    with them, and what is wrong with one is known before any is given."""

    def __init__(self, batches: Iterable[pa.RecordBatch]) -> None:
        self._batches = batches

    def __enter__(self) -> SpooledBatches:
        options = pa.ipc.IpcWriteOptions(compression="lz4")
        with ExitStack() as stack:
            self._file = stack.enter_context(TemporaryFile())
            with pa.ipc.new_stream(self._file, LISTING_SCHEMA, options=options) as writer:
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
        super().__init__(_record_batches(iter(objects)))


class KeyFile:
    """A file with a key on each line.

    It has no times and no sizes. An object was there when the list was made, so it counts as modified when the file
    was, and as of 0 bytes.
    """

    def __init__(self, file: Path) -> None:
        """Raises TieredctlError if it is not a file."""
        if not file.is_file():
            raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no file {file}.")
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
            for keys in line_columns(file):
                yield _key_batch(keys, modified_ms)


def _record_batches(objects: Iterator[StoredObject]) -> Iterator[pa.RecordBatch]:
    while batch := list(islice(objects, _AT_ONCE)):
        yield record_batch(batch)


def record_batch(objects: Sequence[StoredObject]) -> pa.RecordBatch:
    """Objects by LISTING_SCHEMA."""
    # Names that are not UTF-8 come as lone surrogates.
    keys = bytes_array([stored.key.encode("utf-8", "surrogateescape") for stored in objects])
    versions = bytes_array([stored.version.encode() for stored in objects])
    sizes = np.array([stored.size for stored in objects], np.int64)
    times = np.array([stored.last_modified_ms for stored in objects], np.int64)
    classes = few_texts_array([stored.storage_class or "" for stored in objects])
    columns = [keys, number_array(sizes), number_array(times), versions, classes]
    return pa.RecordBatch.from_arrays(columns, schema=LISTING_SCHEMA)


def _key_batch(keys: pa.BinaryArray, modified_ms: int) -> pa.RecordBatch:
    sizes, times = np.zeros(len(keys), np.int64), np.full(len(keys), modified_ms, np.int64)
    versions, classes = pa.nulls(len(keys), pa.binary()), same_text_array("", len(keys))
    columns = [keys, number_array(sizes), number_array(times), versions, classes]
    return pa.RecordBatch.from_arrays(columns, schema=LISTING_SCHEMA)
