"""Tables in a folder: each run writes Parquet files, and names them in a manifest."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.wiring.places import MetadataPlace
from tieredctl_spark.ledger_rows import FolderRows
from tieredctl_spark.metadata_shares import Share
from tieredctl_spark.pipeline.events import append_events
from tieredctl_spark.pipeline.kept_rows import lost_rows, write_kept_rows
from tieredctl_spark.pipeline.run_tables import RunIdentity
from tieredctl_spark.pipeline.segments import Replayed, Replaying, replay_into_files
from tieredctl_spark.pipeline.upkeep import kept_events
from tieredctl_spark.tables.due import events_due
from tieredctl_spark.tables.files import file_rows
from tieredctl_spark.tables.kinds import EVENTS, SEGMENT_HISTORY, TABLES, TableKind
from tieredctl_spark.tables.manifest import DataFile, Manifest, TableState
from tieredctl_spark.tables.reading import files_frame
from tieredctl_spark.tables.table_store import commit, current, remove_leftovers
from tieredctl_spark.tables.writing import TableWriter


@dataclass(frozen=True, slots=True)
class FolderVersions:
    """The versions by manifests in a store."""

    store: WritableObjectStore
    ledger: Callable[[], WritableObjectStore]
    """Opens the folder of the verification ledger."""

    @property
    def url(self) -> str:
        return self.store.url

    def current(self) -> Manifest | None:
        return current(self.store)

    def readings(self, cluster_id: str | None) -> FolderRows:
        return FolderRows(SparkSession.active(), self.ledger(), cluster_id)

    def opened(self, before: Manifest | None, run: RunIdentity) -> FolderTables:
        return FolderTables(SparkSession.active(), self.store, before, run)

    def commit(self, manifest: Manifest) -> int:
        commit(self.store, manifest)
        return remove_leftovers(self.store, manifest)


class FolderTables:
    """`RunTables` of files: those of the version before, until they are replaced."""

    def __init__(
        self, session: SparkSession, store: WritableObjectStore, before: Manifest | None, run: RunIdentity
    ) -> None:
        self._session = session
        self._store = store
        self._run = run
        version = 1 if before is None else before.version + 1
        self._writer = TableWriter(store, version, run.run_id, run.cluster_id, run.day)
        states = {} if before is None else before.tables
        self._files: dict[str, tuple[DataFile, ...]] = {
            name: state.files for name, state in states.items() if isinstance(state, TableState)
        }

    def append_events(self, place: MetadataPlace, shares: Sequence[Share]) -> int | None:
        files = self._files.get(EVENTS.name, ())
        due = events_due(files, self._run.first_kept, self._run.now_ms)
        kept = kept_events(self._session, files, due, self._writer)
        appended = append_events(self._session, place, shares, self._writer)
        self._files[EVENTS.name] = (*kept, *appended.files)
        return appended.earliest_ms

    def replay(self, how: Replaying, *, is_whole: bool) -> Replayed:
        sums, files = replay_into_files(self._session, how, self._writer)
        history = self._frame(SEGMENT_HISTORY, files[SEGMENT_HISTORY.name], SEGMENT_HISTORY.columns.names)
        for name, written in files.items():
            before, kind, kept = self._files.get(name, ()), TABLES[name], list[DataFile]()
            if before and not is_whole:
                lost = lost_rows(kind, self._frame(kind, before, kind.columns.names), history)
                kept = write_kept_rows(kind, lost, self._writer)
            self._files[name] = (*written, *kept)
        return sums

    def rows(self, kind: TableKind, columns: Sequence[str]) -> DataFrame:
        return self._frame(kind, self._files[kind.name], columns)

    def known(self, kind: TableKind) -> pa.Table:
        return file_rows(self._store, kind, self._files.get(kind.name, ()))

    def replace(self, kind: TableKind, rows: pa.Table) -> None:
        kept = [one for one in self._files.get(kind.name, ()) if kind.by_day and one.day != self._run.day]
        self._files[kind.name] = (*kept, self._writer.write(kind, rows))

    def replace_days(self, kind: TableKind, first_day: str, rows: Mapping[str, pa.Table]) -> None:
        kept = [one for one in self._files.get(kind.name, ()) if one.day is not None and one.day < first_day]
        written = [self._writer.write(kind, some, day) for day, some in sorted(rows.items())]
        self._files[kind.name] = (*kept, *written)

    def states(self) -> Mapping[str, TableState]:
        for name, kind in TABLES.items():
            if not self._files.get(name):  # whoever looks for a table finds its columns
                self._files[name] = (self._writer.write(kind, kind.columns.empty_table()),)
        written = self._run.run_id, self._run.now_ms
        return {name: TableState(self._files[name], *written, kind.schema_version) for name, kind in TABLES.items()}

    def _frame(self, kind: TableKind, files: Sequence[DataFile], columns: Sequence[str]) -> DataFrame:
        return files_frame(self._session, self._store, kind, files, columns)
