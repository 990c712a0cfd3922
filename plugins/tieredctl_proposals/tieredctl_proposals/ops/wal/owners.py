"""The owners of combined objects, as the remover asks: what nobody needs is an orphan, and everything else is owned.

The event log is told before an object goes, so that no upload of its segments can end any more, and in the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.removal import PlanRecord
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.lease import Hold
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.owners import Found
from tieredctl.ports.object_store import ObjectStore, StoredObject, WritableObjectStore, list_unreserved
from tieredctl_proposals.ops.wal.contents import combined_id_of
from tieredctl_proposals.ops.wal.event_log import EventLog
from tieredctl_proposals.ops.wal.need import FreshNeeds, Needs
from tieredctl_proposals.ops.wal.own_index import with_all_judged
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.steps import DeleteObject, Publish

LAYOUT = "wal"
"""In receipts and the ledger, where other plans have a layout's name."""
_CLEANER = -1
"""The broker id of events that no broker writes."""


@dataclass(slots=True)
class CombinedObjectsFit:
    """A `Fit`: a store has the events of its own objects. Only combined objects count."""

    listed: int = 0
    is_sure: bool = True

    def look_at_planned(self, objects: Iterable[StoredObject]) -> int:
        return sum(1 for _ in objects)

    def look_at(self, objects: Sequence[StoredObject]) -> None:
        self.listed += sum(combined_id_of(one.key) is not None for one in objects)

    def demand(self) -> None:
        """Whether the metadata is of the same cluster is demanded where it is read."""


@dataclass(slots=True)
class WalOwners:
    """`Owners` by the events of a store, remote storage's metadata and the cluster."""

    fresh: FreshNeeds
    clock_ms: Callable[[], int]
    eventless: Sequence[str] = ()
    """The ids of objects that are gone, and whose events are to say so as well."""
    events: int = field(default=0, init=False)
    """How many were written."""
    _needs: Needs | None = field(default=None, init=False)

    @property
    def layout_name(self) -> str:
        return LAYOUT

    @property
    def needs(self) -> Needs:
        """What is needed, as of the last `refresh`."""
        assert self._needs is not None
        return self._needs

    def refresh(self) -> None:
        self._needs = self.fresh.judge()

    def statuses(self, objects: Iterable[StoredObject]) -> list[ObjectStatus]:
        return [self._status(one.key) for one in objects]

    def knows(self, objects: Sequence[StoredObject]) -> bool:
        return any(self._status(one.key) is not ObjectStatus.UNKNOWN for one in objects)

    def missing(self, store: ObjectStore) -> list[str]:
        readable = {object_key(one.combined_segment_id) for one in self.needs.events.segments() if one.is_readable}
        unlisted = sorted(readable - {stored.key for stored in list_unreserved(store)})
        absent = [key for key in unlisted if store.head(key) is None]
        self.refresh()
        return [key for key in absent if self._status(key) is ObjectStatus.OWNED]

    def modified_ms(self, stored: StoredObject) -> int:
        return stored.last_modified_ms

    def fit(self, _subject: str) -> CombinedObjectsFit:
        return CombinedObjectsFit()

    def demand_removable(self, batch: Sequence[Found], limits: Limits) -> None:
        """Raises TieredctlError also where an object has a segment that was not judged: only its own index tells."""
        oldest_young_ms = self.clock_ms() - limits.min_age_ms
        for planned, stored in batch:
            self._demand_unneeded(planned.key)
            if stored.last_modified_ms > oldest_young_ms:
                message = f"{planned.key} is younger than the minimum age."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Wait, or give another --min-age.")
        there = [(_id_of(stored.key), stored) for _, stored in batch]
        judged = with_all_judged(self.fresh.store, self.needs, there).may_go
        for combined_id, stored in there:
            if combined_id not in judged:
                message = f"{stored.key} has segments in it that no event tells of."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def demand_endable(self, uploads: Sequence[StoredObject], _limits: Limits, /) -> None:
        """No upload of an object has parts: whatever a plan names, it belongs to somebody else."""
        for upload in uploads:
            raise TieredctlError(ErrorCode.WORLD_CHANGED, f"An upload of {upload.key} may still be completed.")

    def announce(self, store: WritableObjectStore, doomed: Sequence[StoredObject], lease: Hold, /) -> None:
        if not doomed:
            return
        lease.renew()
        log = self._log(store)
        for stored in doomed:
            self._publish(log, self._steps(_id_of(stored.key))[0])

    def conclude(self, store: WritableObjectStore, gone: Iterable[str], lease: Hold, /) -> None:
        """Whoever finds an object in its place after all leaves it to the next run: its upload may have gone on until
        its deletion was announced."""
        ids = list(dict.fromkeys([*map(_id_of, gone), *self.eventless]))
        if not ids:
            return
        there = in_parallel(store, lambda one: store.head(object_key(one)) is not None, ids)
        lease.renew()
        log, needed = self._log(store), [one for one in ids if one not in self.needs.may_go]
        for combined_id, is_there in zip(ids, there, strict=True):
            if combined_id not in needed:
                announced, concluded = self._steps(combined_id)
                self._publish(log, [*announced, *([] if is_there else concluded)])
        for combined_id in needed:
            self._demand_unneeded(object_key(combined_id))

    def is_read(self, _key: str, /) -> bool | None:
        """No reader asks for what was announced as deleted."""
        return False

    def may_be_purged(self, key: str, status: ObjectStatus, _record: PlanRecord | None, /) -> bool:
        is_concluded = status is ObjectStatus.ORPHAN and self.needs.is_concluded(_id_of(key))
        return is_concluded and self.fresh.store.head(key) is None

    def _status(self, key: str) -> ObjectStatus:
        combined_id = combined_id_of(key)
        if combined_id is None or not self.needs.has_events_of(combined_id):
            return ObjectStatus.UNKNOWN
        return ObjectStatus.ORPHAN if combined_id in self.needs.may_go else ObjectStatus.OWNED

    def _demand_unneeded(self, key: str) -> None:
        if self._status(key) is not ObjectStatus.ORPHAN:
            message = f"{key} was not needed any more, and now it is."
            raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    def _log(self, store: WritableObjectStore) -> EventLog:
        """Where it ended when it was judged by: another end is another run's."""
        return EventLog(store, self.needs.events.log.end_offsets, self.clock_ms)

    def _publish(self, log: EventLog, events: Sequence[Publish]) -> None:
        log.append(events)
        self.events += len(events)

    def _steps(self, combined_id: str) -> tuple[list[Publish], list[Publish]]:
        """The events before the object is deleted, and those after."""
        wal = self.needs.events.replayed
        steps = list(deletion_steps(wal, combined_id, broker_id=_CLEANER, clock_ms=self.clock_ms))
        (at,) = (number for number, step in enumerate(steps) if isinstance(step, DeleteObject))
        return _events(steps[:at]), _events(steps[at:])


def _events(steps: Sequence[object]) -> list[Publish]:
    return [step for step in steps if isinstance(step, Publish)]


def _id_of(key: str) -> str:
    return combined_id_of(key) or ""
