"""What `orphans scan` is told to read a store's objects from: the store itself, its inventory, or a list of keys."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.cli.arguments import pairs
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.listing import KeyFile, Listing, SpooledBatches

if TYPE_CHECKING:
    from tieredctl.ops.orphans.bucket_inventory import BucketInventory
    from tieredctl.storage.protocol import ObjectStore


@dataclass(frozen=True, slots=True)
class ListingOptions:
    """At most one of the files is given; None for those that are not. Times in ms."""

    key_list: Path | None
    inventory: str | None
    resume: Path | None
    now_ms: int
    min_age_ms: int


@dataclass(frozen=True, slots=True)
class NamedListing:
    """A listing, and what the `source` of a JSON document says of it."""

    objects: Listing
    described: Document


def store_listing(store: ObjectStore, store_options: Sequence[str] | None, options: ListingOptions) -> NamedListing:
    """The listing that was asked for. Raises TieredctlError where what it is read from is not there."""
    given = [options.key_list, options.inventory, options.resume]
    if sum(one is not None for one in given) > 1:
        raise TieredctlError(ErrorCode.USAGE, "--key-list, --inventory and --resume exclude each other.")
    if options.key_list is not None:
        return NamedListing(KeyFile(options.key_list), {"keyList": str(options.key_list)})
    if options.inventory is not None:
        found = _open_inventory(options.inventory, store.url, store_options)
        return NamedListing(SpooledBatches(found.batches()), {"inventory": found.describe()})
    return NamedListing(_live_listing(store, store_options, options), {})


def _live_listing(store: ObjectStore, store_options: Sequence[str] | None, options: ListingOptions) -> Listing:
    from tieredctl.ops.orphans.live_listing import ResumableListing, live_listing

    if options.resume is not None:
        # The same URL is another store at another endpoint.
        identity = " ".join([store.url, *sorted(store_options or ())])
        oldest_ms = options.now_ms - options.min_age_ms
        return ResumableListing(store, identity, options.resume, options.now_ms, oldest_ms)
    return live_listing(store)


def _open_inventory(manifest: str, store_url: str, store_options: Sequence[str] | None) -> BucketInventory:
    """The inventory at a path or URL. A bucket of the store's kind is opened with the store's options."""
    from tieredctl.ops.orphans.bucket_inventory import BucketPlace, find_inventory
    from tieredctl.storage.bucket_address import bucket_address
    from tieredctl.storage.registry import open_store

    scheme, _, rest = store_url.partition(":")
    if scheme not in ("s3", "gs"):
        raise TieredctlError(ErrorCode.USAGE, f"An inventory is of a bucket, and the store is {store_url}.")
    address = bucket_address(scheme, rest)
    place = BucketPlace(scheme, address.bucket, address.root)
    kind, colon, path = manifest.partition(":")
    if colon and kind in ("s3", "gs"):
        bucket, _, key = path.removeprefix("//").partition("/")
        options = pairs("--store-option", store_options) if kind == scheme else {}
        return find_inventory(open_store(f"{kind}://{bucket}", options), key, place)
    file = Path(os.path.abspath(path if colon and kind == "file" else manifest))
    if not file.is_file():
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no file {file}.")
    # What an inventory consists of lies in the manifest's own folder, or in another beside that.
    around = file.parent.parent
    return find_inventory(open_store(f"file:{around}", {}), file.relative_to(around).as_posix(), place)
