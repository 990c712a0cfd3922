"""Lists a bucket in one of three ways: `python -m benchmarks.list_bucket boto3|store|ranges ENDPOINT OBJECTS`."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from tieredctl.ops.orphans.live_listing import LiveListing
from tieredctl.storage.registry import open_store

LISTED_BUCKET = "tiered"
_PARTITIONS, _SEGMENTS = 100, 200
_SUFFIXES = ("indexes", "log", "rsm-manifest")


def fill_bucket(folder: Path) -> int:
    """Makes the bucket's objects, empty, as the server's own files. Returns their number."""
    for partition in range(_PARTITIONS):
        place = folder / f"topic{partition // 5}-{partition // 5:022}" / str(partition % 5)
        place.mkdir(parents=True)
        for segment in range(_SEGMENTS):
            for suffix in _SUFFIXES:
                (place / f"{segment * 1000:020}-{segment * 7919:022}.{suffix}").touch()
    return _PARTITIONS * _SEGMENTS * len(_SUFFIXES)


def _by_boto3(endpoint: str) -> int:
    import boto3
    from botocore.config import Config

    config = Config(s3={"addressing_style": "path"})
    client = boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", config=config)
    pages = client.get_paginator("list_objects_v2").paginate(Bucket=LISTED_BUCKET)
    return sum(len(page.get("Contents", ())) for page in pages)


def _by_store(endpoint: str) -> int:
    store = open_store(f"s3://{LISTED_BUCKET}", {"endpoint": endpoint, "addressing-style": "path"})
    return sum(1 for _ in store.list())


def _by_ranges(endpoint: str) -> int:
    store = open_store(f"s3://{LISTED_BUCKET}", {"endpoint": endpoint, "addressing-style": "path"})
    with LiveListing(store) as listing:
        return sum(len(batch) for batch in listing.batches())


_WAYS: dict[str, Callable[[str], int]] = {"boto3": _by_boto3, "store": _by_store, "ranges": _by_ranges}


def main() -> None:
    """Exits with 1 unless it finds OBJECTS objects."""
    way, endpoint, objects = sys.argv[1:]
    sys.exit(_WAYS[way](endpoint) != int(objects))


if __name__ == "__main__":
    main()
