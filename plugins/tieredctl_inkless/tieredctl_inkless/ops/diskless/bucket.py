"""A bucket and its control plane, read in the one safe order, and whether they belong together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import islice

import numpy as np
import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Ints
from tieredctl.model.counted import counted
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.remote.listing import Listing
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process import steady_time
from tieredctl_inkless.diskless.control_plane import ControlPlane, ControlPlaneTables
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, Partitions, ProducerRows, numbered
from tieredctl_inkless.ops.diskless.file_check import FileRows, file_rows
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE

NOT_LISTED = -1
_ASKED_BY_NAME = 16
"""How many files' objects are asked for before a bucket is called another one's: a listing may be older than they."""


@dataclass(frozen=True, slots=True)
class DisklessBucket:
    """A bucket, and what was read of its control plane after it had been listed, in columns."""

    store: ObjectStore
    listing: Listing
    """Put aside in a file: going through it takes no memory."""
    control_plane: ControlPlane
    tables: ControlPlaneTables
    partitions: Partitions
    rows: BatchRows
    producers: ProducerRows
    files: FileRows
    sizes: Ints
    """The size of each file's object as listed, in bytes; NOT_LISTED where it was not."""
    listed_ms: int
    """When the listing began."""
    passed_over: list[str] = field(default_factory=list)
    """The keys of objects that the listing lacked, though they were there long before, once that was asked."""

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All objects by LISTING_SCHEMA, by ascending key; tieredctl's own are left out."""
        return UnreservedObjects(self.listing).batches()


@contextmanager
def read_bucket(store: ObjectStore, control_plane: ControlPlane) -> Iterator[DisklessBucket]:
    """Lists the bucket, then reads the control plane: what had a file while it was listed has it in what is read.

    Raises TieredctlError as both do.
    """
    listed_ms = steady_time.now_ms()
    with live_listing(store) as listing:
        tables = control_plane.tables()
        partitions, rows, producers = numbered(tables)
        files = file_rows(tables, rows)
        sizes = np.full(len(files.ids), NOT_LISTED, np.int64)
        bucket = DisklessBucket(
            *(store, listing, control_plane, tables, partitions, rows, producers, files, sizes), listed_ms
        )
        for batch in bucket.batches():
            numbers = files.keys.numbers_of(batch.column("key"))
            is_file = numbers != NO_FILE
            sizes[numbers[is_file]] = numbers_in(batch.column("size"))[is_file]
        yield bucket


def demand_overlap(bucket: DisklessBucket) -> None:
    """Raises TieredctlError `no-overlap` where the control plane has files with batches, and the bucket none of all its
    files: neither names the other, so this is another bucket, prefix or cluster, or all was deleted."""
    if (bucket.sizes != NOT_LISTED).any():
        return
    files = bucket.files
    promised = np.flatnonzero(files.batch_counts).tolist()
    if not promised or any(bucket.store.head(files.keys[number]) for number in islice(promised, _ASKED_BY_NAME)):
        return
    message = f"{bucket.store.url} has none of the {counted(len(promised), 'object')} that the control plane promises: "
    message += "it is another bucket or prefix, or everything in it was deleted."
    raise TieredctlError(ErrorCode.NO_OVERLAP, message, hint="Check --store and --control-plane.")


def demand_listed(bucket: DisklessBucket) -> None:
    """Raises TieredctlError as `demand_listing` does."""
    files = bucket.files
    promised = (files.keys[number] for number in np.flatnonzero(files.batch_counts).tolist())
    demand_listing(bucket.store, bucket.batches(), promised)


def demand_listing(store: ObjectStore, listed: Iterable[pa.RecordBatch], promised: Iterable[str]) -> None:
    """Raises TieredctlError `unreadable` where nothing was listed in a store that has promised objects when it is asked
    for them by name: such a listing says nothing of what else is there."""
    if any(len(batch) for batch in listed):
        return
    for key in islice(promised, _ASKED_BY_NAME):
        if store.head(key) is not None:
            message = f"{store.url} listed no object, and has {key} when it is asked for it by name."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Run it again.")
