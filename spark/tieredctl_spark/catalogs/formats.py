"""Iceberg and Delta: what each has its own words for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class TableVersion:
    """A state of a table, and the one that it came from; None before the first."""

    name: str
    parent: str | None


@dataclass(frozen=True, slots=True)
class StoredFiles:
    """What a table's newest version consists of."""

    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class OldVersions:
    """Versions of a table that its own procedure may remove."""

    count: int
    oldest: datetime


@dataclass(frozen=True, slots=True)
class TableFormat:
    """One of the formats. Functions take a session and the full name of a table."""

    name: str
    """As `USING` takes it."""
    catalogs: tuple[str, ...]
    """How names of classes begin that catalogs of such tables have."""
    properties: str
    """The properties of new tables, for `TBLPROPERTIES`."""
    expiry: str
    """The procedure that removes old versions, with {catalog} and {table}."""
    restoring: str
    """The statement that makes the rows of a version the newest again, with {version} too."""
    version: Callable[[SparkSession, str], TableVersion | None]
    """The newest; None where nothing was written yet."""
    stored: Callable[[SparkSession, str], StoredFiles]
    old_versions: Callable[[SparkSession, str, datetime], OldVersions | None]
    """Those of before a moment that were not removed since; the newest is none of them."""


def _iceberg_version(session: SparkSession, table: str) -> TableVersion | None:
    # The reference, not the newest of all snapshots: a table may have been rolled back.
    found = session.sql(
        f"SELECT r.snapshot_id, s.parent_id FROM {table}.refs r JOIN {table}.snapshots s USING (snapshot_id)"
        " WHERE r.name = 'main'"
    ).collect()
    parents = [None if row.parent_id is None else str(row.parent_id) for row in found]
    return TableVersion(str(found[0].snapshot_id), parents[0]) if found else None


def _iceberg_stored(session: SparkSession, table: str) -> StoredFiles:
    (row,) = session.sql(f"SELECT count(*) n, coalesce(sum(file_size_in_bytes), 0) b FROM {table}.files").collect()
    return StoredFiles(row.n, row.b)


def _iceberg_old(session: SparkSession, table: str, before: datetime) -> OldVersions | None:
    moment = f"TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}+00:00'"
    return _old(
        session,
        f"SELECT committed_at AS t FROM {table}.snapshots WHERE committed_at < {moment}"
        f" AND snapshot_id NOT IN (SELECT snapshot_id FROM {table}.refs)",
    )


def _delta_version(session: SparkSession, table: str) -> TableVersion | None:
    (row,) = session.sql(f"DESCRIBE HISTORY {table} LIMIT 1").select("version").collect()
    return TableVersion(str(row.version), str(row.version - 1) if row.version else None)


def _delta_stored(session: SparkSession, table: str) -> StoredFiles:
    (row,) = session.sql(f"DESCRIBE DETAIL {table}").select("numFiles", "sizeInBytes").collect()
    return StoredFiles(row.numFiles, row.sizeInBytes)


def _delta_old(session: SparkSession, table: str, before: datetime) -> OldVersions | None:
    """Its log keeps names of versions whose files VACUUM removed: those that none ran after."""
    history = session.sql(f"DESCRIBE HISTORY {table}").select("version", "operation", "timestamp")
    history.createOrReplaceTempView("tieredctl_history")
    moment = f"TIMESTAMP '{before:%Y-%m-%d %H:%M:%S}+00:00'"
    vacuumed = "(SELECT max(timestamp) FROM tieredctl_history WHERE operation = 'VACUUM END')"
    return _old(
        session,
        f"SELECT timestamp AS t FROM tieredctl_history WHERE timestamp < {moment}"
        f" AND version < (SELECT max(version) FROM tieredctl_history WHERE operation NOT LIKE 'VACUUM%')"
        f" AND operation NOT LIKE 'VACUUM%' AND timestamp > coalesce({vacuumed}, TIMESTAMP '1970-01-01 00:00:00Z')",
    )


def _old(session: SparkSession, times: str) -> OldVersions | None:
    (row,) = session.sql(f"SELECT count(*) AS n, min(t) AS oldest FROM ({times})").collect()
    return OldVersions(row.n, row.oldest) if row.n else None


ICEBERG = TableFormat(
    "iceberg",
    ("org.apache.iceberg.",),
    # All events of a run are of one day: sorting tasks by day would leave one task to write them.
    "'write.distribution-mode' = 'none', 'write.spark.fanout.enabled' = 'true'",
    "CALL {catalog}.system.expire_snapshots(table => '{table}')",
    "CALL {catalog}.system.rollback_to_snapshot(table => '{table}', snapshot_id => {version})",
    _iceberg_version,
    _iceberg_stored,
    _iceberg_old,
)
DELTA = TableFormat(
    "delta",
    ("org.apache.spark.sql.delta.", "io.unitycatalog."),
    "'delta.appendOnly' = 'false'",
    "VACUUM {catalog}.{table}",
    "RESTORE TABLE {catalog}.{table} TO VERSION AS OF {version}",
    _delta_version,
    _delta_stored,
    _delta_old,
)
FORMATS = (ICEBERG, DELTA)
