"""A bucket's inventory, written by its cloud, instead of a listing: it costs next to nothing, and is a day old.

Its objects may no longer exist, and newer ones are missing, so an object can be missed but an owned one is never taken
for an orphan.
"""

from __future__ import annotations

import hashlib
from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import without_beginning
from tieredctl.formats.inventory_files import (
    InventoryObjects,
    read_inventory_file,
)
from tieredctl.formats.inventory_manifest import (
    LARGEST_MANIFEST,
    InventoryFile,
    InventoryManifest,
    read_manifest,
    unusable,
)
from tieredctl.model.counted import counted
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.remote.listing import LISTING_SCHEMA
from tieredctl.ops.remote.repeated_keys import RepeatedKeys
from tieredctl.ports.object_store import ObjectStore, StoredObject

_LARGEST_CHECKSUM_FILE = 256


@dataclass(frozen=True, slots=True)
class BucketPlace:
    """The bucket and the folder in it that are scanned. `root` is empty or ends in `/`."""

    scheme: str
    bucket: str
    root: str


def objects_below(root: str, objects: InventoryObjects) -> pa.RecordBatch:
    """The objects below a root, without that folder's own marker, by their keys there, by LISTING_SCHEMA."""
    columns = [objects.keys, objects.sizes, objects.last_modified_ms, objects.versions, objects.storage_classes]
    batch = pa.RecordBatch.from_arrays(columns, schema=LISTING_SCHEMA)
    if root:
        batch = batch.filter(pc.starts_with(objects.keys, pattern=root))
    keys = without_beginning(batch.column("key"), len(root.encode()))
    batch = pa.RecordBatch.from_arrays([keys, *batch.columns[1:]], schema=LISTING_SCHEMA)
    return batch.filter(pc.greater(pc.binary_length(keys), 0))


@dataclass(frozen=True, slots=True)
class BucketInventory:
    """An inventory that was found, with its manifest."""

    store: ObjectStore
    """Where it lies."""
    manifest_key: str
    manifest: InventoryManifest
    place: BucketPlace

    def batches(self) -> Iterator[pa.RecordBatch]:
        """The objects of the place, by LISTING_SCHEMA, in the inventory's order.

        Raises TieredctlError `inventory-unusable` where a file is missing, differs from what its manifest says, or
        cannot be read, since whatever is left out would be a listing that is too short, or where an object is listed
        twice.
        """
        records, repeated = 0, RepeatedKeys()
        for file in self.manifest.files:
            for objects in self.objects_in(file):
                records += objects.records
                batch = objects_below(self.place.root, objects)
                repeated.add(batch.column("key"))
                yield batch
        self.demand_count(records)
        self.demand_none_repeated(repeated.count())

    def objects_in(self, file: InventoryFile) -> Iterator[InventoryObjects]:
        """What one of its files lists, below the place or not. Raises as `batches` does."""
        with TemporaryDirectory(prefix="tieredctl-inventory-") as folder:
            copy = Path(folder, "file")
            key = self._fetch(file, copy)
            yield from read_inventory_file(copy, self.manifest, self.place.bucket, key)

    def demand_count(self, records: int) -> None:
        """Raises TieredctlError `inventory-unusable` where its files have so many records, and its manifest gives
        another number."""
        if self.manifest.records not in (None, records):
            raise unusable(
                f"The inventory's files have {records} records, but its manifest gives {self.manifest.records}."
            )

    def demand_none_repeated(self, repeated: int) -> None:
        """Raises TieredctlError `inventory-unusable` where so many of its rows are about objects of other rows."""
        if repeated:
            raise unusable(f"The inventory lists {counted(repeated, 'object')} more than once.")

    def demand_files(self) -> None:
        """Raises TieredctlError `inventory-unusable` where a file is missing or has another size than the manifest
        gives."""
        for file in self.manifest.files:
            self._found(file)

    def describe(self) -> Document:
        """The description for the `source` of a JSON document."""
        return {"manifest": self.manifest_key, "store": self.store.url, "taken": iso_8601(self.manifest.taken_ms)}

    def _found(self, file: InventoryFile) -> StoredObject:
        for key in _places(self.manifest_key, file.name):
            if stored := self.store.head(key):
                _demand_size(file, key, stored.size)
                return stored
        raise unusable(f"The inventory's file {file.name} is missing in {self.store.url}.")

    def _fetch(self, file: InventoryFile, copy: Path) -> str:
        """Copies a file of the inventory, and gives its key."""
        key = self._found(file).key
        md5, size = hashlib.md5(usedforsecurity=False), 0
        with copy.open("wb") as out:
            for piece in self.store.stream(key):
                out.write(piece)
                md5.update(piece)
                size += len(piece)
        _demand_size(file, key, size)
        if file.md5 not in (None, md5.hexdigest()):
            raise unusable(f"The inventory's file {key} does not match the checksum in its manifest.")
        return key


def _demand_size(file: InventoryFile, key: str, size: int) -> None:
    if file.size not in (None, size):
        raise unusable(f"The inventory's file {key} has {size} bytes, but its manifest gives {file.size}.")


def find_inventory(store: ObjectStore, manifest_key: str, place: BucketPlace) -> BucketInventory:
    """The inventory of that manifest. Raises TieredctlError `inventory-unusable` if it is not an inventory, is not
    finished, or belongs to another bucket, and `object-missing` if there is no such object."""
    data = store.read(manifest_key, 0, LARGEST_MANIFEST + 1)
    checksum_key = manifest_key.removesuffix(".json") + ".checksum"
    is_checked = store.head(checksum_key) is not None
    if is_checked:
        checksum = store.read(checksum_key, 0, _LARGEST_CHECKSUM_FILE).strip()
        md5 = hashlib.md5(data, usedforsecurity=False)
        if checksum.lower() != md5.hexdigest().encode() and checksum != b64encode(md5.digest()):
            raise unusable(f"{manifest_key} does not match the checksum in {checksum_key}.")
    manifest = read_manifest(data, manifest_key)
    if manifest.ends_with_checksum and not is_checked:
        raise unusable(f"The inventory of {manifest_key} is not finished: there is no {checksum_key}.")
    manifest.demand_covers(f"{place.bucket}/{place.root}")
    if manifest.scheme != place.scheme or manifest.bucket not in (None, place.bucket):
        of = f"{manifest.scheme}://{manifest.bucket or '…'}"
        raise unusable(f"{manifest_key} is an inventory of {of}, but the store is in {place.scheme}://{place.bucket}.")
    return BucketInventory(store, manifest_key, manifest, place)


def _folder(key: str) -> str:
    head, slash, _ = key.rpartition("/")
    return head + slash


def _places(manifest_key: str, name: str) -> list[str]:
    """Where a file may be: as the manifest has it; where S3 puts it, when the whole was copied elsewhere; or beside the
    manifest, where Google puts it."""
    folder = _folder(manifest_key)
    parts = name.split("/")
    return [name, _folder(folder.removesuffix("/")) + "/".join(parts[-2:]), folder + parts[-1]]
