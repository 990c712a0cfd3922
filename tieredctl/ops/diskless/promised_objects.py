"""What the control plane promises and the bucket lacks: records that are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from tieredctl.diskless.control_plane import KEYS_AT_ONCE, ControlPlane, FileState
from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.diskless.bucket import NOT_LISTED, DisklessBucket
from tieredctl.ops.diskless.finding_places import batch_documents, object_finding
from tieredctl.ops.guards.in_parallel import in_parallel


def unlisted(bucket: DisklessBucket) -> list[int]:
    """The numbers of files with batches whose object is neither in the listing, nor found when asked for by its key;
    the sizes of those found are added to the listed ones. Raises TieredctlError as the store does."""
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
    return lost


def missing_objects(numbers: Sequence[int], bucket: DisklessBucket) -> Iterator[Finding]:
    """Findings about files whose object is not there: lost, or unknown."""
    files, rows, names = bucket.files, bucket.rows, bucket.partitions.names
    for first in range(0, len(numbers), KEYS_AT_ONCE):
        number_of = {files.keys[number]: number for number in numbers[first : first + KEYS_AT_ONCE]}
        states = {key: FileState(int(files.states[number])) for key, number in number_of.items()}
        promised, unknown = still_promised(bucket.control_plane, states)
        yield from unknown
        for key in promised:
            mine = rows.at(files.batches_of(number_of[key]))
            partitions = len(set(mine.partitions.tolist()))
            message = f"the control plane promises {counted(len(mine), 'batch', 'batches')} of "
            message += f"{counted(partitions, 'partition')} in it, and the store does not have it"
            yield object_finding(
                FindingCode.OBJECT_MISSING, key, message, batchCount=len(mine), batches=batch_documents(mine, names)
            )


def still_promised(
    control_plane: ControlPlane, states: Mapping[str, FileState]
) -> tuple[Sequence[str], Sequence[Finding]]:
    """Of files whose object is not there, by key and last known state: those that the control plane, asked once more,
    still has in that state. Retention deletes meanwhile.

    Where it does not answer, or a standby does, which may not know yet that a file was deleted, each of them has a
    finding instead.
    """
    try:
        found = control_plane.states_of([*states])
    except TieredctlError as error:
        message = f"its object is not there, and the control plane could not be asked again: {error.message}"
        return [], [object_finding(FindingCode.UNREADABLE, key, message, error=error.code.value) for key in states]
    if found.is_standby:
        message = "its object is not there; the control plane is a standby, and may not know that it was deleted"
        return [], [object_finding(FindingCode.UNREADABLE, key, message) for key in states]
    return [key for key, state in states.items() if found.states.get(key) == state], []
