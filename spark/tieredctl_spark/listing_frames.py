"""Where a job gets the list of a store's objects: from the store itself, its inventory, or a list of keys."""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.bucket_inventory import BucketInventory
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.listing_place import ListingPlace, open_inventory
from tieredctl.wiring.places import Remote, StorePlace
from tieredctl_spark.inventory_objects import inventory_listing, inventory_rows
from tieredctl_spark.packed import Keep, Packed
from tieredctl_spark.transforms.listed_objects import keys_of_file, listed_objects

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
