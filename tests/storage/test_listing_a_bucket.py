"""What a scan finds in a bucket: by ranges listed in parallel, and by an inventory that lies in a bucket."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import this_process
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.inventories import ROOT, S3_MANIFEST, s3_inventory, s3_row
from tests.rigs.object_servers import ObjectServer
from tieredctl.ops.orphans.live_listing import LiveListing
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.storage.registry import open_store

MANY = 20_000


@pytest.fixture(scope="module")
def bucket(versitygw: ObjectServer) -> S3Bucket:
    return S3Bucket(versitygw.endpoint)


@pytest.fixture(scope="module")
def many(versitygw: ObjectServer, bucket: S3Bucket) -> ObjectStore:
    """A store of so many objects that dividing it is worth while."""
    folder = versitygw.data / BUCKET / "many"
    for partition in range(4):
        (folder / f"orders-{partition}").mkdir(parents=True)
        for number in range(MANY // 4):
            (folder / f"orders-{partition}" / f"{number * 1000:020}.log").touch()
    return open_store(f"s3://{BUCKET}/many", bucket.options)


def objects_of(store: ObjectStore) -> Iterator[StoredObject]:
    with LiveListing(store) as listing:
        for batch in listing.batches():
            for row in batch.to_pylist():
                yield StoredObject(row["key"].decode(), row["size"], row["lastModifiedMs"], row["version"].decode())


def test_ranges_beside_each_other_make_the_listing_that_one_makes(many: ObjectStore) -> None:
    listed = list(objects_of(many))

    assert listed == [stored._replace(storage_class=None) for stored in many.list()]
    assert len(listed) == MANY


def test_an_inventory_in_a_bucket_is_as_good_as_listing_it(bucket: S3Bucket, captures: Path) -> None:
    cluster = captures / "kafka-4.3.1"
    folder = cluster / "remote" / "kafka-tiered-storage"
    for file in (file for file in folder.rglob("*") if file.is_file()):
        bucket.put(f"{ROOT}{file.relative_to(folder).as_posix()}", file.read_bytes())
    store = open_store(f"s3://{BUCKET}/{ROOT}", bucket.options)
    for name, data in s3_inventory([s3_row(stored) for stored in store.list()]).items():
        bucket.put(name, data)
    options = [word for name, value in bucket.options.items() for word in ("--store-option", f"{name}={value}")]
    scan = ("orphans", "scan", "--store", f"s3://{BUCKET}/{ROOT}", *options, "--layout", "local", "-o", "jsonl")
    metadata = ("--log-dir", cluster / "data", "--min-age", "0s")

    by_listing = this_process(*scan, *metadata)
    by_inventory = this_process(*scan, *metadata, "--inventory", f"s3://{BUCKET}/{S3_MANIFEST}")

    assert by_listing.exit_code == by_inventory.exit_code == 0, by_inventory.err
    assert sorted(by_inventory.out.splitlines()) == sorted(by_listing.out.splitlines())
