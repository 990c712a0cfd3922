"""What the control plane says now about objects that are planned to be removed: each question is of one moment.

Only the primary of the database that the plan was made by is believed, and only while its clock agrees with this
host's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Flags
from tieredctl.model.ownership import DisklessCause, ObjectStatus
from tieredctl.model.removal import PlanRecord
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.owners import Found
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.ops.orphans.reserved import UnreservedObjects
from tieredctl.ops.remote.listing import record_batch
from tieredctl.ports.object_store import RESERVED_FOLDER, ObjectStore, StoredObject, WritableObjectStore
from tieredctl_inkless.diskless.control_plane import KEYS_AT_ONCE, ControlPlane, ControlPlaneTables, FoundFiles
from tieredctl_inkless.ops.diskless.batch_rows import column
from tieredctl_inkless.ops.diskless.bucket_fit import BucketFit
from tieredctl_inkless.ops.diskless.doubt import demand_primary, demand_sound
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE, FileKeys
from tieredctl_inkless.ops.diskless.judgement import Judge, JudgedObject
from tieredctl_inkless.ops.diskless.moment import moment_of

LAYOUT = "inkless"
"""How plans, receipts and the ledger name the way in which Inkless makes keys."""
REMOVABLE = frozenset({DisklessCause.NO_METADATA, DisklessCause.DELETE_NEVER_FINISHED})
"""What may be removed. A file whose batches are gone without a mark is damage in the control plane, not a leftover: its
batches may come back with a backup."""


@dataclass(slots=True)
class FreshControlPlane:
    """`Owners` by the control plane that brokers commit to."""

    control_plane: ControlPlane
    min_age_ms: int
    clock_ms: Callable[[], int]
    """The host's."""
    database: str | None = None
    """The one that has to answer; None for whichever answers first."""
    written: int = 0
    """How many bytes it had written to its log at least."""
    _all_keys: FileKeys | None = None
    _have_batches: Flags = field(default_factory=lambda: np.zeros(0, np.bool_))
    """Whether each of all files has batches, by the same reading."""

    @property
    def layout_name(self) -> str:
        return LAYOUT

    def refresh(self) -> None:
        """Reads all tables, once: each later question is asked again, so that nothing has to be refreshed for it."""
        if self._all_keys is None:
            tables = self.control_plane.tables()
            demand_sound(tables)
            self.take(tables)

    def take(self, tables: ControlPlaneTables) -> None:
        """What was just read, and found to be sound. Raises TieredctlError `control-plane-doubtful` where another
        database answers now."""
        self._ask([])
        self._all_keys = FileKeys(tables.files["objectKey"])
        self._have_batches = np.isin(column(tables.files, "fileId"), column(tables.batches, "fileId"))

    def judged(self, objects: Iterable[StoredObject]) -> Iterator[JudgedObject]:
        """Each object with the verdict of now."""
        assert self._all_keys is not None
        many = iter(objects)
        while batch := list(islice(many, KEYS_AT_ONCE)):
            answer = self._ask([one.key for one in batch])
            judged = Judge(moment_of(answer, self._all_keys), self.min_age_ms).judged(record_batch(batch))
            yield from judged.objects(np.arange(len(batch)))

    def statuses(self, objects: Iterable[StoredObject]) -> list[ObjectStatus]:
        """What looks orphaned and is damage is unknown."""
        return [
            ObjectStatus.UNKNOWN if one.status is ObjectStatus.ORPHAN and one.cause not in REMOVABLE else one.status
            for one in self.judged(objects)
        ]

    def knows(self, objects: Iterable[StoredObject]) -> bool:
        assert self._all_keys is not None
        keys = record_batch([*objects]).column("key")
        return bool((self._all_keys.numbers_of(keys) != NO_FILE).any())

    def missing(self, store: ObjectStore) -> list[str]:
        assert self._all_keys is not None
        unlisted = self._have_batches.copy()
        with live_listing(store) as listing:
            for batch in UnreservedObjects(listing).batches():
                numbers = self._all_keys.numbers_of(batch.column("key"))
                unlisted[numbers[numbers != NO_FILE]] = False
        keys = [self._all_keys[number] for number in np.flatnonzero(unlisted).tolist()]
        answers = in_parallel(store, store.head, keys)
        return self.still_promised([key for key, stored in zip(keys, answers, strict=True) if stored is None])

    def still_promised(self, keys: Sequence[str]) -> list[str]:
        """The keys whose files have batches now."""
        promised = list[str]()
        for first in range(0, len(keys), KEYS_AT_ONCE):
            files = self._ask(keys[first : first + KEYS_AT_ONCE]).files
            promised += [key for key, file in files.items() if file.batch_count]
        return promised

    def modified_ms(self, stored: StoredObject) -> int:
        return stored.last_modified_ms

    def fit(self, subject: str) -> BucketFit:
        assert self._all_keys is not None
        now_ms = self.clock_ms()
        return BucketFit(subject, self._all_keys, now_ms - self.min_age_ms, now_ms)

    def demand_removable(self, batch: Sequence[Found], limits: Limits) -> None:
        """Ages are demanded by two clocks: by the control plane's in the verdict, and by this host's, which agrees
        with the store's."""
        oldest_young_ms = self.clock_ms() - limits.min_age_ms
        verdicts = self.judged(stored for _, stored in batch)
        for (planned, stored), one in zip(batch, verdicts, strict=True):
            if one.status.value != planned.status or planned.key.startswith(RESERVED_FOLDER):
                message = f"{planned.key} was {planned.status}, and is now {one.status.value}."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
            if one.cause not in REMOVABLE:
                message = f"{planned.key} is not to be removed: {one.cause or one.status.value}."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Look at it with `diskless orphans scan`.")
            if stored.last_modified_ms > oldest_young_ms:
                message = f"{planned.key} is younger than the minimum age."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Wait, or give another --min-age.")

    def demand_endable(self, uploads: Sequence[StoredObject], _limits: Limits, /) -> None:
        """No upload of Inkless's has parts: whatever a plan names, it belongs to somebody else."""
        for upload in uploads:
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"An upload of {upload.key} may still be completed.")

    def announce(self, _store: WritableObjectStore, _doomed: Sequence[StoredObject], _lease: Hold, /) -> None:
        """Readers are not told."""

    def conclude(self, _store: WritableObjectStore, _gone: Iterable[str], _lease: Hold, /) -> None:
        """Nor of the end."""

    def is_read(self, _key: str, /) -> bool | None:
        return True

    def may_be_purged(self, _key: str, status: ObjectStatus, _record: PlanRecord | None, /) -> bool:
        return status is ObjectStatus.ORPHAN

    def _ask(self, keys: Sequence[str]) -> FoundFiles:
        """Raises TieredctlError `control-plane-doubtful` for a standby, and for another database than before, and
        `clock-skew`."""
        answer = self.control_plane.files_of(keys)
        demand_primary(is_standby=answer.database is None)
        if self.database is None:
            self.database = answer.database
        if answer.database != self.database or answer.written < self.written:
            message = "This control plane is not the one that was asked before, or was restored or promoted since."
            hint = "If it is the one that brokers commit to, make a new plan."
            raise TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, message, hint=hint)
        self.written = answer.written
        apart_ms = abs(answer.read_ms - self.clock_ms())
        if apart_ms > MOST_SKEW_MS:
            message = f"The clocks of the control plane and of this host are {apart_ms // 60_000} minutes apart."
            raise TieredctlError(ErrorCode.CLOCK_SKEW, message)
        return answer
