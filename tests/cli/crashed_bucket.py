"""A bucket on a real server with what a crashed cluster left in its remote store."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby, islice
from pathlib import Path
from typing import Any, NamedTuple

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import CAPTURE, ENOUGH, NO_AGE, CrashedCluster, broker_of, objects_in
from tests.metadata_logs import write_log
from tests.rigs.buckets import BUCKET, Bucket
from tieredctl.formats.metadata_records import decode_event
from tieredctl.formats.record_batches import Record, encode_batch, read_batch_header, read_records
from tieredctl.ports.object_store import RESERVED_FOLDER

ROOT = "crashed/"
SEGMENTS_OF_EACH = 6
STUCK, UNFINISHED = 18, 9
"""How many of a bucket's objects are orphaned, by cause: delete-never-finished and copy-never-finished."""
CONTENT_TYPE = "application/x-segment"


def crashed_contents(captures: Path) -> Mapping[str, bytes]:
    """The objects of each partition's first segments, with those of each segment's other copies."""
    objects = objects_in(captures / CAPTURE / "bucket")
    chosen: list[str] = []
    for _, keys in groupby(sorted(objects), lambda key: key.rpartition("/")[0]):
        for _, copies in islice(groupby(keys, _start), SEGMENTS_OF_EACH):
            chosen += copies
    return {key: objects[key] for key in chosen}


def _start(key: str) -> str:
    """The offset that a segment starts at, by its key."""
    return key.rpartition("/")[2].partition("-")[0]


def broker_of_bucket(captures: Path, contents: Mapping[str, bytes]) -> Path:
    """The log directory of a broker that copied these objects of the crashed cluster, and no others: with all that the
    capture's metadata promises, each command would ask the server for a thousand objects that are not there."""
    capture = captures / CAPTURE
    objects = objects_in(capture / "bucket")
    left_out = _segments(objects) - _segments(contents)
    other_partitions = _partitions(objects) - _partitions(contents)
    name = f"{zlib.crc32(' '.join(sorted(left_out)).encode()):x}"
    folder = captures.with_name("brokers-of-buckets") / name / "broker"
    if not folder.exists():
        folder.mkdir(parents=True)
        for entry in broker_of(capture).iterdir():
            if entry.name.startswith("__remote_log_metadata-"):
                kept = [record for record in _records(entry) if _segment_of(record) not in left_out]
                renumbered = (record._replace(offset=offset) for offset, record in enumerate(kept))
                number = int(entry.name.rpartition("-")[2])
                write_log(folder, number, [encode_batch([record]) for record in renumbered])
                (folder / entry.name / "partition.metadata").symlink_to(entry / "partition.metadata")
            # The checkpoints tell where the metadata's logs ended, and a partition's log that it has lost events.
            elif not entry.match("re*-offset-checkpoint") and entry.name not in other_partitions:
                (folder / entry.name).symlink_to(entry)
    return folder


def _segments(keys: Iterable[str]) -> set[str]:
    return {key.rpartition(".")[0].rpartition("/")[2].partition("-")[2] for key in keys}


def _partitions(keys: Iterable[str]) -> set[str]:
    """Named like the folders of their logs."""
    return {f"{key.split('/')[1][:-23]}-{key.split('/')[2]}" for key in keys}


def _records(metadata_partition: Path) -> Iterator[Record]:
    (file,) = metadata_partition.glob("*.log")
    log, position = file.read_bytes(), 0
    while position < len(log):
        header = read_batch_header(log, position, len(log))
        yield from read_records(log, position, header)
        position += header.size


def _segment_of(record: Record) -> str | None:
    assert record.value is not None
    return getattr(decode_event(record.value), "segment_id", None)


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

    def refill(self) -> None:
        """Makes it hold the capture's objects alone, and writes none of them that is as it was filled."""
        there, filled = self.keys(), self.as_filled()
        found = dict(zip(there, self._each(self._described, there), strict=True))
        self._each(lambda key: self.bucket.remove(ROOT + key), [key for key in there if key not in filled])
        self._each(self._put, [key for key, one in filled.items() if found.get(key) != one])

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
        return Described(*self.bucket.whole(ROOT + key))

    def _each(self, what: Callable[[str], Any], keys: Sequence[str]) -> list[Any]:
        with ThreadPoolExecutor(8) as threads:
            return list(threads.map(what, keys))


def planned_cluster(
    tieredctl: Tieredctl, captures: Path, bucket: FilledBucket, endpoint: str | None, folder: Path
) -> CrashedCluster:
    """With a plan that has not been used, for a store behind a proxy if one is given."""
    store = store_words(bucket.bucket, endpoint)
    cluster = CrashedCluster(tieredctl, broker_of_bucket(captures, bucket.contents), folder, store)
    assert cluster.plan(*ENOUGH, *NO_AGE, "--cause", "copy-never-finished").exit_code == 0
    return cluster


def _metadata(key: str) -> dict[str, str]:
    return {"part": key.rpartition(".")[2]}
