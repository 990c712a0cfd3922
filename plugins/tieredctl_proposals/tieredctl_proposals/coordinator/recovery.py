"""Opens the state of a log: what is there if it can be trusted, else a snapshot, else nothing; and the log after it."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

from tieredctl_proposals.coordinator.apply import Applier, DoesNotFit, digest
from tieredctl_proposals.coordinator.audit import demand_whole
from tieredctl_proposals.coordinator.metadata_log import MetadataLog
from tieredctl_proposals.coordinator.schema import StateUnusable, connect, create_state, distrusted, next_offset
from tieredctl_proposals.coordinator.snapshots import (
    Snapshot,
    check_snapshot,
    remove_database,
    restore_snapshot,
    snapshots,
)

Source = Callable[[Path, MetadataLog], sqlite3.Connection | None]
"""Opens a state in a file, or makes it there; None where it has none."""


class StateAhead(Exception):
    """The state has applied more than the log is known to have: it is the wrong log, or one that lost records, or its
    high watermark is still to come. Nothing was changed."""


class Unrecoverable(Exception):
    """Neither state, nor snapshot, nor the log from its beginning lead to a state; the text says why."""


class Origin(Enum):
    """What a state was made of, and the log after it."""

    OWN_STATE = "own state"
    SNAPSHOT = "snapshot"
    WHOLE_LOG = "whole log"


@dataclass(frozen=True)
class Recovered:
    """A state to which the whole log was applied, up to its high watermark."""

    connection: sqlite3.Connection
    origin: Origin
    began_at: int
    """The offset that the state, or the snapshot, had before the log was applied to it."""
    refused: tuple[str, ...]
    """Why what there was could not be used: first the state, then snapshots from the newest on."""


def recover(file: Path, log: MetadataLog, snapshot_folder: Path) -> Recovered:
    """Opens the state of a log in a file, or makes it again.

    A file that cannot be trusted is set aside, under its own name with `.refused` added. Raises StateAhead and
    Unrecoverable.
    """
    refused: list[str] = []
    sources: list[tuple[Origin, Source]] = [
        (Origin.OWN_STATE, _what_is_there),
        *((Origin.SNAPSHOT, _from_snapshot(snapshot)) for snapshot in snapshots(snapshot_folder)),
        (Origin.WHOLE_LOG, _from_nothing),
    ]
    for origin, source in sources:
        try:
            with distrusted():
                connection = source(file, log)
                if connection is not None:
                    began_at = next_offset(connection)
                    _catch_up(connection, log)
                    return Recovered(connection, origin, began_at, tuple(refused))
        except (StateUnusable, DoesNotFit) as fault:
            refused.append(str(fault))
            if source is _what_is_there:
                _set_aside(file)
            else:
                remove_database(file)
    reasons = "; ".join([*refused, f"the log begins at offset {log.start_offset}"])
    raise Unrecoverable(f"the state of {log.name} cannot be made: {reasons}")


def _what_is_there(file: Path, log: MetadataLog) -> sqlite3.Connection | None:
    if not file.exists():
        remove_database(file)  # what SQLite kept beside a file that is gone would be taken for the new one's
        return None
    connection = connect(file, log.name)
    try:
        demand_whole(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def _from_snapshot(snapshot: Snapshot) -> Source:
    def restored(file: Path, log: MetadataLog) -> sqlite3.Connection:
        if snapshot.next_offset > log.high_watermark:
            raise StateUnusable(f"snapshot {snapshot.next_offset} is ahead of the log")
        check_snapshot(snapshot, log.name)
        restore_snapshot(snapshot, file)
        return connect(file, log.name)

    return restored


def _from_nothing(file: Path, log: MetadataLog) -> sqlite3.Connection | None:
    return create_state(file, log.name) if log.start_offset == 0 else None


def _catch_up(connection: sqlite3.Connection, log: MetadataLog) -> None:
    try:
        _demand_same_log(connection, log)
        applier = Applier(connection)
        applier.catch_up(log.read(applier.next_offset))
    except BaseException:
        connection.close()
        raise


def _demand_same_log(connection: sqlite3.Connection, log: MetadataLog) -> None:
    offset = next_offset(connection)
    if offset > log.high_watermark:
        raise StateAhead(f"the state ends at offset {offset}, and the log is known up to {log.high_watermark}")
    if offset < log.start_offset:
        raise StateUnusable(f"it ends at offset {offset}, and the log begins at {log.start_offset}")
    if offset > log.start_offset:
        (last,) = connection.execute("SELECT last_record FROM applied").fetchone()
        if last != digest(next(log.read(offset - 1)).record):
            raise StateUnusable(f"it has another record than the log before offset {offset}")


def _set_aside(file: Path) -> None:
    aside = file.with_name(f"{file.name}.refused")
    remove_database(aside)
    file.replace(aside)
    remove_database(file)
