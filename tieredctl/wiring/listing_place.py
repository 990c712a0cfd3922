"""Where `orphans` gets the list of a store's objects: from the store itself, its inventory, or a list of keys."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.listing import KeyFile, Listing, SpooledBatches, SpooledListing
from tieredctl.wiring.places import StorePlace

if TYPE_CHECKING:
    from tieredctl.ops.orphans.bucket_inventory import BucketInventory, BucketPlace
    from tieredctl.ops.orphans.mark import Mark
    from tieredctl.ports.layout import Layout
    from tieredctl.ports.object_store import ObjectStore


@dataclass(frozen=True, slots=True)
class OpenedListing:
    """A listing, and its description in the `source` of a JSON document."""

    objects: Listing
    described: Document = field(default_factory=dict)
    mark: Mark | None = None
    """What it is made of, if it has only what a job marked."""


@dataclass(frozen=True, slots=True)
class ListingPlace:
    """The store itself unless something else is given. Raises TieredctlError `usage` if several are."""

    key_list: Path | None = None
    """The store's keys, one per line."""
    inventory: str | None = None
    """The path or URL of the manifest of the bucket's inventory."""
    resume: Path | None = None
    """The checkpoint of the store's own listing, with which an interrupted one continues."""
    mark: str | None = None
    """The path or URL of the folder into which a job marked candidates: of the store's objects only those."""

    def __post_init__(self) -> None:
        sources = [self.key_list, self.inventory, self.resume, self.mark]
        if sum(one is not None for one in sources) > 1:
            raise TieredctlError(ErrorCode.USAGE, "--key-list, --inventory, --resume and --from exclude each other.")

    @property
    def is_of_store(self) -> bool:
        """Whether the store itself is listed."""
        return not self.is_told and self.mark is None

    @property
    def is_told(self) -> bool:
        """Whether what the store has is only told, by an inventory or a list of keys."""
        return self.key_list is not None or self.inventory is not None

    @property
    def has_times(self) -> bool:
        """Whether it says when each object was modified."""
        return self.key_list is None

    def demand_fits(self, layout: Layout) -> None:
        """Raises TieredctlError `usage` for a list of keys that has none of the layout's."""
        if self.key_list is not None:
            from tieredctl.ops.orphans.key_list import demand_any_key

            demand_any_key(KeyFile(self.key_list), layout)

    def open(self, store: ObjectStore, place: StorePlace, now_ms: int, oldest_ms: int) -> OpenedListing:
        """The listing of `store`, which was opened at `place`; a live one is made when it is entered.

        A listing to resume must not have begun before `oldest_ms`. Raises TieredctlError if its file or inventory does
        not exist.
        """
        if self.key_list is not None:
            return OpenedListing(KeyFile(self.key_list), {"keyList": str(self.key_list)})
        if self.inventory is not None:
            inventory = open_inventory(self.inventory, store.url, place)
            return OpenedListing(SpooledBatches(inventory.batches()), {"inventory": inventory.describe()})
        if self.mark is not None:
            mark = _open_mark(self.mark, store.url, place, now_ms)
            return OpenedListing(SpooledListing(mark.objects(store)), {"mark": mark.describe()}, mark)
        from tieredctl.ops.orphans.live_listing import ResumableListing, live_listing

        if self.resume is None:
            return OpenedListing(live_listing(store))
        # At another endpoint, the same URL is another store.
        options = sorted(f"{name}={value}" for name, value in place.options.items())
        return OpenedListing(ResumableListing(store, " ".join([store.url, *options]), self.resume, now_ms, oldest_ms))


def _open_mark(folder: str, store_url: str, place: StorePlace, now_ms: int) -> Mark:
    """The mark at a path or URL. A bucket of the store's kind is opened with the store's options."""
    from tieredctl.ops.orphans.mark import read_mark
    from tieredctl.ports.store_kinds import kind_elsewhere
    from tieredctl.storage.registry import open_store

    kind = kind_elsewhere(folder)
    if kind is not None:
        options = place.options if store_url.startswith(f"{kind.scheme}:") else {}
        return read_mark(open_store(folder, options), store_url, now_ms)
    local = Path(os.path.abspath(folder.removeprefix("file:")))
    if not local.is_dir():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no folder {local}.")
    return read_mark(open_store(f"file:{local}", {}), store_url, now_ms)


def open_inventory(manifest: str, store_url: str, place: StorePlace) -> BucketInventory:
    """The inventory at a path or URL. A bucket of the store's kind is opened with the store's options."""
    from tieredctl.ops.orphans.bucket_inventory import find_inventory
    from tieredctl.ports.store_kinds import Address, kind_elsewhere
    from tieredctl.storage.registry import open_store

    place_in_bucket = bucket_place(store_url)
    kind = kind_elsewhere(manifest)
    if kind is not None and kind.address in {Address.BUCKET, Address.CONTAINER}:
        bucket, _, key = manifest.removeprefix(kind.begins).partition("/")
        options = place.options if store_url.startswith(kind.begins) else {}
        return find_inventory(open_store(kind.begins + bucket, options), key, place_in_bucket)
    file = Path(os.path.abspath(manifest.removeprefix("file:")))
    if not file.is_file():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no file {file}.")
    # An inventory's files are in the manifest's own folder, or in one next to it.
    around = file.parent.parent
    return find_inventory(open_store(f"file:{around}", {}), file.relative_to(around).as_posix(), place_in_bucket)


def bucket_place(store_url: str) -> BucketPlace:
    """Where a store lies in its bucket. Raises TieredctlError `usage` for one that is not in a bucket."""
    from tieredctl.ops.orphans.bucket_inventory import BucketPlace
    from tieredctl.ports.store_kinds import Address, store_kind
    from tieredctl.storage.bucket_address import bucket_address, container_address

    scheme, _, rest = store_url.partition(":")
    kind = store_kind(store_url).address
    if kind is Address.BUCKET:
        address = bucket_address(scheme, rest)
        return BucketPlace(scheme, address.bucket, address.root)
    if kind is Address.CONTAINER:
        address, _, _ = container_address(scheme, rest)
        # By whichever of its names: inventories of Azure are the same for both.
        return BucketPlace("az", address.bucket.partition("@")[0], address.root)
    raise TieredctlError(ErrorCode.USAGE, f"Only a bucket has an inventory, but the store is {store_url}.")
