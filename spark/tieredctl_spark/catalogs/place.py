"""Which catalog tables are in, and the operations on them. Each write is one commit of the format's own, and says
which version it came after: of two that write at once, one is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyspark
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql.types import StructField

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import StorePlace
from tieredctl_spark.catalogs.formats import FORMATS, TableFormat
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.tables.table_store import TablesPlace

RELEASES = ("4.0", "4.1")
"""Those of Spark that Iceberg and Delta have a runtime for."""
_NAMESPACE = "tiered"
_PART = re.compile(r"\w+")


def quoted(*names: str) -> str:
    """A name of several parts as Spark's SQL takes it, whatever words of SQL are among them; each may be several."""
    return ".".join(f"`{part}`" for name in names for part in name.split("."))


@dataclass(frozen=True, slots=True)
class CatalogPlace:
    """A namespace of a catalog that Spark's settings describe. Opens nothing."""

    catalog: str
    namespace: str

    @classmethod
    def given(cls, text: str) -> CatalogPlace:
        """The place of CATALOG or CATALOG.NAMESPACE. Raises TieredctlError `usage`."""
        catalog, _, namespace = text.partition(".")
        if not all(_PART.fullmatch(part) for part in (catalog, *(namespace or _NAMESPACE).split("."))):
            message = f"{text!r} is not the name of a catalog, or CATALOG.NAMESPACE."
            raise TieredctlError(ErrorCode.USAGE, message)
        return cls(catalog, namespace or _NAMESPACE)

    @property
    def url(self) -> str:
        """As users name it."""
        return f"{self.catalog}.{self.namespace}"

    @staticmethod
    def demand_release() -> None:
        """Raises TieredctlError `usage` for a release of Spark that no format has a runtime for."""
        release = ".".join(pyspark.__version__.split(".")[:2])
        if release not in RELEASES:
            message = f"Iceberg and Delta have no runtime for Spark {release}: --catalog needs {' or '.join(RELEASES)}."
            hint = "Keep Parquet tables in a folder or a bucket: leave --catalog out."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)

    def open(self, session: SparkSession) -> Catalog:
        """With a session whose settings describe it. Raises TieredctlError `usage` for one that is not there, or is
        neither Iceberg's nor Delta's."""
        setting = f"spark.sql.catalog.{self.catalog}"
        implementation = session.conf.get(setting, "") or ""
        hint = f"Give --spark-conf {setting}=CLASS, and its other settings, as Iceberg's or Delta's manual has them."
        if not implementation:
            raise TieredctlError(ErrorCode.USAGE, f"Spark has no catalog {self.catalog!r}.", hint=hint)
        for one in FORMATS:
            if implementation.startswith(one.catalogs):
                return Catalog(session, self, one)
        message = f"The catalog {self.catalog!r} is {implementation}, which is neither Iceberg's nor Delta's."
        raise TieredctlError(ErrorCode.USAGE, message, hint=hint)


def tables_or_catalog(
    tables: str | None, options: Mapping[str, str], catalog: str | None, store: StorePlace | None
) -> TablesPlace | CatalogPlace | None:
    """Where `--tables`, with its own options or those of a store of its kind, or `--catalog` say that tables are; None
    without either. Raises TieredctlError `usage` for both."""
    if catalog is None:
        if tables is None:
            return None
        return TablesPlace.given(tables, options) if options or store is None else TablesPlace.beside(store, tables)
    if tables is not None:
        hint = "Give --tables with a folder or a bucket, or --catalog with one of Spark's."
        raise TieredctlError(ErrorCode.USAGE, "--tables and --catalog cannot be combined.", hint=hint)
    return CatalogPlace.given(catalog)


@dataclass(frozen=True, slots=True)
class Catalog:
    """The tables of a namespace."""

    session: SparkSession
    place: CatalogPlace
    format: TableFormat

    def full_name(self, table: str) -> str:
        """As SQL takes it."""
        return quoted(self.place.url, table)

    def own_statement(self, statement: str, table: str, **words: str) -> str:
        """A statement of the format, with {catalog} and {table}, for a table of the namespace."""
        return statement.format(catalog=quoted(self.place.catalog), table=quoted(self.place.namespace, table), **words)

    def create_namespace(self) -> None:
        """Makes the namespace, unless it is there."""
        self.session.sql(f"CREATE NAMESPACE IF NOT EXISTS {quoted(self.place.url)}")

    def has(self, table: str) -> bool:
        """Whether the table is there."""
        return self.session.catalog.tableExists(self.full_name(table))

    def create(self, table: str, schema: pa.Schema, partitioned_by: Sequence[str] = ()) -> None:
        """Makes an empty table, and its namespace, unless they are there; what one of an earlier tieredctl lacks is
        added, null in its rows."""
        self.create_namespace()
        columns = _columns(spark_schema(schema))
        parts = f"PARTITIONED BY ({', '.join(map(quoted, partitioned_by))})" if partitioned_by else ""
        self.session.sql(
            f"CREATE TABLE IF NOT EXISTS {self.full_name(table)} ({columns}) USING {self.format.name} {parts}"
            f" TBLPROPERTIES ({self.format.properties})"
        )
        known = self.session.table(self.full_name(table)).columns
        lacking = [one for one in spark_schema(schema) if one.name not in known]
        if lacking:
            self.session.sql(f"ALTER TABLE {self.full_name(table)} ADD COLUMNS ({_columns(lacking)})")

    def version(self, table: str) -> str | None:
        """The newest version of a table, as `VERSION AS OF` takes it; None where nothing was written yet."""
        found = self.format.version(self.session, self.full_name(table))
        return None if found is None else found.name

    def frame(self, table: str, version: str | None = None) -> DataFrame:
        """A table as it is now, or as of a version."""
        then = "" if version is None else f" VERSION AS OF {version}"
        return self.session.sql(f"SELECT * FROM {self.full_name(table)}{then}")

    def append(self, table: str, rows: DataFrame, after: str | None) -> str | None:
        """Appends rows to a table whose newest version is `after`; the new one. Raises TieredctlError `locked` where
        another program wrote to it meanwhile."""
        rows.writeTo(self.full_name(table)).append()
        return self._demand_next(table, after)

    def overwrite(self, table: str, rows: DataFrame, where: Column, after: str | None) -> str | None:
        """The same, in one commit with the removal of what is there `where`."""
        rows.writeTo(self.full_name(table)).overwrite(where)
        return self._demand_next(table, after)

    def remove_rows(self, table: str, where: str, after: str | None) -> str | None:
        """The same, only removing rows."""
        self.session.sql(f"DELETE FROM {self.full_name(table)} WHERE {where}")
        return self._demand_next(table, after)

    def restore(self, table: str, version: str, after: str | None) -> str | None:
        """The same, with the rows of an earlier version, whose name is the newest again if the format has it so."""
        self.session.sql(self.own_statement(self.format.restoring, table, version=version)).collect()
        return version if self.version(table) == version else self._demand_next(table, after)

    def _demand_next(self, table: str, after: str | None) -> str | None:
        found = self.format.version(self.session, self.full_name(table))
        if found is not None and after not in (found.name, found.parent):
            message = f"Another program wrote to {self.full_name(table)} meanwhile."
            raise TieredctlError(ErrorCode.LOCKED, message, hint="Run it again: it removes what is not of a whole run.")
        return None if found is None else found.name


def _columns(fields: Iterable[StructField]) -> str:
    return ", ".join(f"{quoted(one.name)} {one.dataType.simpleString()}" for one in fields)
