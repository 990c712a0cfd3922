"""Tables of a catalog while the run that claimed them writes: each write is a commit of the format's own. What other
runs left, because they died or lost their claim, is undone first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import date

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.catalogs.runs import demand_claim, ended_runs
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.tables.due import day_of
from tieredctl_spark.tables.kinds import DAY, PROVENANCE, TableKind
from tieredctl_spark.tables.manifest import SnapshotState, State


@dataclass(frozen=True, slots=True)
class WritingRun:
    """The run that writes, as its rows have it."""

    run_id: str
    cluster_id: str | None
    now_ms: int

    @property
    def day(self) -> str:
        """As YYYY-MM-DD in UTC."""
        return day_of(self.now_ms)


class ClaimedTables:
    """All tables of a run, and their versions. Rows are by a table's columns, with what `of_run` adds."""

    def __init__(
        self, catalog: Catalog, kinds: Mapping[str, TableKind], before: Mapping[str, State], run: WritingRun
    ) -> None:
        """After the claim: whatever wrote rows that are not of `before` can never end, and they are undone."""
        self.catalog = catalog
        self._kinds = kinds
        self._before = before
        self._run = run
        self._changed: set[str] = set()
        for kind in kinds.values():
            catalog.create(kind.name, _schema(kind), [DAY] if kind.by_day else [])
        self._newest = {name: self._as_before(name, before.get(name)) for name in kinds}

    def rows(self, kind: TableKind) -> DataFrame:
        """Those of a table as it is now, without those of runs that lost their claim while they wrote."""
        return self.catalog.frame(kind.name, self._newest[kind.name])

    def append(self, kind: TableKind, rows: DataFrame) -> None:
        """Raises TieredctlError `locked`, as all writes do, where this run lost its claim."""
        self._write(kind, lambda after: self.catalog.append(kind.name, rows, after))

    def overwrite(self, kind: TableKind, rows: DataFrame, where: Column) -> None:
        """Appends rows in one commit with the removal of what is there `where`."""
        self._write(kind, lambda after: self.catalog.overwrite(kind.name, rows, where, after))

    def remove_rows(self, kind: TableKind, where: str) -> None:
        self._write(kind, lambda after: self.catalog.remove_rows(kind.name, where, after))

    def of_run(self, kind: TableKind, rows: DataFrame, day: str | None = None) -> DataFrame:
        """Rows with what says which run wrote them, and in a table by day on which one."""
        own = {"clusterId": self._run.cluster_id, "runId": self._run.run_id, "schemaVersion": kind.schema_version}
        types = {field.name: field.dataType for field in spark_schema(PROVENANCE)}
        columns = {name: fn.lit(value).cast(types[name]) for name, value in own.items()}
        return rows.withColumns(columns if day is None else columns | {DAY: date_column(day)})

    def states(self) -> Mapping[str, SnapshotState]:
        """What the new version has."""
        return {name: self._state(kind) for name, kind in self._kinds.items()}

    def _state(self, kind: TableKind) -> SnapshotState:
        before, version = self._before.get(kind.name), self._newest[kind.name] or self._first_version(kind)
        stored = self.catalog.format.stored(self.catalog.session, self.catalog.full_name(kind.name))
        if isinstance(before, SnapshotState) and kind.name not in self._changed:
            # Only the newest outlives the formats' procedures, where files were put together since.
            return replace(before, snapshot=version, bytes=stored.bytes, file_count=stored.files)
        days = (fn.min(DAY).cast("string"), fn.max(DAY).cast("string")) if kind.by_day else (fn.lit(None), fn.lit(None))
        ((rows, first, last),) = self.catalog.frame(kind.name, version).agg(fn.count("*"), *days).collect()
        written = self._run.run_id, self._run.now_ms, kind.schema_version
        return SnapshotState(version, rows, stored.bytes, stored.files, first, last, *written)

    def _first_version(self, kind: TableKind) -> str:
        """The first version of a table that nothing was ever written to."""
        empty = self.catalog.session.createDataFrame(kind.columns.empty_table())
        rows = self.of_run(kind, empty, self._run.day if kind.by_day else None)
        version = self.catalog.append(kind.name, rows, None)
        assert version is not None
        return version

    def _as_before(self, name: str, before: State | None) -> str | None:
        """The newest version of a table, once its rows are those of the run before; none where none ended."""
        catalog, found = self.catalog, self.catalog.version(name)
        known = before if isinstance(before, SnapshotState) else None
        if found is None or (known is not None and known.snapshot == found):
            return found
        rows = {row.runId: row["count"] for row in catalog.frame(name, found).groupBy("runId").count().collect()}
        if sum(rows.values()) == (0 if known is None else known.rows) and rows.keys() <= ended_runs(catalog):
            return found  # its files were put together
        if known is None:
            return catalog.remove_rows(name, "TRUE", found)
        return catalog.restore(name, known.snapshot, found)

    def _write(self, kind: TableKind, write: Callable[[str | None], str | None]) -> None:
        demand_claim(self.catalog, self._run.run_id)
        self._newest[kind.name] = write(self._newest[kind.name])
        self._changed.add(kind.name)


def date_column(day: str) -> Column:
    """YYYY-MM-DD as tables by day have it."""
    return fn.lit(date.fromisoformat(day))


def _schema(kind: TableKind) -> pa.Schema:
    days = [pa.field(DAY, pa.date32())] if kind.by_day else []
    return pa.schema([*kind.schema, *days])
