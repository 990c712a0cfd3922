"""The table `runs` of a catalog: a row for each version that runs made, which makes those of all other tables current.

A run first claims the newest row, by a conditional update, and writes after that; it ends with a conditional merge that
adds the next row only while the claim is its own. Formats let one of several such commits succeed. A run that lost its
claim, because it was taken for dead, can never make anything current.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.tables.manifest import AnyManifest, SnapshotState

RUNS = "runs"
NO_RUN = 0
_CREATED = """
CREATE TABLE {table} USING {format} TBLPROPERTIES ({properties}) AS SELECT CAST({no_run} AS BIGINT) AS version,
    '' AS runId, '' AS parentRunId, CAST(NULL AS STRING) AS clusterId, CAST(NULL AS TIMESTAMP) AS looked,
    CAST(NULL AS BOOLEAN) AS complete, CAST(NULL AS INT) AS exitCode, CAST(map() AS MAP<STRING, STRING>) AS snapshots,
    '' AS claimedBy, '' AS document
"""
_COMMITTED = """
MERGE INTO {table} t USING (
    SELECT IF(isNext, version + 1, version) AS version, version AS claimed, isNext
    FROM {table} CROSS JOIN (SELECT explode(array(true, false)) AS isNext)
    WHERE version = {claimed} AND claimedBy = {run_id}
) s ON t.version = s.version
WHEN MATCHED THEN UPDATE SET claimedBy = NULL
WHEN NOT MATCHED THEN INSERT
    (version, runId, parentRunId, clusterId, looked, complete, exitCode, snapshots, claimedBy, document)
    VALUES (s.version, {run_id}, {parent}, {cluster}, timestamp_millis({looked_ms}), {complete}, {exit_code},
            {snapshots}, '', {document})
"""


_Made = TypeVar("_Made", bound=AnyManifest)


@dataclass(frozen=True, slots=True)
class Head:
    """The newest row."""

    version: int
    claimed_by: str
    run_id: str
    document: str
    """A manifest; empty, as `run_id` is, where no run ended."""


class Ended(NamedTuple):
    """What the row of a run says besides its tables."""

    cluster_id: str | None
    at_ms: int
    complete: bool
    exit_code: int


def current(catalog: Catalog, form: type[_Made]) -> _Made | None:
    """The newest version by manifests of this form; None where no run ended."""
    found = head(catalog)
    if found is None or not found.document:
        return None
    return form.read(found.document.encode(), f"{catalog.full_name(RUNS)}, version {found.version},")


def head(catalog: Catalog) -> Head | None:
    """None where no run began. Raises TieredctlError `undecodable` where there is no row."""
    if not catalog.has(RUNS):
        return None
    table = catalog.full_name(RUNS)
    newest = catalog.frame(RUNS).orderBy("version", ascending=False).limit(1)
    rows = newest.select("version", "claimedBy", "runId", "document").collect()
    if not rows:
        hint = f"`DROP TABLE {table}`; the next run then writes all tables anew."
        raise TieredctlError(ErrorCode.UNDECODABLE, f"{table} has no row, which each run leaves there.", hint=hint)
    (row,) = rows
    return Head(row.version, row.claimedBy, row.runId, row.document)


def ended_runs(catalog: Catalog) -> set[str]:
    """Their ids."""
    return {row.runId for row in catalog.frame(RUNS).select("runId").collect()}


def claim(catalog: Catalog, seen: Head | None, run_id: str, version: int) -> None:
    """Makes the newest row this run's, if it is still as it was seen and has a version; the run that had claimed it can
    never end. Raises TieredctlError `locked`."""
    table = catalog.full_name(RUNS)
    if seen is None:
        catalog.create_namespace()
        own = {"format": catalog.format.name, "properties": catalog.format.properties}
        _try(catalog, lambda: catalog.session.sql(_CREATED.format(table=table, no_run=NO_RUN, **own)), run_id, None)
        seen = Head(NO_RUN, "", "", "")
    if seen.version != version:
        raise _lost(catalog)
    condition = f"version = {seen.version} AND claimedBy = {_text(seen.claimed_by)}"
    update = f"UPDATE {table} SET claimedBy = {_text(run_id)} WHERE {condition}"
    _try(catalog, lambda: catalog.session.sql(update), run_id, seen)
    demand_claim(catalog, run_id)


def demand_claim(catalog: Catalog, run_id: str) -> None:
    """Raises TieredctlError `locked` where another run claimed the row meanwhile."""
    now = head(catalog)
    if now is None or now.claimed_by != run_id:
        raise _lost(catalog)


def commit(catalog: Catalog, manifest: AnyManifest, ended: Ended) -> None:
    """Makes a version current. Raises TieredctlError `locked` where this run lost its claim."""
    states = {name: state for name, state in manifest.tables.items() if isinstance(state, SnapshotState)}
    pairs = ", ".join(f"{_text(name)}, {_text(state.snapshot)}" for name, state in sorted(states.items()))
    merge = _COMMITTED.format(
        table=catalog.full_name(RUNS),
        claimed=manifest.version - 1,
        run_id=_text(manifest.run_id),
        parent=_text(manifest.parent_run_id),
        cluster="CAST(NULL AS STRING)" if ended.cluster_id is None else _text(ended.cluster_id),
        looked_ms=ended.at_ms,
        complete=str(ended.complete),
        exit_code=ended.exit_code,
        snapshots=f"map({pairs})",
        document=_text(manifest.to_bytes().decode()),
    )
    _try(catalog, lambda: catalog.session.sql(merge), manifest.run_id, None)
    now = head(catalog)
    if now is None or (now.version, now.run_id) != (manifest.version, manifest.run_id):
        raise _lost(catalog)


def _lost(catalog: Catalog) -> TieredctlError:
    message = f"Another run began with the tables in {catalog.place.url} meanwhile; this one made none current."
    hint = "Begin the next one once the other one has ended."
    return TieredctlError(ErrorCode.LOCKED, message, hint=hint)


def _try(catalog: Catalog, change: Callable[[], object], run_id: str, seen: Head | None) -> None:
    """What a format refuses because of another commit is a lost claim; anything else, which leaves the newest row as it
    was `seen` or as this run's, is raised. Whether the change is there, callers look."""
    try:
        change()
    except (PySparkException, Py4JError):
        now = head(catalog)
        if now is None or now == seen or now.claimed_by == run_id:
            raise
        if now.run_id == run_id:
            return  # perhaps only the answer was lost
        raise _lost(catalog) from None


def _text(value: str) -> str:
    """A literal of Spark's SQL."""
    quoted = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{quoted}'"
