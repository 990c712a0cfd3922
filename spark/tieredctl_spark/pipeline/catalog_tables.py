"""The pipeline's tables in a catalog: the run's row in `runs`, written last, makes their versions current."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as fn

from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.catalogs.claimed_tables import ClaimedTables, date_column
from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.catalogs.runs import Ended, claim, commit, current, head
from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.ledger_rows import CatalogRows
from tieredctl_spark.metadata_shares import Share
from tieredctl_spark.pipeline.events import event_rows
from tieredctl_spark.pipeline.kept_rows import lost_rows
from tieredctl_spark.pipeline.run_tables import RunIdentity
from tieredctl_spark.pipeline.segments import Replayed, Replaying, replay_into_frames
from tieredctl_spark.tables.kinds import DAY, EVENTS, SEGMENT_HISTORY, TABLES, TableKind
from tieredctl_spark.tables.manifest import Manifest, SnapshotState


@dataclass(frozen=True, slots=True)
class CatalogVersions:
    """The versions by the table `runs`."""

    catalog: Catalog

    @property
    def url(self) -> str:
        return self.catalog.place.url

    def current(self) -> Manifest | None:
        return current(self.catalog, Manifest)

    def readings(self, cluster_id: str | None) -> CatalogRows:
        rows = CatalogRows(self.catalog, cluster_id)
        rows.create()
        return rows

    def opened(self, before: Manifest | None, run: RunIdentity) -> CatalogTables:
        claim(self.catalog, head(self.catalog), run.run_id, 0 if before is None else before.version)
        return CatalogTables(self.catalog, before, run)

    def commit(self, manifest: Manifest) -> int:
        seen, looked = head(self.catalog), manifest.looked
        if seen is not None and seen.claimed_by != manifest.run_id:  # without news, nothing was written
            claim(self.catalog, seen, manifest.run_id, manifest.version - 1)
        commit(
            self.catalog,
            manifest,
            Ended(looked.cluster_id, manifest.looked_ms, looked.complete, looked.exit_code),
        )
        return 0  # files are removed by the format's own procedure


class CatalogTables:
    """`RunTables` of a catalog."""

    def __init__(self, catalog: Catalog, before: Manifest | None, run: RunIdentity) -> None:
        self._session = catalog.session
        self._run = run
        self._before = {} if before is None else before.tables
        self._tables = ClaimedTables(catalog, TABLES, self._before, run)

    def append_events(self, place: MetadataPlace, shares: Sequence[Share]) -> int | None:
        known, tables = self._before.get(EVENTS.name), self._tables
        first_kept = self._run.first_kept
        if known is not None and known.first_day is not None and known.first_day < first_kept:
            tables.remove_rows(EVENTS, f"{DAY} < DATE'{first_kept}'")
        if not shares:
            return None
        tables.append(EVENTS, tables.of_run(EVENTS, event_rows(self._session, place, shares), self._run.day))
        own = tables.rows(EVENTS).where(fn.col("runId") == self._run.run_id)
        earliest: int | None = own.agg(fn.unix_millis(fn.min("eventTimestamp")).alias("ms")).collect()[0].ms
        return earliest

    def replay(self, how: Replaying, *, is_whole: bool) -> Replayed:
        sums, frames = replay_into_frames(self._session, how, kept_by_executors)
        for name, frame in frames.items():
            kind = TABLES[name]
            rows = frame
            if name in self._before and not is_whole:
                rows = frame.unionByName(lost_rows(kind, self._tables.rows(kind), frames[SEGMENT_HISTORY.name]))
            self._tables.overwrite(kind, self._tables.of_run(kind, rows), fn.lit(True))
        return sums

    def rows(self, kind: TableKind, columns: Sequence[str]) -> DataFrame:
        return self._tables.rows(kind).select(*columns)

    def known(self, kind: TableKind) -> pa.Table:
        return self._tables.rows(kind).select(*kind.columns.names).toArrow().cast(kind.columns)

    def replace(self, kind: TableKind, rows: pa.Table) -> None:
        frame = self._session.createDataFrame(rows.select(kind.columns.names).cast(kind.columns))
        day = self._run.day if kind.by_day else None
        where = fn.lit(True) if day is None else fn.col(DAY) == date_column(day)
        self._tables.overwrite(kind, self._tables.of_run(kind, frame, day), where)

    def replace_days(self, kind: TableKind, first_day: str, rows: Mapping[str, pa.Table]) -> None:
        frames = [
            self._tables.of_run(kind, self._session.createDataFrame(some.cast(kind.columns)), day)
            for day, some in sorted((rows or {first_day: kind.columns.empty_table()}).items())
        ]
        self._tables.overwrite(kind, reduce(DataFrame.unionByName, frames), fn.col(DAY) >= date_column(first_day))

    def states(self) -> Mapping[str, SnapshotState]:
        return self._tables.states()
