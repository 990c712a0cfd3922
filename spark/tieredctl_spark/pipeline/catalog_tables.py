"""Tables in a catalog: each write is a commit of the format's own, and the run's row in `runs`, written last, makes
their versions current. What other runs left, because they died or lost their claim, is undone by the next one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.catalogs.runs import claim, commit, demand_claim, ended_runs, head
from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.ledger_rows import CatalogRows
from tieredctl_spark.metadata_shares import Share
from tieredctl_spark.pipeline.events import event_rows
from tieredctl_spark.pipeline.kept_rows import lost_rows
from tieredctl_spark.pipeline.run_tables import RunIdentity
from tieredctl_spark.pipeline.segments import Replayed, Replaying, replay_into_frames
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.tables.due import first_kept_day
from tieredctl_spark.tables.kinds import DAY, EVENTS, PROVENANCE, SEGMENT_HISTORY, TABLES, TableKind
from tieredctl_spark.tables.manifest import Manifest, SnapshotState, State


@dataclass(frozen=True, slots=True)
class CatalogVersions:
    """By the table `runs`."""

    catalog: Catalog

    @property
    def url(self) -> str:
        return self.catalog.place.url

    def current(self) -> Manifest | None:
        found = head(self.catalog)
        return None if found is None else found.manifest

    def readings(self) -> CatalogRows:
        rows = CatalogRows(self.catalog)
        rows.create()
        return rows

    def opened(self, before: Manifest | None, run: RunIdentity) -> CatalogTables:
        claim(self.catalog, head(self.catalog), run.run_id, 0 if before is None else before.version)
        return CatalogTables(self.catalog, before, run)

    def commit(self, manifest: Manifest) -> int:
        seen = head(self.catalog)
        if seen is not None and seen.claimed_by != manifest.run_id:  # without news, nothing was written
            claim(self.catalog, seen, manifest.run_id, manifest.version - 1)
        commit(self.catalog, manifest)
        return 0  # files are removed by the format's own procedure


class CatalogTables:
    """`RunTables` of a catalog."""

    def __init__(self, catalog: Catalog, before: Manifest | None, run: RunIdentity) -> None:
        """After the claim: whatever wrote rows that are not of `before` can never end, and they are undone."""
        self._catalog = catalog
        self._run = run
        self._before = {} if before is None else before.tables
        self._changed: set[str] = set()
        for kind in TABLES.values():
            catalog.create(kind.name, _schema(kind), [DAY] if kind.by_day else [])
        self._newest = {name: self._as_before(name, self._before.get(name)) for name in TABLES}

    def append_events(self, place: MetadataPlace, shares: Sequence[Share]) -> int | None:
        known = self._before.get(EVENTS.name)
        first_kept = first_kept_day(self._run.keep_events_ms, self._run.now_ms)
        if known is not None and known.first_day is not None and known.first_day < first_kept:
            old = f"{DAY} < DATE'{first_kept}'"
            self._write(EVENTS, lambda after: self._catalog.remove_rows(EVENTS.name, old, after))
        if not shares:
            return None
        rows = self._of_run(EVENTS, event_rows(self._catalog.session, place, shares), self._run.day)
        self._write(EVENTS, lambda after: self._catalog.append(EVENTS.name, rows, after))
        own = self._rows(EVENTS).where(fn.col("runId") == self._run.run_id)
        earliest: int | None = own.agg(fn.unix_millis(fn.min("eventTimestamp")).alias("ms")).collect()[0].ms
        return earliest

    def replay(self, how: Replaying, *, is_whole: bool) -> Replayed:
        sums, frames = replay_into_frames(self._catalog.session, how, kept_by_executors)
        for name, frame in frames.items():
            kind = TABLES[name]
            rows = frame
            if name in self._before and not is_whole:
                rows = frame.unionByName(lost_rows(kind, self._rows(kind), frames[SEGMENT_HISTORY.name]))
            self._overwrite(kind, self._of_run(kind, rows), fn.lit(True))
        return sums

    def rows(self, kind: TableKind, columns: Sequence[str]) -> DataFrame:
        return self._rows(kind).select(*columns)

    def known(self, kind: TableKind) -> pa.Table:
        return self._rows(kind).select(*kind.columns.names).toArrow().cast(kind.columns)

    def replace(self, kind: TableKind, rows: pa.Table) -> None:
        frame = self._catalog.session.createDataFrame(rows.select(kind.columns.names).cast(kind.columns))
        day = self._run.day if kind.by_day else None
        where = fn.lit(True) if day is None else fn.col(DAY) == _date(day)
        self._overwrite(kind, self._of_run(kind, frame, day), where)

    def replace_days(self, kind: TableKind, first_day: str, rows: Mapping[str, pa.Table]) -> None:
        session = self._catalog.session
        frames = [
            self._of_run(kind, session.createDataFrame(some.cast(kind.columns)), day)
            for day, some in sorted((rows or {first_day: kind.columns.empty_table()}).items())
        ]
        self._overwrite(kind, reduce(DataFrame.unionByName, frames), fn.col(DAY) >= _date(first_day))

    def states(self) -> Mapping[str, SnapshotState]:
        return {name: self._state(kind) for name, kind in TABLES.items()}

    def _state(self, kind: TableKind) -> SnapshotState:
        before, version = self._before.get(kind.name), self._newest[kind.name] or self._first_version(kind)
        stored = self._catalog.format.stored(self._catalog.session, self._catalog.full_name(kind.name))
        if isinstance(before, SnapshotState) and kind.name not in self._changed:
            # Only the newest outlives the formats' procedures, where files were put together since.
            return replace(before, snapshot=version, bytes=stored.bytes, file_count=stored.files)
        days = (fn.min(DAY).cast("string"), fn.max(DAY).cast("string")) if kind.by_day else (fn.lit(None), fn.lit(None))
        ((rows, first, last),) = self._catalog.frame(kind.name, version).agg(fn.count("*"), *days).collect()
        written = self._run.run_id, self._run.now_ms, kind.schema_version
        return SnapshotState(version, rows, stored.bytes, stored.files, first, last, *written)

    def _first_version(self, kind: TableKind) -> str:
        """Of a table that nothing was ever written to."""
        empty = self._catalog.session.createDataFrame(kind.columns.empty_table())
        rows = self._of_run(kind, empty, self._run.day if kind.by_day else None)
        version = self._catalog.append(kind.name, rows, None)
        assert version is not None
        return version

    def _rows(self, kind: TableKind) -> DataFrame:
        """Without those of runs that lost their claim while they wrote."""
        return self._catalog.frame(kind.name, self._newest[kind.name])

    def _as_before(self, name: str, before: State | None) -> str | None:
        """The newest version of a table, once its rows are those of the run before; none where none ended."""
        catalog, found = self._catalog, self._catalog.version(name)
        known = before if isinstance(before, SnapshotState) else None
        if found is None or (known is not None and known.snapshot == found):
            return found
        rows = {row.runId: row["count"] for row in catalog.frame(name, found).groupBy("runId").count().collect()}
        if sum(rows.values()) == (0 if known is None else known.rows) and rows.keys() <= ended_runs(catalog):
            return found  # its files were put together
        if known is None:
            return catalog.remove_rows(name, "TRUE", found)
        return catalog.restore(name, known.snapshot, found)

    def _overwrite(self, kind: TableKind, rows: DataFrame, where: Column) -> None:
        self._write(kind, lambda after: self._catalog.overwrite(kind.name, rows, where, after))

    def _write(self, kind: TableKind, write: Callable[[str | None], str | None]) -> None:
        demand_claim(self._catalog, self._run.run_id)
        self._newest[kind.name] = write(self._newest[kind.name])
        self._changed.add(kind.name)

    def _of_run(self, kind: TableKind, rows: DataFrame, day: str | None = None) -> DataFrame:
        own = {"clusterId": self._run.cluster_id, "runId": self._run.run_id, "schemaVersion": kind.schema_version}
        types = {field.name: field.dataType for field in spark_schema(PROVENANCE)}
        columns = {name: fn.lit(value).cast(types[name]) for name, value in own.items()}
        return rows.withColumns(columns if day is None else columns | {DAY: _date(day)})


def _schema(kind: TableKind) -> pa.Schema:
    days = [pa.field(DAY, pa.date32())] if kind.by_day else []
    return pa.schema([*kind.schema, *days])


def _date(day: str) -> Column:
    return fn.lit(date.fromisoformat(day))
