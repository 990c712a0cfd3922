"""Tables of a catalog as one run left all of them.

`read_catalog_table(spark, "lake.tiered", "segments").groupBy("topic").sum("segmentSizeInBytes")`
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.documents import Document
from tieredctl_spark.catalogs.place import Catalog, CatalogPlace
from tieredctl_spark.catalogs.runs import RUNS, current, head
from tieredctl_spark.tables.due import due_documents
from tieredctl_spark.tables.files import kind_named
from tieredctl_spark.tables.kinds import DAY, LEDGER_TABLES, TABLES, TableKind
from tieredctl_spark.tables.manifest import Manifest, SnapshotState, State, tables_in

_KEPT_DAYS = 7
"""Versions that are older are due for removal: what Delta keeps, and two days more than Iceberg does."""


@dataclass(frozen=True, slots=True)
class CurrentTables:
    """`ReadableTables` of a catalog."""

    catalog: Catalog
    manifest: Manifest

    @classmethod
    def opened(cls, catalog: Catalog) -> CurrentTables:
        """Raises TieredctlError `path-missing` where no run ended."""
        found = current(catalog, Manifest)
        if found is None:
            raise _no_tables(catalog)
        return cls(catalog, found)

    def newest(self, kind: TableKind, days: int) -> pa.Table:
        frame = _frame(self.catalog, self.manifest.tables, kind)
        if kind.by_day:
            frame = frame.withColumn(DAY, fn.col(DAY).cast("string"))
            shown = frame.select(DAY).distinct().orderBy(DAY, ascending=False).limit(days)
            frame = frame.join(shown, DAY, "left_semi")
        return frame.select(*kind.read_schema.names).toArrow().cast(kind.read_schema)

    def due(self, now_ms: int) -> list[Document]:
        found, own = due_documents(self.manifest, now_ms), self.catalog.format
        before = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=_KEPT_DAYS)
        ledger = filter(self.catalog.has, LEDGER_TABLES)
        for name in (RUNS, *TABLES, *ledger):
            old = own.old_versions(self.catalog.session, self.catalog.full_name(name), before)
            if old is not None:
                why = f"{name} has {counted(old.count, 'version')} of more than {_KEPT_DAYS} days"
                command = self.catalog.own_statement(own.expiry, name)
                found.append({"task": "expiry", "why": why, "command": command})
        return found


def read_catalog_table(session: SparkSession, catalog: str, name: str) -> DataFrame:
    """A pipeline's or a backfill's table as the last run left it, though another one may be writing to it; a ledger's
    as it is now. Raises TieredctlError `path-missing` where no run ended."""
    opened = CatalogPlace.given(catalog).open(session)
    if name in LEDGER_TABLES and opened.has(name):
        return opened.frame(name, None)
    found = head(opened)
    if found is None or not found.document:
        raise _no_tables(opened)
    return _frame(opened, tables_in(found.document.encode(), opened.full_name(RUNS)), kind_named(name))


def _frame(catalog: Catalog, tables: Mapping[str, State], kind: TableKind) -> DataFrame:
    state = tables.get(kind.name)
    if not isinstance(state, SnapshotState):
        message, hint = f"There is no table {kind.name} in {catalog.place.url}.", f"There are {', '.join(tables)}."
        raise TieredctlError(ErrorCode.PATH_MISSING, message, hint=hint)
    return catalog.frame(kind.name, state.snapshot)


def _no_tables(catalog: Catalog) -> TieredctlError:
    hint = "Write them with `tieredctl pipeline run --catalog`, or with the job backfill."
    return TieredctlError(ErrorCode.PATH_MISSING, f"There are no tables in {catalog.place.url}.", hint=hint)
