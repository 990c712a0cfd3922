"""What the control plane promises and the bucket lacks: records that are lost."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tieredctl.diskless.control_plane import KEYS_AT_ONCE, ControlPlane, FileState
from tieredctl.errors import TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.diskless.batch_rows import BatchRows
from tieredctl.ops.diskless.bucket import DisklessBucket
from tieredctl.ops.diskless.file_check import FileRows
from tieredctl.ops.diskless.finding_places import batch_documents, object_finding
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.storage.protocol import ObjectStore, StoredObject


def unlisted(files: FileRows, listed: dict[str, StoredObject], store: ObjectStore) -> list[int]:
    """The numbers of files with batches whose object is neither in the listing, nor found when asked for by its key;
    those found are added to the listing. Raises TieredctlError as the store does."""
    numbers = [
        number for number, count in enumerate(files.batch_counts.tolist()) if count and files.keys[number] not in listed
    ]
    lost = []
    for number, stored in zip(
        numbers, in_parallel(store, store.head, [files.keys[one] for one in numbers]), strict=True
    ):
        if stored is None:
            lost.append(number)
        else:
            listed[stored.key] = stored
    return lost


def missing_objects(
    numbers: Sequence[int],
    files: FileRows,
    rows: BatchRows,
    names: Sequence[TopicIdPartition],
    bucket: DisklessBucket,
) -> Iterator[Finding]:
    """Findings about files whose object is not there: lost, or unknown."""
    number_of = {files.keys[number]: number for number in numbers}
    for first in range(0, len(numbers), KEYS_AT_ONCE):
        states = {
            files.keys[number]: FileState(int(files.states[number])) for number in numbers[first : first + KEYS_AT_ONCE]
        }
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
