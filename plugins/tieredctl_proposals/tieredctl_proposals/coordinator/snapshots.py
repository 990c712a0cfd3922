"""Snapshots of the state, named by the offset they were taken at, and by what is in them.

KIP-1164, "Metadata log size management": once an offset is in a snapshot, the log before it can be pruned. From then on
the snapshot is all there is of it, so its name has the digest of its bytes, and the log is kept from the oldest of
several snapshots on: one that turns out damaged costs time, not state.
"""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
from contextlib import closing
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path

from tieredctl_proposals.coordinator.audit import demand_sound
from tieredctl_proposals.coordinator.durable_folders import make_folder, sync_folder
from tieredctl_proposals.coordinator.metadata_log import MetadataLog
from tieredctl_proposals.coordinator.schema import StateUnusable, connect, demand_schema, distrusted, next_offset

KEPT = 2
"""How many snapshots are kept."""
_NAME = re.compile(r"([0-9]{20})-([0-9a-f]{64})\.sqlite")
_UNFINISHED = "unfinished.sqlite"
_PAGES_AT_ONCE = 1_000
_SIDE_FILES = ("-wal", "-shm", "-journal")


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot of the state before an offset of the log."""

    file: Path
    next_offset: int
    sha256: str


def take_snapshot(state: Path, folder: Path, log: str) -> Snapshot:
    """Copies a state as it is now, while it goes on being written to; to be called by one thread at a time.

    The snapshot is checked before it gets its name. Raises StateUnusable where it cannot be trusted.
    """
    make_folder(folder)
    unfinished = folder / _UNFINISHED
    remove_database(unfinished)
    unfinished.touch(mode=0o600)
    with closing(connect(state, log)) as source, closing(sqlite3.connect(unfinished, isolation_level=None)) as target:
        source.execute("BEGIN")
        offset = next_offset(source)  # from here on the connection sees this moment, whatever is written meanwhile
        source.backup(target, pages=_PAGES_AT_ONCE)
        target.execute("PRAGMA journal_mode = DELETE")  # one file, no other beside it
        _demand_snapshot(target, log, offset)
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
        sha256 = file_digest(written, "sha256").hexdigest()
    named = folder / f"{offset:020d}-{sha256}.sqlite"
    unfinished.replace(named)
    sync_folder(folder)
    return Snapshot(named, offset, sha256)


def snapshots(folder: Path) -> list[Snapshot]:
    """The finished snapshots in a folder, newest first."""
    names = map(_NAME.fullmatch, sorted((file.name for file in folder.glob("*.sqlite")), reverse=True))
    return [Snapshot(folder / name[0], int(name[1]), name[2]) for name in names if name]


def check_snapshot(snapshot: Snapshot, log: str) -> None:
    """Raises StateUnusable unless a snapshot is what was written, sound, of this log and of this offset."""
    try:
        with snapshot.file.open("rb") as stored:
            sha256 = file_digest(stored, "sha256").hexdigest()
    except OSError as fault:
        raise StateUnusable(f"it cannot be read: {fault}") from None
    if sha256 != snapshot.sha256:
        raise StateUnusable("its bytes are not those that were written")
    with closing(sqlite3.connect(f"{snapshot.file.absolute().as_uri()}?mode=ro&immutable=1", uri=True)) as connection:
        _demand_snapshot(connection, log, snapshot.next_offset)


def restore_snapshot(snapshot: Snapshot, state: Path) -> None:
    """Puts a snapshot that was checked where the state is to be; nothing may be there. An interrupted copy leaves
    nothing there, either."""
    unfinished = state.with_name(f"{state.name}.unfinished")
    unfinished.touch(mode=0o600)
    shutil.copyfile(snapshot.file, unfinished)
    with unfinished.open("rb") as written:
        os.fsync(written.fileno())
    unfinished.replace(state)
    sync_folder(state.parent)


def prune(log: MetadataLog, folder: Path, kept: int = KEPT) -> int:
    """Removes snapshots but the newest that are sound, and the log before the oldest of these, if there are as many as
    are to be kept. Returns the log's first offset. Every snapshot that counts is read whole once more."""
    sound: list[Snapshot] = []
    for snapshot in snapshots(folder):
        if len(sound) == kept:
            snapshot.file.unlink()
        elif snapshot.next_offset <= log.high_watermark and _is_sound(snapshot, log.name):
            sound.append(snapshot)
    if len(sound) == kept and sound[-1].next_offset > log.start_offset:
        log.prune(sound[-1].next_offset)
    return log.start_offset


def remove_database(file: Path) -> None:
    """Removes a database, and the files that SQLite keeps beside it; none of them has to be there."""
    for name in (file.name, *(file.name + side for side in _SIDE_FILES)):
        file.with_name(name).unlink(missing_ok=True)


def _demand_snapshot(connection: sqlite3.Connection, log: str, offset: int) -> None:
    with distrusted():
        demand_schema(connection, log)
        if next_offset(connection) != offset:
            raise StateUnusable(f"it ends at {next_offset(connection)}, not at {offset}")
        demand_sound(connection)


def _is_sound(snapshot: Snapshot, log: str) -> bool:
    try:
        check_snapshot(snapshot, log)
    except StateUnusable:
        return False
    return True
