"""What a job on a cluster marked as orphaned: claims, of which only the keys are used.

Whoever can write to the mark's folder can name any object. So each is looked up in the store, and judged by metadata
that is read after that, as if a listing had named it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import blake2b
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.key_text import key_text
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.still_there import found_now
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ports.object_store import ObjectStore, StoredObject

SUMMARY, CANDIDATES, KIND = "summary.json", "candidates", "OrphanMark"
_LARGEST_SUMMARY_BYTES = 1 << 20
_LARGEST_FILE_BYTES = 1 << 33
_MOST_AGE_MS = 7 * 24 * 3_600_000
_CLOCK_SKEW_MS = 3_600_000
_AT_ONCE = 10_000
_MOST_FILES = 100
_DIGEST_BYTES = 16


@dataclass(frozen=True, slots=True)
class Mark:
    """A mark that is finished, of the right store, and not old."""

    folder: ObjectStore
    marked_ms: int
    candidates: int
    """How many rows there have to be."""
    cluster_id: str | None

    def demand_cluster(self, cluster_id: str | None) -> None:
        """Raises TieredctlError `mark-unusable` if it was made by the metadata of another cluster; None: not known."""
        if None not in (cluster_id, self.cluster_id) and cluster_id != self.cluster_id:
            message = f"It was made for cluster {self.cluster_id}, but the metadata belongs to {cluster_id}"
            raise _unusable(self.folder, message)

    def objects(self, store: ObjectStore) -> Iterator[StoredObject]:
        """What the store has now under the keys that are marked. Raises TieredctlError `mark-unusable` where candidates
        are missing or cannot be read."""
        keys = self._keys()
        while some := list(islice(keys, _AT_ONCE)):
            yield from found_now(store, some)

    def describe(self) -> Document:
        """The description for the `source` of a JSON document."""
        return {"folder": self.folder.url, "marked": iso_8601(self.marked_ms), "candidates": self.candidates}

    def _keys(self) -> Iterator[str]:
        count, digests = 0, set[bytes]()
        for stored in self.folder.list(f"{CANDIDATES}/"):
            if not stored.key.endswith(".parquet"):
                continue
            for key in self._keys_in(stored):
                count += 1
                digest = blake2b(key, digest_size=_DIGEST_BYTES).digest()
                if digest not in digests:
                    digests.add(digest)
                    yield key_text(key)
        if count != self.candidates:
            raise _unusable(self.folder, f"It has {count} candidates, but its summary gives {self.candidates}")

    def _keys_in(self, stored: StoredObject) -> Iterator[bytes]:
        import pyarrow.parquet as pq

        if stored.size > _LARGEST_FILE_BYTES:
            raise _unusable(self.folder, f"{stored.key} has {size_text(stored.size)}")
        with TemporaryDirectory(prefix="tieredctl-mark-") as temporary:
            copy = Path(temporary, "candidates.parquet")
            with copy.open("wb") as file:
                file.writelines(self.folder.stream(stored.key))
            try:
                batches: Iterable[pa.RecordBatch] = pq.ParquetFile(copy).iter_batches(columns=["key"])
                for batch in batches:
                    keys = batch.column("key").cast(pa.binary())
                    if keys.null_count:
                        raise _unusable(self.folder, f"{stored.key} has rows without a key")
                    yield from keys.to_pylist()
            except (pa.ArrowException, KeyError, OSError, AttributeError) as error:
                reason = str(error).splitlines()[0] if str(error) else type(error).__name__
                raise _unusable(self.folder, f"{stored.key} cannot be read: {reason[:200].rstrip('.')}") from None


def read_mark(folder: ObjectStore, store_url: str, now_ms: int) -> Mark:
    """The mark in a folder. Raises TieredctlError `mark-unusable` for one that is not finished, of another store, or
    from longer than a week before `now_ms`."""
    try:
        document: Any = json.loads(_summary(folder))
        summary = document["summary"]
        if document["kind"] == KIND and summary["success"] is not True:
            raise _unusable(folder, "It is not finished")
        source, is_mark = document["source"], document["kind"] == KIND
        marked_ms, candidates = int(summary["markedMs"]), int(summary["candidates"])
        url, cluster_id = str(source["store"]), source["clusterId"]
    except (ValueError, KeyError, TypeError, AttributeError):
        raise _unusable(folder, f"{SUMMARY} is not that of a mark") from None
    if not is_mark:
        raise _unusable(folder, f"{SUMMARY} is not that of a mark")
    if url.rstrip("/") != store_url.rstrip("/"):
        raise _unusable(folder, f"It is of {url}, not {store_url}")
    if not -_CLOCK_SKEW_MS <= now_ms - marked_ms <= _MOST_AGE_MS:
        raise _unusable(folder, f"It was made at {iso_8601(marked_ms)}, not within the last week")
    return Mark(folder, marked_ms, candidates, cluster_id if isinstance(cluster_id, str) else None)


def _summary(folder: ObjectStore) -> bytes:
    """A file, or a folder with a part that Spark wrote, and with `_SUCCESS` once it was written."""
    there = [stored.key for stored in islice(folder.list(SUMMARY), _MOST_FILES)]
    parts = [key for key in there if key.startswith(f"{SUMMARY}/part-")]
    if SUMMARY in there:
        parts = [SUMMARY]
    elif f"{SUMMARY}/_SUCCESS" not in there or len(parts) != 1:
        raise _unusable(folder, "It is not finished, or there is none")
    return folder.read(parts[0], 0, _LARGEST_SUMMARY_BYTES + 1)


def _unusable(folder: ObjectStore, why: str) -> TieredctlError:
    return TieredctlError(ErrorCode.MARK_UNUSABLE, f"The mark in {folder.url} cannot be used: {why}.")
