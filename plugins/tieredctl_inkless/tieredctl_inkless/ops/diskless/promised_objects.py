"""What the control plane promises and the bucket lacks: records that are lost."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import ObjectSubject
from tieredctl.model.findings import Finding
from tieredctl.model.pasteable import quoted
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.quarantine_keys import copies_in_quarantine
from tieredctl.ports.object_store import ObjectStore
from tieredctl_inkless.diskless.control_plane import KEYS_AT_ONCE, ControlPlane, FileState
from tieredctl_inkless.ops.diskless.bucket import NOT_LISTED, DisklessBucket
from tieredctl_inkless.ops.diskless.finding_places import batch_documents, object_finding

_CLOCKS_DIFFER_MS = 3_600_000


def unlisted(bucket: DisklessBucket) -> list[int]:
    """The numbers of files with batches whose object is neither in the listing, nor found when asked for by its key;
    the sizes of those found are added to the listed ones, and the keys of those that the listing should have had to
    what it passed over. Raises TieredctlError as the store does."""
    files, sizes = bucket.files, bucket.sizes
    lost = []
    numbers = np.flatnonzero((files.batch_counts > 0) & (sizes == NOT_LISTED)).tolist()
    for first in range(0, len(numbers), KEYS_AT_ONCE):
        some = numbers[first : first + KEYS_AT_ONCE]
        answers = in_parallel(bucket.store, bucket.store.head, [files.keys[number] for number in some])
        for number, stored in zip(some, answers, strict=True):
            if stored is None:
                lost.append(number)
            else:
                sizes[number] = stored.size
                if 0 < stored.last_modified_ms < bucket.listed_ms - _CLOCKS_DIFFER_MS:
                    bucket.passed_over.append(stored.key)
    return lost


def missing_objects(numbers: Sequence[int], bucket: DisklessBucket) -> Iterator[Finding]:
    """Findings about files whose object is not there: lost, or unknown."""
    files, rows, names = bucket.files, bucket.rows, bucket.partitions.names
    for first in range(0, len(numbers), KEYS_AT_ONCE):
        number_of = {files.keys[number]: number for number in numbers[first : first + KEYS_AT_ONCE]}
        states = {key: FileState(int(files.states[number])) for key, number in number_of.items()}
        promised, unknown = still_promised(bucket.control_plane, states)
        yield from unknown
        plans = _plans_that_removed(bucket.store, promised)
        for key in promised:
            mine = rows.at(files.batches_of(number_of[key]))
            partitions = len(set(mine.partitions.tolist()))
            message = f"the control plane promises {counted(len(mine), 'batch', 'batches')} of "
            message += f"{counted(partitions, 'partition')} in it, and the store does not have it"
            evidence: dict[str, Any] = {"batchCount": len(mine), "batches": batch_documents(mine, names)}
            if key in plans:
                message += f"; plan {plans[key]} removed it, and it is in quarantine"
                evidence["planId"] = plans[key]
            finding = object_finding(FindingCode.OBJECT_MISSING, key, message, **evidence)
            about = QuarantinedObject(key, plans[key], bucket.store.url) if key in plans else None
            yield finding if about is None else replace(finding, about=about)


def keys_missing(findings: Iterable[Finding]) -> list[str]:
    """The keys of promised objects that are not there, by what was found."""
    return [one.subject for one in findings if one.code is FindingCode.OBJECT_MISSING]


@dataclass(frozen=True, slots=True)
class QuarantinedObject(ObjectSubject):
    """An object that a plan removed, and that batches need by now."""

    plan_id: str
    store_url: str

    @property
    def remedy(self) -> str:
        return f"tieredctl diskless orphans restore {self.plan_id} --store {quoted(self.store_url)}"


def _plans_that_removed(store: ObjectStore, keys: Sequence[str]) -> dict[str, str]:
    """The plans' ids, of those that have a copy in quarantine. A quarantine that cannot be listed tells nothing."""
    missing, plans = {*keys}, dict[str, str]()
    if missing:
        with suppress(TieredctlError):
            plans = {one.key: one.plan_id for _, one in copies_in_quarantine(store) if one.key in missing}
    return plans


def still_promised(
    control_plane: ControlPlane, states: Mapping[str, FileState]
) -> tuple[Sequence[str], Sequence[Finding]]:
    """The files whose object is not there, by key and last known state, that the control plane, asked once more,
    still has in that state. Retention deletes meanwhile.

    Where it does not answer, or a standby does, which may not know yet that a file was deleted, each of them has a
    finding instead.
    """
    try:
        current = control_plane.states_of([*states])
    except TieredctlError as error:
        message = f"its object is not there, and the control plane could not be asked again: {error.message}"
        return [], [object_finding(FindingCode.UNREADABLE, key, message, error=error.code.value) for key in states]
    if current.is_standby:
        message = "its object is not there; the control plane is a standby, and may not know that it was deleted"
        return [], [object_finding(FindingCode.UNREADABLE, key, message) for key in states]
    return [key for key, state in states.items() if current.states.get(key) == state], []
