"""Shows the content of a file that a broker or its remote log metadata manager left (`store inspect`)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path, PurePath

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import LARGEST_BATCH_FILE, demand_size, file_chunks, reading, regular_size
from tieredctl.ops.inspection.batch_file_documents import BATCH_FILES
from tieredctl.ops.inspection.file_kinds import FileKind, identify
from tieredctl.ops.inspection.small_file_documents import small_file

__all__ = ["FileKind", "InspectedFile", "identify", "inspect"]

_HEAD_BYTES = 1 << 16
LARGEST_SMALL_FILE = 1 << 28
"""Kinds other than logs and KRaft snapshots are read whole; Kafka's are far below this."""
_OF_ANOTHER_KIND = "If its kind is another one, give that with --kind."


@dataclass(frozen=True, slots=True)
class InspectedFile:
    """A file's fields and entries, with Kafka's names. `entries` can be read once, and reads a large file as it goes;
    it raises what `inspect` raises."""

    path: str
    """Its path, or its name where a copy was read."""
    kind: FileKind
    fields: Document
    entries: Iterator[Document]

    def document(self) -> Document:
        """The whole file as one item of `store inspect`."""
        return {
            "path": self.path,
            "fileKind": self.kind.value,
            "fields": self.fields,
            "entries": list(self.entries),
        }


def inspect(path: Path, kind: FileKind | None = None, *, called: str | None = None) -> InspectedFile:
    """A file's content; give `kind` where its name and first bytes do not show it, or are wrong. `called` is its name
    where `path` is a copy.

    Raises TieredctlError where the file cannot be read or its kind cannot be told, DecodeError where it is damaged.
    A log's damaged batches are entries with `isValid` false, as long as the file holds any batch.
    """
    shown = called or str(path)
    name = PurePath(shown).name
    with reading(shown):
        size = regular_size(path)
        head = next(file_chunks(path, min(size, _HEAD_BYTES)), b"")
    kind = kind or identify(name, head)
    if kind is None:
        kinds = ", ".join(each.value for each in FileKind)
        why = f"{shown} is empty: nothing shows" if not size else f"Nothing in {shown} shows"
        raise TieredctlError(ErrorCode.USAGE, f"{why} what kind of file it is.", hint=f"Give --kind, one of: {kinds}.")
    with _naming(shown, kind):
        if kind in BATCH_FILES:
            demand_size(shown, size, LARGEST_BATCH_FILE, _OF_ANOTHER_KIND)
            fields, entries = BATCH_FILES[kind](name, lambda: file_chunks(path, size), size)
        else:
            demand_size(shown, size, LARGEST_SMALL_FILE, _OF_ANOTHER_KIND)
            fields, entries = small_file(kind, name, b"".join(file_chunks(path, size)))
        # A file of another kind is refused here, not when its entries are read.
        begun = list(islice(entries, 1))
    return InspectedFile(shown, kind, {**fields, "sizeInBytes": size}, chain(begun, _named(shown, kind, entries)))


def _named(path: str, kind: FileKind, entries: Iterator[Document]) -> Iterator[Document]:
    with _naming(path, kind):
        yield from entries


@contextmanager
def _naming(path: str, kind: FileKind) -> Iterator[None]:
    """Adds to errors which file is wrong, and as what it was read."""
    try:
        with reading(path):
            yield
    except TieredctlError as error:
        if error.code is ErrorCode.TRANSFORMED:
            message = f"{path} has {error.message}: it is encrypted, compressed or entirely damaged"
            raise TieredctlError(ErrorCode.TRANSFORMED, message) from None
        if not isinstance(error, DecodeError):
            raise
        named = DecodeError(f"{path} is not a valid {kind.value} file: {error.reason}", error.position)
        named.hint = "Restore it from a replica."  # the table's leads here
        raise named from None
