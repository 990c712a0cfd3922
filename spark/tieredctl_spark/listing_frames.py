"""Where a job gets the list of a store's objects: from the store itself, its inventory, or a list of keys.

The store lists its objects of now, so that what it listed is kept. The files of an inventory and a list of keys are the
same whenever they are read: tasks read them where they need them.

`inventory_objects(spark, "s3://reports/tiered/daily/2026-11-18T09-06Z/manifest.json", StorePlace("s3://tiered/prod"))`
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.bucket_inventory import BucketInventory, objects_below
from tieredctl.ops.orphans.reserved import are_reserved
from tieredctl.ops.remote.key_columns import KeyExplainer
from tieredctl.ops.remote.listing import LISTING_SCHEMA, KeyFile, record_batches
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.listing_place import ListingPlace, open_inventory
from tieredctl.wiring.places import Remote, StorePlace
from tieredctl_spark.arrow.object_table import OBJECT_TABLE_SCHEMA, object_table
from tieredctl_spark.kept_frames import Keep, kept_by_executors, task_numbers, task_rows
from tieredctl_spark.parted_keys import key_ranges
from tieredctl_spark.schemas import as_spark_reads
from tieredctl_spark.worker_functions import mapped

Batches = Iterator[pa.RecordBatch]
_LISTING = "listing"
_MOST_RANGES = 256
_MOST_TASKS = 64
"""What begins a task in Python takes longer than a page of a listing: several ranges are worth one."""
_AT_ONCE = 1 << 16
_COUNTED_SCHEMA = pa.schema({"key": pa.binary(), "records": pa.int64()})
"""A row has either a key, or the number of a file's records."""


@dataclass(frozen=True, slots=True)
class ListingFrame:
    """Objects of a store, in tasks."""

    frame: DataFrame
    """A row for each object of a store that was listed; else one for each task."""
    read: Callable[[Batches], Batches]
    """Gives the objects by LISTING_SCHEMA of some rows of it."""
    described: Document = field(default_factory=dict)
    """The description for the `source` of a JSON document."""
    inventory: BucketInventory | None = None

    @property
    def session(self) -> SparkSession:
        """The session whose tasks list them."""
        return self.frame.sparkSession

    def kept(self, keep: Keep) -> ListingFrame:
        """What is the same from now on. Raises TieredctlError `inventory-unusable` for an inventory with more or fewer
        rows than its manifest gives, or with an object twice."""
        if self.inventory is not None:
            records, repeated = _counted(self.session, self.inventory)
            self.inventory.demand_count(records)
            self.inventory.demand_none_repeated(repeated)
        return self if self.read is not _listed_rows else replace(self, frame=keep(self.frame, _LISTING))

    def through(self, change: Callable[[Batches], Iterator[pa.Table]], schema: pa.Schema) -> DataFrame:
        """What `change` makes, by `schema`, of the objects of each task."""
        read, as_read = self.read, as_spark_reads(schema)

        def changed(rows: Iterable[pa.RecordBatch]) -> Batches:
            for table in change(read(iter(rows))):
                yield from table.cast(as_read).to_batches()

        return mapped(self.frame, changed, schema)

    def between(self, first: bytes, end: bytes | None) -> ListingFrame:
        """The objects with keys from `first` up to, not including, `end`; None for no end."""
        if self.read is _listed_rows:
            is_in = fn.col("key") >= fn.lit(first)
            return replace(
                self, frame=self.frame.where(is_in if end is None else is_in & (fn.col("key") < fn.lit(end)))
            )
        read = self.read

        def within(rows: Batches) -> Batches:
            for batch in read(rows):
                keys = batch.column("key")
                is_in = pc.greater_equal(keys, pa.scalar(first))
                yield batch.filter(is_in if end is None else pc.and_(is_in, pc.less(keys, pa.scalar(end))))

        return replace(self, read=within)


def listing_frame(
    session: SparkSession, listing: ListingPlace, place: StorePlace, remote: Remote[ObjectStore]
) -> ListingFrame:
    """The listing of `remote`, which was opened at `place`. Raises TieredctlError as `ListingPlace.open` and
    `ListingPlace.demand_fits` do, and `usage` for a listing to resume."""
    if listing.resume is not None:
        raise TieredctlError(ErrorCode.USAGE, "--resume is for the local engine.", hint="Omit it, or --engine spark.")
    if listing.key_list is not None:
        listing.demand_fits(remote.layout)
        return _key_listing(session, KeyFile(listing.key_list))
    if listing.inventory is None:
        return store_listing(session, remote.store)
    inventory = open_inventory(listing.inventory, remote.store.url, place)
    return inventory_listing(session, inventory)


