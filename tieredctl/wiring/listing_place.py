"""Where `orphans` reads which objects a store has: from the store itself, its inventory, or a list of keys."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.listing import KeyFile, Listing, SpooledBatches
from tieredctl.wiring.places import StorePlace

if TYPE_CHECKING:
    from tieredctl.ops.orphans.bucket_inventory import BucketInventory
    from tieredctl.storage.protocol import ObjectStore


@dataclass(frozen=True, slots=True)
class OpenedListing:
    """A listing, and what the `source` of a JSON document says of it."""

    objects: Listing
    described: Document = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListingPlace:
    """The store itself, where nothing is given. Raises TieredctlError `usage` where several are."""

    key_list: Path | None = None
    """The store's keys, one a line."""
    inventory: str | None = None
    """The path or URL of the manifest of the bucket's inventory."""
    resume: Path | None = None
    """Where the store's own listing is kept until it ends, so that an interrupted one goes on."""

    def __post_init__(self) -> None:
        given = [self.key_list, self.inventory, self.resume]
        if sum(one is not None for one in given) > 1:
            raise TieredctlError(ErrorCode.USAGE, "--key-list, --inventory and --resume exclude each other.")

    @property
    def is_of_store(self) -> bool:
        """Whether the store itself is listed."""
        return self.key_list is None and self.inventory is None

    def open(self, store: ObjectStore, place: StorePlace, now_ms: int, oldest_ms: int) -> OpenedListing:
        """The listing of `store`, which was opened at `place`; a live one is made when it is entered.

        One to be resumed may not have begun before `oldest_ms`. Raises TieredctlError where what it is read from is not
        there.
        """
        if self.key_list is not None:
            return OpenedListing(KeyFile(self.key_list), {"keyList": str(self.key_list)})
        if self.inventory is not None:
            found = _open_inventory(self.inventory, store.url, place)
            return OpenedListing(SpooledBatches(found.batches()), {"inventory": found.describe()})
        from tieredctl.ops.orphans.live_listing import ResumableListing, live_listing

        if self.resume is None:
            return OpenedListing(live_listing(store))
        # The same URL is another store at another endpoint.
        options = sorted(f"{name}={value}" for name, value in place.options.items())
        return OpenedListing(ResumableListing(store, " ".join([store.url, *options]), self.resume, now_ms, oldest_ms))


def _open_inventory(manifest: str, store_url: str, place: StorePlace) -> BucketInventory:
    """The inventory at a path or URL. A bucket of the store's kind is opened with the store's options."""
    from tieredctl.ops.orphans.bucket_inventory import BucketPlace, find_inventory
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.registry import open_store

    scheme, _, rest = store_url.partition(":")
    if scheme not in ("s3", "gs"):
        raise TieredctlError(ErrorCode.USAGE, f"An inventory is of a bucket, and the store is {store_url}.")
    address = bucket_address(scheme, rest)
    bucket_place = BucketPlace(scheme, address.bucket, address.root)
    kind, colon, path = manifest.partition(":")
    if colon and kind in ("s3", "gs"):
        bucket, _, key = path.removeprefix("//").partition("/")
        options = place.options if kind == scheme else {}
        return find_inventory(open_store(f"{kind}://{bucket}", options), key, bucket_place)
    file = Path(os.path.abspath(path if colon and kind == "file" else manifest))
    if not file.is_file():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no file {file}.")
    # What an inventory consists of lies in the manifest's own folder, or in another beside that.
    around = file.parent.parent
    return find_inventory(open_store(f"file:{around}", {}), file.relative_to(around).as_posix(), bucket_place)
