"""Where a job gets the list of a store's objects: from the store itself, its inventory, or a list of keys.

The inventory of a bucket as a DataFrame like that of `remote_objects`: its files are read by Spark's own readers.

`inventory_objects(spark, "s3://reports/tiered/daily/2026-11-18T09-06Z/manifest.json", StorePlace("s3://tiered/prod"))`
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn
from pyspark.sql.types import StringType, StructField, StructType

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.inventory_files import CsvForm
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.bucket_inventory import BucketInventory, InventoryRows
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.listing_place import ListingPlace, open_inventory
from tieredctl.wiring.places import Remote, StorePlace
from tieredctl_spark.arrow.object_table import OBJECT_TABLE_SCHEMA, object_table
from tieredctl_spark.packed import Keep, Packed, packed_rows
from tieredctl_spark.schemas import as_spark_reads, spark_schema
from tieredctl_spark.transforms.listed_objects import LISTED_SCHEMA, explained_objects, keys_of_file, listed_objects
from tieredctl_spark.worker_failures import one_sentence

_LISTING = "listing"


def kept_by_executors(frame: DataFrame, _name: str) -> DataFrame:
    """`Keep` on their disks. If one is lost, the scan fails: nothing is computed again at another time."""
    return frame.localCheckpoint(True, StorageLevel.DISK_ONLY)


@dataclass(frozen=True, slots=True)
class ListingFrame:
    """A listing that was not computed yet."""

    objects: Packed
    """By LISTED_SCHEMA."""
    described: Document = field(default_factory=dict)
    """For the `source` of a JSON document."""
    inventory: BucketInventory | None = None
    """What it is made of, if its manifest tells how many rows there are; `rows` counts them."""
    rows: Observation | None = None

    def kept(self, keep: Keep) -> Packed:
        """Computes it. Raises TieredctlError `inventory-unusable` for an inventory with more or fewer rows than its
        manifest gives."""
        kept = self.objects.kept(keep, _LISTING)
        if self.inventory is not None and self.rows is not None:
            found = int(self.rows.get["rows"])
            if found != self.inventory.manifest.records:
                raise self.inventory.wrong_count(found)
        return kept


def listing_frame(
    session: SparkSession, listing: ListingPlace, place: StorePlace, remote: Remote[ObjectStore]
) -> ListingFrame:
    """The listing of `remote`, which was opened at `place`. Raises TieredctlError as `ListingPlace.open` and
    `ListingPlace.demand_fits` do, and `usage` for a listing to resume."""
    if listing.resume is not None:
        raise TieredctlError(ErrorCode.USAGE, "--resume is for the local engine.", hint="Omit it, or --engine spark.")
    if listing.key_list is not None:
        listing.demand_fits(remote.layout)
        keys = keys_of_file(session, listing.key_list, remote.layout)
        return ListingFrame(keys, {"keyList": str(listing.key_list)})
    if listing.inventory is None:
        return ListingFrame(listed_objects(session, *remote))
    inventory = open_inventory(listing.inventory, remote.store.url, place)
    rows, described = inventory_rows(session, inventory), {"inventory": inventory.describe()}
    if inventory.manifest.records is None:
        return ListingFrame(inventory_listing(rows, inventory, remote.layout), described)
    counted = Observation()
    rows = rows.observe(counted, fn.count(fn.lit(1)).alias("rows"))
    return ListingFrame(inventory_listing(rows, inventory, remote.layout), described, inventory, counted)


_HADOOP_SCHEMES = {"s3": "s3a"}
_LARGEST_KEY = 1 << 20


def inventory_objects(session: SparkSession, manifest: str, place: StorePlace) -> DataFrame:
    """The objects below the store's root when the inventory was taken, by OBJECT_TABLE_SCHEMA, without tieredctl's own:
    of an S3 Inventory or a Storage Insights report, as CSV or Parquet. `manifest` is its path or URL.

    The manifest, and that each of its files is there with its size, is checked here; the checksums of the files are
    not, as Spark reads them. Raises TieredctlError `inventory-unusable` for what cannot stand for a listing. An
    inventory is a day old: what was written since is not in it, and what is in it may be gone.
    """
    remote = place.open()
    inventory = open_inventory(manifest, remote.store.url, place)
    read = _Reading(inventory.rows, remote.layout)
    return inventory_rows(session, inventory).mapInArrow(read, spark_schema(OBJECT_TABLE_SCHEMA))


def inventory_rows(session: SparkSession, inventory: BucketInventory) -> DataFrame:
    """All rows of an inventory's files, with its own columns. Raises TieredctlError `inventory-unusable` as above."""
    paths = [_spark_path(inventory.store.url, key) for key in inventory.file_keys()]
    form = inventory.csv_form()
    return session.read.parquet(*paths) if form is None else _csv_files(session, paths, form)


def inventory_listing(rows: DataFrame, inventory: BucketInventory, layout: Layout) -> Packed:
    """The objects that `inventory_rows` list, by LISTED_SCHEMA, tieredctl's own too."""
    of_inventory, explainer = inventory.rows, KeyExplainer(layout)

    def listed(found: pa.Table) -> pa.Table:
        with one_sentence():
            batches = (of_inventory.listing(_binary_texts(batch)) for batch in found.to_batches())
            return pa.Table.from_batches([explained_objects(batch, explainer) for batch in batches], LISTED_SCHEMA)

    return packed_rows(rows, LISTED_SCHEMA, listed)


def _spark_path(url: str, key: str) -> str:
    scheme, _, rest = url.partition(":")
    if scheme == "file" and ":" in rest + key:
        message = f"Spark cannot read the local file {rest}/{key}: Hadoop takes no colon there. Leave it in its bucket."
        raise TieredctlError(ErrorCode.INVENTORY_UNUSABLE, message, hint="Give the manifest's URL.")
    return f"{_HADOOP_SCHEMES.get(scheme, scheme)}:{rest.rstrip('/')}/{key}"


def _csv_files(session: SparkSession, paths: list[str], form: CsvForm) -> DataFrame:
    schema = StructType([StructField(name, StringType()) for name in form.columns])
    reader = session.read.schema(schema).options(
        header=form.has_header,
        sep=form.delimiter,
        quote='"',
        escape='"',
        multiLine=form.has_newlines,
        mode="FAILFAST",
        maxCharsPerColumn=_LARGEST_KEY,
        ignoreLeadingWhiteSpace=False,
        ignoreTrailingWhiteSpace=False,
    )
    return reader.csv(paths)


@dataclass(frozen=True, slots=True)
class _Reading:
    """Runs on executors."""

    rows: InventoryRows
    layout: Layout

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        explainer = KeyExplainer(self.layout)
        schema = as_spark_reads(OBJECT_TABLE_SCHEMA)
        with one_sentence():
            for batch in batches:
                listed = self.rows.listing(_binary_texts(batch))
                others = listed.filter(pc.invert(are_reserved(listed.column("key"))))
                yield from object_table(others, explainer).cast(schema).to_batches()


def _binary_texts(batch: pa.RecordBatch) -> dict[str, Any]:
    """Its columns; texts as bytes, and empty where Spark's readers have null, as in the files."""
    return {
        name: pc.fill_null(column.cast(pa.binary()), b"") if pa.types.is_string(column.type) else column
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