def store_listing(session: SparkSession, store: ObjectStore) -> ListingFrame:
    """What executors list of a store when this is kept."""
    ranges = key_ranges(store, _MOST_RANGES)
    tasks = min(len(ranges), _MOST_TASKS)

    def listed(number: int) -> Iterator[pa.Table]:
        for one in ranges[number * len(ranges) // tasks : (number + 1) * len(ranges) // tasks]:
            yield from (pa.Table.from_batches([batch]) for batch in record_batches(one.objects(store), _AT_ONCE))

    return ListingFrame(task_rows(session, tasks, listed, LISTING_SCHEMA), _listed_rows)


def _key_listing(session: SparkSession, keys: KeyFile) -> ListingFrame:
    """The listing of a file of keys that executors have, too; one of them reads it."""

    def read(rows: Batches) -> Batches:
        for _ in rows:
            yield from keys.batches()

    return ListingFrame(task_numbers(session, 1), read, {"keyList": str(keys.path)})


def inventory_listing(session: SparkSession, inventory: BucketInventory) -> ListingFrame:
    """The objects of an inventory, a task for each of its files. Raises TieredctlError `inventory-unusable` where one
    is missing or has another size than its manifest gives; tasks raise it for all else that is wrong with a file."""
    inventory.demand_files()

    def read(rows: Batches) -> Batches:
        for batch in rows:
            for number in batch.column("id").to_pylist():
                found = inventory.objects_in(inventory.manifest.files[number])
                yield from (objects_below(inventory.place.root, objects) for objects in found)

    numbers = task_numbers(session, len(inventory.manifest.files))
    return ListingFrame(numbers, read, {"inventory": inventory.describe()}, inventory)


def inventory_objects(session: SparkSession, manifest: str, place: StorePlace) -> DataFrame:
    """The objects below the store's root when the inventory was taken, by OBJECT_TABLE_SCHEMA, without tieredctl's own:
    of an S3 Inventory or a Storage Insights report, as CSV or Parquet. `manifest` is its path or URL.

    Raises TieredctlError `inventory-unusable` as `inventory_listing` and `kept` do. An inventory is a day old: what was
    written since is not in it, and what is in it may be gone.
    """
    remote = place.open()
    inventory = open_inventory(manifest, remote.store.url, place)
    explainer = KeyExplainer(remote.layout)

    def told(batches: Batches) -> Iterator[pa.Table]:
        for batch in batches:
            yield object_table(batch.filter(pc.invert(are_reserved(batch.column("key")))), explainer)

    whole = inventory_listing(session, inventory).kept(kept_by_executors)
    return whole.through(told, OBJECT_TABLE_SCHEMA)


def _listed_rows(rows: Batches) -> Batches:
    """Rows of a store's listing, many at once."""
    some: list[pa.RecordBatch] = []
    for batch in rows:
        some.append(batch)
        if sum(map(len, some)) >= _AT_ONCE:
            yield from _together(some)
            some = []
    yield from _together(some)


def _together(batches: list[pa.RecordBatch]) -> Batches:
    if batches:
        table = pa.Table.from_batches(batches).combine_chunks()
        classes = table.column("storageClass").combine_chunks().dictionary_encode()
        yield from pa.table([*table.columns[:-1], classes], schema=LISTING_SCHEMA).to_batches()


def _counted(session: SparkSession, inventory: BucketInventory) -> tuple[int, int]:
    """How many rows the files of an inventory have, and how many of its keys come again; by hashes, so that Spark moves
    12 bytes of each. They are read for that alone: no row is used before."""
    files, root = inventory.manifest.files, inventory.place.root

    def counted(number: int) -> Iterator[pa.Table]:
        records = 0
        for objects in inventory.objects_in(files[number]):
            records += objects.records
            keys = objects_below(root, objects).column("key")
            yield pa.table([keys, pa.nulls(len(keys), pa.int64())], schema=_COUNTED_SCHEMA)
        yield pa.table({"key": [None], "records": [records]}, _COUNTED_SCHEMA)

    rows = task_rows(session, len(files), counted, _COUNTED_SCHEMA)
    by_key = rows.groupBy(fn.xxhash64("key"), fn.hash("key")).agg(
        fn.count("key").alias("rows"), fn.sum("records").alias("records")
    )
    found = by_key.agg(fn.sum("records"), fn.sum(fn.greatest(fn.col("rows") - 1, fn.lit(0)))).collect()[0]
    return int(found[0] or 0), int(found[1] or 0)
