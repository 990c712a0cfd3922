"""Tables of a catalog as one run left all of them.

`read_catalog_table(spark, "lake.tiered", "segments").groupBy("topic").sum("segmentSizeInBytes")`
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.documents import Document
from tieredctl_spark.catalogs.place import Catalog, CatalogPlace
from tieredctl_spark.catalogs.runs import RUNS, head
from tieredctl_spark.tables.due import due_documents
from tieredctl_spark.tables.files import kind_named
from tieredctl_spark.tables.kinds import DAY, TABLES, TableKind
from tieredctl_spark.tables.manifest import Manifest, SnapshotState

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
        found = head(catalog)
        if found is None or found.manifest is None:
            hint = "Write them with `tieredctl pipeline run --catalog`."
            raise TieredctlError(ErrorCode.PATH_MISSING, f"There are no tables in {catalog.place.url}.", hint=hint)
        return cls(catalog, found.manifest)

    def frame(self, name: str) -> DataFrame:
        """A table as the last run left it, though another one may be writing to it."""
        state = self.manifest.tables[name]
        return self.catalog.frame(name, state.snapshot if isinstance(state, SnapshotState) else None)

    def newest(self, kind: TableKind, days: int) -> pa.Table:
        frame = self.frame(kind.name)
        if kind.by_day:
            frame = frame.withColumn(DAY, fn.col(DAY).cast("string"))
            shown = frame.select(DAY).distinct().orderBy(DAY, ascending=False).limit(days)
            frame = frame.join(shown, DAY, "left_semi")
        return frame.select(*kind.read_schema.names).toArrow().cast(kind.read_schema)

    def due(self, now_ms: int) -> list[Document]:
        found, place, own = due_documents(self.manifest, now_ms), self.catalog.place, self.catalog.format
        before = datetime.fromtimestamp(now_ms / 1000, UTC) - timedelta(days=_KEPT_DAYS)
        for name in (RUNS, *TABLES):
            old = own.old_versions(self.catalog.session, self.catalog.full_name(name), before)
            if old is not None:
                why = f"{name} has {counted(old.count, 'version')} of more than {_KEPT_DAYS} days"
                command = own.expiry.format(catalog=place.catalog, table=f"{place.namespace}.{name}")
                found.append({"task": "expiry", "why": why, "command": command})
        return found


def read_catalog_table(session: SparkSession, catalog: str, name: str) -> DataFrame:
    """A table as the last run left it. Raises TieredctlError `path-missing` where no run ended."""
    return CurrentTables.opened(CatalogPlace.given(catalog).open(session)).frame(kind_named(name).name)
