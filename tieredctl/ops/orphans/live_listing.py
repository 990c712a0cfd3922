"""What a store lists now: by several ranges at once where that is quicker, and to be resumed where it was interrupted.

An object that was listed long ago is judged by metadata that is read after the listing ended, so that a listing which
took a day is as safe as one that took a minute: what has an owner by then is never called an orphan, and what was
written after the listing passed its key is missed.

Lists a store by several ranges of its keys at once, of which a checkpoint always knows how far they are.

Nobody knows beforehand where the keys are. One thread begins with all of them; one that has nothing to do divides a
range which has turned out to be long, between where its listing is and its end, and lists what follows.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import chain, islice
from operator import itemgetter
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Condition
from types import TracebackType

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.orphans.key_ranges import division
from tieredctl.ops.orphans.listing_checkpoint import ListingCheckpoint
from tieredctl.ops.remote.listing import Listing, SpooledListing, record_batch
from tieredctl.ports.object_store import ObjectStore, StoredObject

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


_AT_ONCE = 1_000
"""What a store gives for one request."""
_LONG = 8 * _AT_ONCE
"""A range that gave as many objects since it was last divided is worth the requests that dividing it takes."""
_KEPT_AT_MOST = 16 * _AT_ONCE
"""How many objects of a range are listed again after an interruption."""


@dataclass(slots=True, eq=False)
class _Range:
    number: int
    position: str
    """The last key that was taken: what comes before is listed."""
    last: str | None
    given: int = 0
    """Since it was last divided, or an attempt was made to."""
    is_being_divided: bool = False
    is_listed: bool = False
    unsaved: list[StoredObject] = field(default_factory=list)


class RangeListing:
    """Lists what a checkpoint has not listed yet."""

    def __init__(self, store: ObjectStore, checkpoint: ListingCheckpoint) -> None:
        self._store = store
        self._checkpoint = checkpoint
        self._waiting = [_Range(one.number, one.position, one.last) for one in checkpoint.unlisted()]
        self._active: list[_Range] = []
        self._is_stopped = False
        # Guards what is above, and the fields of the ranges but `unsaved`.
        self._changed = Condition()

    def run(self) -> None:
        """Lists to the end. If it ends early, for any reason, what was listed is in the checkpoint."""
        threads = max(self._store.parallel_reads, 1)
        with ThreadPoolExecutor(threads, "listing") as pool:
            futures = [pool.submit(self._work) for _ in range(threads)]
            try:
                wait(futures, return_when=FIRST_EXCEPTION)
            finally:
                self._stop()
        for future in futures:
            future.result()

    def _stop(self) -> None:
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _work(self) -> None:
        while range_and_objects := self._next():
            own, objects = range_and_objects
            try:
                self._list(own, objects)
            except BaseException:
                self._stop()
                raise
            finally:
                with self._changed:
                    self._active.remove(own)
                    self._changed.notify_all()

    def _next(self) -> tuple[_Range, Iterator[StoredObject]] | None:
        """A range to list, and its listing; None when there is nothing more to do."""
        while True:
            with self._changed:
                if self._is_stopped or not (self._waiting or self._active):
                    return None
                if self._waiting:
                    own = self._waiting.pop()
                    self._active.append(own)
                    return own, self._store.list(start_after=own.position)
                long = self._longest()
                if long is None:
                    self._changed.wait()
                    continue
                long.is_being_divided = True
            try:
                divided = self._divide(long)
            finally:
                with self._changed:
                    long.is_being_divided, long.given = False, 0
            if divided:
                return divided

    def _longest(self) -> _Range | None:
        long = [one for one in self._active if one.given >= _LONG and not one.is_being_divided]
        return max(long, key=lambda one: one.given, default=None)

    def _divide(self, long: _Range) -> tuple[_Range, Iterator[StoredObject]] | None:
        """Splits off the end of a range; None where nothing seems worth splitting off."""
        with self._changed:
            low, high = long.position, long.last
        following: Iterator[StoredObject] = iter(())
        first: StoredObject | None = None

        def first_after(edge: str) -> str | None:
            nonlocal following, first
            following = self._store.list(start_after=edge)
            first = next(following, None)
            return None if first is None else first.key

        cut = division(low, high, first_after)
        with self._changed:
            if cut is None or first is None or self._is_stopped or long.is_listed or long.position >= cut.edge:
                return None
            own = _Range(self._checkpoint.divide(long.number, cut.edge, cut.last), cut.edge, cut.last)
            long.last = cut.edge
            self._active.append(own)
            return own, chain([first], following)

    def _list(self, own: _Range, objects: Iterator[StoredObject]) -> None:
        try:
            while self._take(own, list(islice(objects, _AT_ONCE))):
                if len(own.unsaved) >= _KEPT_AT_MOST:
                    self._save(own)
        finally:
            self._save(own)
        if own.is_listed:
            self._checkpoint.finish(own.number)

    def _take(self, own: _Range, objects: list[StoredObject]) -> bool:
        """Keeps what is in the range; whether there may be more."""
        with self._changed:
            end = len(objects)
            if own.last is not None:
                end = bisect_right(objects, own.last, key=itemgetter(0))
            own.unsaved += objects[:end]
            own.given += end
            own.position = objects[end - 1].key if end else own.position
            if own.given >= _LONG:
                self._changed.notify()
            own.is_listed = end < _AT_ONCE
            return not (own.is_listed or self._is_stopped)

    def _save(self, own: _Range) -> None:
        if own.unsaved:
            self._checkpoint.add(own.number, own.unsaved[0].key, record_batch(own.unsaved), own.unsaved[-1].key)
            own.unsaved = []
