"""Whether a state is one that records can have made: before it is trusted, and before the log that made it goes."""

from __future__ import annotations

import sqlite3

from tieredctl_proposals.coordinator.schema import StateUnusable

_BROKEN_RUNS = """
    SELECT count(*) FROM (
        SELECT base_offset, last_offset, lag(last_offset) OVER (PARTITION BY partition ORDER BY last_offset) AS before
        FROM batches)
    WHERE base_offset > last_offset OR base_offset != before + 1"""
_BROKEN_ENDS = """
    SELECT count(*) FROM partitions LEFT JOIN (
        SELECT partition AS id, min(base_offset) AS base, max(last_offset) AS last FROM batches GROUP BY partition)
    USING (id)
    WHERE log_start_offset > high_watermark OR ifnull(last + 1, log_start_offset) != high_watermark
        OR base > log_start_offset"""
_STRAY_BATCHES = """
    SELECT count(*) FROM (SELECT DISTINCT partition FROM batches) WHERE partition NOT IN (SELECT id FROM partitions)"""
_STRAY_PRODUCERS = _STRAY_BATCHES.replace("batches", "producer_batches")
_FILES = "SELECT count(*) FROM files WHERE live_batches < 0 OR (live_batches = 0) != (released_ms IS NOT NULL)"
_STRAY_FILES = "SELECT count(*) FROM (SELECT DISTINCT file FROM batches) WHERE file NOT IN (SELECT id FROM files)"
_LIVE = """
    SELECT count(*) FROM files LEFT JOIN (SELECT file AS id, count(*) AS number FROM batches GROUP BY file) USING (id)
    WHERE live_batches != ifnull(number, 0)"""
_CHECKS = {
    _STRAY_BATCHES: "batches are of no partition",
    _STRAY_PRODUCERS: "producers are of no partition",
    _BROKEN_RUNS: "batches do not follow one another",
    _BROKEN_ENDS: "partitions do not begin and end with their batches",
    _FILES: "files are neither live nor released",
    _STRAY_FILES: "batches are of no file",
    _LIVE: "files have other batches than they count",
}


_TABLE_NAMES = ("applied", "partitions", "files", "batches", "producer_batches")


def demand_whole(connection: sqlite3.Connection) -> None:
    """Raises StateUnusable for pages that SQLite finds damaged."""
    answers = [text for (text,) in connection.execute("PRAGMA quick_check(1)")]
    if answers != ["ok"]:
        raise StateUnusable(f"it is damaged: {answers[0]}")


def demand_sound(connection: sqlite3.Connection) -> None:
    """Raises StateUnusable for a state that contradicts itself, too."""
    demand_whole(connection)
    for table in _TABLE_NAMES:
        if connection.execute(_mistyped(connection, table)).fetchone() is not None:
            raise StateUnusable(f"{table} have values of other types")
    for check, fault in _CHECKS.items():
        (number,) = connection.execute(check).fetchone()
        if number:
            raise StateUnusable(f"{fault} ({number})")


def _mistyped(connection: sqlite3.Connection, table: str) -> str:
    """A query for a row with a value that is not of its column's type: SQLite stores any in any."""
    wrong = []
    for _, name, declared, is_demanded, _, is_key in connection.execute(f"PRAGMA table_info({table})"):
        types = [declared.lower()] if is_demanded or is_key else [declared.lower(), "null"]
        wrong.append(f"typeof({name}) NOT IN ({', '.join(map(repr, types))})")
    return f"SELECT 1 FROM {table} WHERE {' OR '.join(wrong)} LIMIT 1"
