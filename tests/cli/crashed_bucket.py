"""A bucket on a real server with what a crashed cluster left in its remote store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import CAPTURE, ENOUGH, NO_AGE, CrashedCluster, broker_of, objects_in
from tests.rigs.buckets import BUCKET, Bucket
from tieredctl.ports.object_store import RESERVED_FOLDER

ROOT = "crashed/"
OF_EACH_PARTITION = 18
STUCK, UNFINISHED = 18, 7
"""How many of a bucket's objects are orphaned, by cause: delete-never-finished and copy-never-finished."""
CONTENT_TYPE = "application/x-segment"


def crashed_contents(captures: Path) -> Mapping[str, bytes]:
    """The first objects of each partition of the crashed cluster."""
    objects = objects_in(captures / CAPTURE / "bucket")
    partitions = groupby(sorted(objects), lambda key: key.rpartition("/")[0])
    chosen = [key for _, keys in partitions for key in islice(keys, OF_EACH_PARTITION)]
    return {key: objects[key] for key in chosen}


def store_words(bucket: Bucket, endpoint: str | None = None) -> Sequence[str]:
    """The options that name the bucket as a store; by way of another endpoint where one is given."""
    options = bucket.options | ({} if endpoint is None else {"endpoint": endpoint})
    words = [word for name, value in options.items() for word in ("--store-option", f"{name}={value}")]
    return ("--store", f"{bucket.scheme}://{BUCKET}/{ROOT}", *words)


class Described(NamedTuple):
    """An object with all that a client can see of it."""

    data: bytes
    content_type: str
    metadata: Mapping[str, str]


@dataclass(frozen=True)
class FilledBucket:
    """A bucket with the capture's objects, each with metadata of its own."""

    bucket: Bucket
    contents: Mapping[str, bytes]

    def fill(self) -> None:
        """Puts what is not there."""
        self._each(self._put, sorted(set(self.contents) - set(self.keys())))

    def empty(self) -> None:
        """Removes what is there."""
        self._each(lambda key: self.bucket.remove(ROOT + key), self.keys())

    def keys(self) -> list[str]:
        return [name.removeprefix(ROOT) for name in self.bucket.names(ROOT)]

    def name(self, key: str) -> str:
        """An object's whole name in the bucket."""
        return ROOT + key

    def kept(self) -> dict[str, Described]:
        """All objects but tieredctl's own."""
        keys = [key for key in self.keys() if not key.startswith(RESERVED_FOLDER)]
        return dict(zip(keys, self._each(self._described, keys), strict=True))

    def in_quarantine(self) -> list[str]:
        return [key for key in self.keys() if key.startswith(RESERVED_FOLDER + "quarantine/")]

    def as_filled(self) -> dict[str, Described]:
        return {key: Described(data, CONTENT_TYPE, _metadata(key)) for key, data in self.contents.items()}

    def _put(self, key: str) -> None:
        self.bucket.put(ROOT + key, self.contents[key], CONTENT_TYPE, **_metadata(key))

    def _described(self, key: str) -> Described:
        return Described(self.bucket.read(ROOT + key), *self.bucket.described(ROOT + key))

    def _each(self, what: Callable[[str], Any], keys: Sequence[str]) -> list[Any]:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(what, keys))


def planned_cluster(
    tieredctl: Tieredctl, captures: Path, bucket: FilledBucket, endpoint: str | None, folder: Path
) -> CrashedCluster:
    """With a plan that has not been used, for a store behind a proxy if one is given."""
    store = store_words(bucket.bucket, endpoint)
    cluster = CrashedCluster(tieredctl, broker_of(captures / CAPTURE), folder, store)
    assert cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished").exit_code == 0
    return cluster


def _metadata(key: str) -> dict[str, str]:
    return {"part": key.rpartition(".")[2]}
