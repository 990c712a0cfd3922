"""How far a listing has come, and what it listed so far: one file, whole at any time.

It is a database of SQLite: ranges of keys that are still to be listed, and batches of objects that were.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from zlib import crc32

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl.process.replaced_file import file_added_to

_APPLICATION_ID = 0x74696572
_FORMAT = 1
"""To be changed with the columns of a listing."""
_SCHEMA = (
    f"PRAGMA application_id = {_APPLICATION_ID}",
    f"PRAGMA user_version = {_FORMAT}",
    "CREATE TABLE listing (store TEXT NOT NULL, began_ms INTEGER NOT NULL)",
    "CREATE TABLE ranges (id INTEGER PRIMARY KEY, position BLOB NOT NULL, last BLOB)",
    "CREATE TABLE batches (first BLOB NOT NULL, objects BLOB NOT NULL, crc INTEGER NOT NULL)",
    "CREATE INDEX batches_by_key ON batches (first)",
)
_PRIMARY_CODE = 0xFF
_UNWRITABLE = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY)
_OPTIONS = pa.ipc.IpcWriteOptions(compression="lz4")


@dataclass(frozen=True, slots=True)
class UnlistedRange:
    """The keys after `position`, up to and including `last`; all that follow if `last` is None."""

    number: int
    position: str
    last: str | None


class ListingCheckpoint:
    """A checkpoint's file. May be used from several threads, and by one process at a time."""

    def __init__(self, file: Path, store: str, now_ms: int) -> None:
        """Opens the file, or makes it for a listing of a store that begins now, with all keys unlisted.

        Raises TieredctlError `checkpoint-unusable` for any other file, and `locked` while another run uses it.
        """
        self._file = file
        self._using = Lock()
        with self._failing():
            with suppress(OSError), file_added_to(file):
                pass  # SQLite would create it world-readable, and follow anybody's link
            self._database = sqlite3.connect(file, timeout=0, isolation_level=None, check_same_thread=False)
            try:
                self._database.execute("PRAGMA locking_mode = EXCLUSIVE")
                self._begin(store, now_ms)
                (self.store, self.began_ms) = self._database.execute("SELECT store, began_ms FROM listing").fetchone()
            except BaseException:
                self._database.close()
                raise

    def unlisted(self) -> list[UnlistedRange]:
        """What is still to be listed; nothing where the listing is complete."""
        with self._transaction() as database:
            rows = database.execute("SELECT id, position, last FROM ranges").fetchall()
        return [UnlistedRange(number, _text(at), None if last is None else _text(last)) for number, at, last in rows]

    def add(self, number: int, first: str | None, batch: pa.RecordBatch, position: str) -> None:
        """Objects of a range that were listed, up to a key; `first` is the first of theirs, None for no object."""
        with self._transaction() as database:
            if first is not None:
                objects = _serialised(batch)
                database.execute("INSERT INTO batches VALUES (?, ?, ?)", (_bytes(first), objects, crc32(objects)))
            database.execute("UPDATE ranges SET position = ? WHERE id = ?", (_bytes(position), number))

    def finish(self, number: int) -> None:
        """A range has been listed to its end."""
        with self._transaction() as database:
            database.execute("DELETE FROM ranges WHERE id = ?", (number,))

    def divide(self, number: int, edge: str, last: str | None) -> int:
        """Ends a range with a key, and makes another of what follows. Returns the new range's number."""
        with self._transaction() as database:
            database.execute("UPDATE ranges SET last = ? WHERE id = ?", (_bytes(edge), number))
            values = (_bytes(edge), None if last is None else _bytes(last))
            made = database.execute("INSERT INTO ranges (position, last) VALUES (?, ?)", values)
            return int(made.lastrowid or 0)

    def batches(self) -> Iterator[pa.RecordBatch]:
        """What was listed, by ascending key."""
        with self._failing():
            for objects, crc in self._database.execute("SELECT objects, crc FROM batches ORDER BY first"):
                if crc32(objects) != crc:
                    raise ValueError("what was listed has changed")  # and might name objects that never were
                stream = pa.ipc.open_stream(objects)
                if stream.schema != LISTING_SCHEMA:
                    raise ValueError("what was listed has other columns")
                yield from stream

    def close(self) -> None:
        self._database.close()

    def remove(self) -> None:
        """Closes the file and removes it."""
        self._database.close()
        self._file.unlink(missing_ok=True)

    def _begin(self, store: str, now_ms: int) -> None:
        self._database.execute("BEGIN EXCLUSIVE")
        (application,) = self._database.execute("PRAGMA application_id").fetchone()
        (tables,) = self._database.execute("SELECT count(*) FROM sqlite_master").fetchone()
        if application == 0 and tables == 0:
            for statement in _SCHEMA:
                self._database.execute(statement)
            self._database.execute("INSERT INTO listing VALUES (?, ?)", (store, now_ms))
            self._database.execute("INSERT INTO ranges (position, last) VALUES (?, NULL)", (b"",))
        elif application != _APPLICATION_ID:
            raise sqlite3.DatabaseError("it is another program's database")
        else:
            (version,) = self._database.execute("PRAGMA user_version").fetchone()
            if version != _FORMAT:
                raise sqlite3.DatabaseError("another release of tieredctl wrote it")
        self._database.execute("COMMIT")

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._using, self._failing():
            self._database.execute("BEGIN")
            try:
                yield self._database
            except BaseException:
                self._database.execute("ROLLBACK")
                raise
            self._database.execute("COMMIT")

    @contextmanager
    def _failing(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            reason = getattr(error, "sqlite_errorcode", 0) & _PRIMARY_CODE
            if reason in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
                raise TieredctlError(ErrorCode.LOCKED, f"Another run uses {self._file}.") from None
            code = ErrorCode.UNWRITABLE if reason in _UNWRITABLE else ErrorCode.CHECKPOINT_UNUSABLE
            raise TieredctlError(code, f"{self._file} cannot be used: {error}.") from None
        except (pa.ArrowException, AttributeError, TypeError, ValueError) as error:
            raise TieredctlError(ErrorCode.CHECKPOINT_UNUSABLE, f"{self._file} is damaged: {error}.") from None


def _serialised(batch: pa.RecordBatch) -> pa.Buffer:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batch.schema, options=_OPTIONS) as writer:
        writer.write_batch(batch)
    return out.getvalue()


def _bytes(key: str) -> bytes:
    """A key such that SQLite's order is that of a listing."""
    return key.encode("utf-8", "surrogatepass")


def _text(key: bytes) -> str:
    return key.decode("utf-8", "surrogatepass")
