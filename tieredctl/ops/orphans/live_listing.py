"""What a store lists now: by several ranges at once where that is quicker, and to be resumed where it was interrupted.

An object that was listed long ago is judged by metadata that is read after the listing ended, so that a listing which
took a day is as safe as one that took a minute: what has an owner by then is never called an orphan, and what was
written after the listing passed its key is missed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint
from tieredctl.ops.orphans.range_listing import RangeListing
from tieredctl.ops.remote.listing import Listing, SpooledListing
from tieredctl.ports.object_store import ObjectStore

_ROWS_AT_ONCE = 1 << 18


def live_listing(store: ObjectStore) -> Listing:
    """What a store lists when this is entered, in the way that is quickest for it."""
    return LiveListing(store) if store.parallel_reads > 1 else SpooledListing(store.list())


class LiveListing:
    """A store's listing by several ranges at once, in a temporary file, made when this is entered."""

    def __init__(self, store: ObjectStore) -> None:
        self._store = store

    def __enter__(self) -> LiveListing:
        with ExitStack() as stack:
            folder = stack.enter_context(TemporaryDirectory(prefix="tieredctl-listing-"))
            self._checkpoint = ListingCheckpoint(Path(folder, "checkpoint"), self._store.url, 0)
            stack.callback(self._checkpoint.close)
            RangeListing(self._store, self._checkpoint).run()
            self._kept = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._kept.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        return _in_large_batches(self._checkpoint)


class ResumableListing:
    """A store's listing in a named file, which is removed after success: with what was listed before an
    interruption, the listing continues."""

    def __init__(self, store: ObjectStore, identity: str, file: Path, now_ms: int, oldest_ms: int) -> None:
        """`identity` distinguishes the store from others. `now_ms` is when the listing begins if it does; a listing
        that began before `oldest_ms` is refused."""
        self._store = store
        self._identity = identity
        self._file = file
        self._now_ms = now_ms
        self._oldest_ms = oldest_ms

    def __enter__(self) -> ResumableListing:
        """Raises TieredctlError `checkpoint-unusable` for a checkpoint of another store or from too long ago, and as
        `ListingCheckpoint` does."""
        self._checkpoint = ListingCheckpoint(self._file, self._identity, self._now_ms)
        try:
            self._demand_usable()
            RangeListing(self._store, self._checkpoint).run()
        except BaseException:
            self._checkpoint.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._checkpoint.remove()
        else:
            self._checkpoint.close()

    def batches(self) -> Iterator[pa.RecordBatch]:
        return _in_large_batches(self._checkpoint)

    def _demand_usable(self) -> None:
        if self._checkpoint.store != self._identity:
            message = f"{self._file} belongs to a listing of {self._checkpoint.store}, not {self._identity}."
            raise TieredctlError(ErrorCode.CHECKPOINT_UNUSABLE, message)
        if self._checkpoint.began_ms < self._oldest_ms:
            message = f"{self._file} belongs to a listing that began longer ago than --min-age."
            raise TieredctlError(ErrorCode.CHECKPOINT_UNUSABLE, message)


def _in_large_batches(checkpoint: ListingCheckpoint) -> Iterator[pa.RecordBatch]:
    """Batches of a size that columns handle quickly."""
    kept: list[pa.RecordBatch] = []
    for batch in checkpoint.batches():
        kept.append(batch)
        if sum(len(one) for one in kept) >= _ROWS_AT_ONCE:
            yield pa.concat_batches(kept)
            kept = []
    if kept:
        yield pa.concat_batches(kept)
