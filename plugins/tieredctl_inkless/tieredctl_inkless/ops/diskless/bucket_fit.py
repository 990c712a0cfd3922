"""Whether a bucket belongs to a control plane, and to it alone, by the objects that were listed so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.ops.remote.listing import record_batch
from tieredctl.ports.object_store import StoredObject
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE, FileKeys
from tieredctl_inkless.ops.diskless.judgement import COMMITTED_WITHIN_MS

_FEW = 10
"""So many uploads without a commit are what a few dead brokers leave."""
_MOST_PERCENT = 10


@dataclass(slots=True)
class BucketFit:
    """A `Fit` by the keys of a control plane's files. Times in ms."""

    subject: str
    keys: FileKeys
    """The keys of all its files."""
    young_since_ms: int
    """What was uploaded since is too young to be removed."""
    now_ms: int
    listed: int = 0
    _with_file: int = 0
    _recent: int = 0
    _recent_unknown: int = 0

    @property
    def is_sure(self) -> bool:
        return self._with_file > 0

    def look_at_planned(self, objects: Iterable[StoredObject]) -> int:
        return sum(1 for _ in objects)

    def look_at(self, objects: Sequence[StoredObject]) -> None:
        self.look_at_columns(record_batch(objects))

    def look_at_columns(self, objects: pa.RecordBatch) -> None:
        """Objects by LISTING_SCHEMA. Of those that were uploaded recently, and long enough ago to be committed, almost
        all have a file."""
        keys, modified_ms = objects.column("key"), numbers_in(objects.column("lastModifiedMs"))
        has_file = self.keys.numbers_of(keys) != NO_FILE
        _, are_uploads = self.keys.are_uploads(keys)
        is_recent = (self.young_since_ms < modified_ms) & (modified_ms < self.now_ms - COMMITTED_WITHIN_MS)
        self.listed += len(objects)
        self._with_file += int(has_file.sum())
        self._recent += int((is_recent & (has_file | are_uploads)).sum())
        self._recent_unknown += int((is_recent & are_uploads & ~has_file).sum())

    def demand(self) -> None:
        """Raises TieredctlError `no-overlap` where no object has a file, and `another-cluster` where too many of the
        young ones have none: somebody writes here whose commits this control plane does not get."""
        if self.listed and not self._with_file:
            message = f"The control plane has none of the objects in {self.subject}."
            raise TieredctlError(ErrorCode.NO_OVERLAP, message, hint="Check --store and --control-plane.")
        if self._recent_unknown > _FEW and self._recent_unknown * 100 > self._recent * _MOST_PERCENT:
            message = f"{self._recent_unknown} of the last {self._recent} objects that were uploaded to {self.subject}"
            message += " have no file in the control plane: another cluster may write there, or this is a copy."
            hint = "Give --control-plane the database that brokers commit to, and each cluster its own key prefix."
            raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, message, hint=hint)
