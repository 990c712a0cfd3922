"""A bucket and its control plane, read in the one safe order, and whether they belong together."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice

from tieredctl.diskless.control_plane import ControlPlane, ControlPlaneTables
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.diskless.batch_rows import column
from tieredctl.storage.protocol import ObjectStore, StoredObject, list_unreserved

_ASKED_BY_NAME = 16
"""How many files' objects are asked for before a bucket is called another one's: a listing may be older than they."""


@dataclass(frozen=True, slots=True)
class DisklessBucket:
    """A bucket, and what was read of its control plane after it had been listed."""

    store: ObjectStore
    listed: dict[str, StoredObject]
    control_plane: ControlPlane
    tables: ControlPlaneTables


def read_bucket(store: ObjectStore, control_plane: ControlPlane) -> DisklessBucket:
    """Lists the bucket, then reads the control plane: what had a file while it was listed has it in what is read.

    Raises TieredctlError as both do.
    """
    listed = {stored.key: stored for stored in list_unreserved(store)}
    return DisklessBucket(store, listed, control_plane, control_plane.tables())


def demand_overlap(bucket: DisklessBucket) -> None:
    """Raises TieredctlError `no-overlap` where the control plane has files with batches, and the bucket none of all its
    files: neither names the other, so this is another bucket, prefix or cluster, or all was deleted."""
    files = bucket.tables.files
    keys = files["objectKey"].to_pylist()
    if any(key in bucket.listed for key in keys):
        return
    needed = set(column(bucket.tables.batches, "fileId").tolist())
    promised = [key for key, file in zip(keys, column(files, "fileId").tolist(), strict=True) if file in needed]
    if not promised or any(bucket.store.head(key) for key in islice(promised, _ASKED_BY_NAME)):
        return
    message = f"{bucket.store.url} has none of the {counted(len(promised), 'object')} that the control plane promises: "
    message += "it is another bucket or prefix, or everything in it was deleted."
    raise TieredctlError(ErrorCode.NO_OVERLAP, message, hint="Check --store and --control-plane.")
