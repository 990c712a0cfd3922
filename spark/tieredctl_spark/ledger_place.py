"""Where a job keeps its verification ledger."""

from __future__ import annotations

from pyspark.sql import SparkSession

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import StorePlace
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.catalogs.runs import current as current_of_catalog
from tieredctl_spark.earlier_ledger import EarlierLedger
from tieredctl_spark.ledger import Ledger
from tieredctl_spark.ledger_rows import CatalogRows, FolderRows
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.tables.manifest import Manifest
from tieredctl_spark.tables.table_store import Opened, TablesPlace, current, demand_apart, demand_same_store

_FOLDER = "ledger"
_HADOOPS_S3 = ("s3a://", "s3n://")


def ledger_beside(tables: TablesPlace) -> TablesPlace:
    """The one that belongs to the tables of a pipeline, in a folder of its own: both change independently."""
    return TablesPlace(f"{tables.url.rstrip('/')}/{_FOLDER}", tables.options)


def demand_tables_of(store: StorePlace, tables: TablesPlace | CatalogPlace, session: SparkSession) -> None:
    """Raises TieredctlError `usage` where a pipeline's tables are of another store: their coverage counts what the
    ledger beside them says, whatever store was read."""
    try:
        if isinstance(tables, CatalogPlace):
            tables.demand_release()
            known = current_of_catalog(tables.open(session), Manifest)
        else:
            known = current(tables.open_writable())
    except TieredctlError as error:
        if error.code is not ErrorCode.UNDECODABLE:
            raise
        return  # a backfill's, which have no coverage
    if known is not None:
        demand_same_store(known.looked.store, store.open().store.url, tables.url)


def ledger_in(output: OutputFolder, store: StorePlace) -> TablesPlace:
    """The one in a job's output folder, with the store's own settings where both are buckets of one kind. Raises
    TieredctlError `usage` for a file system without conditional writes."""
    url = output.url
    for scheme in _HADOOPS_S3:
        url = url.replace(scheme, "s3://", 1) if url.startswith(scheme) else url
    try:
        return ledger_beside(TablesPlace.beside(store, url))
    except TieredctlError:
        hint = "Keep it in a folder or a bucket with --tables, or in a catalog with --catalog."
        raise TieredctlError(ErrorCode.USAGE, f"The ledger cannot be kept in {output.url}.", hint=hint) from None


def open_ledger(
    place: TablesPlace | CatalogPlace,
    output: OutputFolder,
    store: StorePlace,
    cluster_id: str | None = None,
    opened: Opened = TablesPlace.open_writable,
) -> Ledger:
    """The ledger at a place, with what an earlier tieredctl left in the output folder. Raises TieredctlError as
    `demand_apart`, `CatalogPlace.open` and stores do."""
    rows: CatalogRows | FolderRows
    if isinstance(place, CatalogPlace):
        place.demand_release()
        rows = CatalogRows(place.open(output.session), cluster_id)
        rows.create()
    else:
        demand_apart(place, store.from_everywhere())
        rows = FolderRows(output.session, opened(place), cluster_id)
    rows.take_over(EarlierLedger(output))
    return Ledger(rows)
