"""What the control plane promises and the bucket lacks: records that are lost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.diskless.control_plane import FileState
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

_ASKED_AT_ONCE = 1_000


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
    """Findings about files whose object is not there, if the control plane, asked once more, still has them in the same
    state. Where it does not answer, or is a standby that may be behind, they are unknown."""
    if bucket.tables.is_standby:
        for number in numbers:
            message = "its object is not there; the control plane is a standby, and may not know that it was deleted"
            yield object_finding(FindingCode.UNREADABLE, files.keys[number], message)
        return
    for first in range(0, len(numbers), _ASKED_AT_ONCE):
        asked = numbers[first : first + _ASKED_AT_ONCE]
        try:
            states = bucket.control_plane.states_of([files.keys[number] for number in asked])
        except TieredctlError as error:
            for number in asked:
                message = f"its object is not there, and the control plane could not be asked again: {error.message}"
                yield object_finding(FindingCode.UNREADABLE, files.keys[number], message, error=error.code.value)
            continue
        for number in asked:
            key = files.keys[number]
            if states.get(key) == FileState(int(files.states[number])):
                mine = rows.at(files.batches_of(number))
                partitions = len(set(mine.partitions.tolist()))
                message = f"the control plane promises {counted(len(mine), 'batch', 'batches')} of "
                message += f"{counted(partitions, 'partition')} in it, and the store does not have it"
                yield object_finding(
                    FindingCode.OBJECT_MISSING, key, message, batchCount=len(mine), batches=batch_documents(mine, names)
                )
