"""Where a topic's history is kept: in files with a manifest, or in tables of a catalog. Tasks write files in both.
For a catalog, rows wait in them until it is known what became of all tasks; then they are removed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from tieredctl.ports.object_store import WritableObjectStore
from tieredctl_spark.catalogs.claimed_tables import ClaimedTables, WritingRun
from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.catalogs.runs import Ended, claim, current, head
from tieredctl_spark.catalogs.runs import commit as commit_run
from tieredctl_spark.tables.files import folder_files
from tieredctl_spark.tables.kinds import BACKFILL_TABLES
from tieredctl_spark.tables.manifest import BackfillManifest, DataFile, TableState
from tieredctl_spark.tables.reading import files_frame
from tieredctl_spark.tables.table_store import commit, newest, remove_leftovers


class HistoryTables(Protocol):
    """The tables, version by version."""

    @property
    def url(self) -> str: ...

    @property
    def files(self) -> WritableObjectStore:
        """Where tasks write."""
        ...

    def current(self) -> BackfillManifest | None:
        """The newest version; None where there is none."""
        ...

    def append(
        self, following: BackfillManifest, files: Mapping[str, Sequence[DataFile]], run: WritingRun
    ) -> BackfillManifest:
        """Makes the following version current, whose tables still are those of the one before: with the rows of new
        files of these. Raises TieredctlError `locked` where another run was faster."""
        ...


@dataclass(frozen=True, slots=True)
class FolderHistory:
    """`HistoryTables` of files."""

    files: WritableObjectStore

    @property
    def url(self) -> str:
        return self.files.url

    def current(self) -> BackfillManifest | None:
        return newest(self.files, BackfillManifest)

    def append(
        self, following: BackfillManifest, files: Mapping[str, Sequence[DataFile]], run: WritingRun
    ) -> BackfillManifest:
        states = {
            name: TableState(
                (*folder_files(following.tables, name), *files.get(name, ())),
                run.run_id,
                run.now_ms,
                kind.schema_version,
            )
            for name, kind in BACKFILL_TABLES.items()
        }
        made = replace(following, tables=states)
        commit(self.files, made)
        return made


@dataclass(frozen=True, slots=True)
class CatalogHistory:
    """`HistoryTables` of a catalog."""

    catalog: Catalog
    files: WritableObjectStore

    @property
    def url(self) -> str:
        return self.catalog.place.url

    def current(self) -> BackfillManifest | None:
        return current(self.catalog, BackfillManifest)

    def append(
        self, following: BackfillManifest, files: Mapping[str, Sequence[DataFile]], run: WritingRun
    ) -> BackfillManifest:
        claim(self.catalog, head(self.catalog), run.run_id, following.version - 1)
        tables = ClaimedTables(self.catalog, BACKFILL_TABLES, following.tables, run)
        for name, some in files.items():
            kind = BACKFILL_TABLES[name]
            rows = files_frame(self.catalog.session, self.files, kind, some, kind.columns.names)
            tables.append(kind, tables.of_run(kind, rows))
        made = replace(following, tables=tables.states())
        commit_run(self.catalog, made, Ended(run.cluster_id, run.now_ms, not made.lost_offsets, made.exit_code))
        remove_leftovers(self.files, made)
        return made
