"""Whether everything in a combined object was judged, by what the object itself says is in it."""

from __future__ import annotations

from collections.abc import Sequence

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.ops.wal.need import Needs
from tieredctl_proposals.wal.lifecycle import JudgedObject, Need
from tieredctl_proposals.wal.reading import read_object_index
from tieredctl_proposals.wal.replayed import ReplayedWal

CONCERN_ONE_OBJECT = (ErrorCode.OBJECT_MISSING, ErrorCode.OBJECT_ARCHIVED, ErrorCode.UNREADABLE)
"""Why an object's index cannot be read, where those of others can."""


def with_all_judged(store: ObjectStore, needs: Needs, there: Sequence[tuple[str, StoredObject]]) -> Needs:
    """Keeps those of some objects that may go, each with its id, that have more in them than was judged."""
    wal = needs.events.replayed

    def is_unclear(one: tuple[str, StoredObject]) -> bool:
        return not _is_all_judged(store, one[1], needs.may_go[one[0]], wal)

    unclear = [one[0] for one, is_it in zip(there, in_parallel(store, is_unclear, there), strict=True) if is_it]
    return needs.keeping(unclear, Need.UNKNOWN.name)


def _is_all_judged(store: ObjectStore, stored: StoredObject, judged: JudgedObject, wal: ReplayedWal) -> bool:
    """Events may be missing without a trace. So an object's own event has to be there, and where the object has an
    index, every segment in it has to be among the judged. What cannot be read was not judged.

    Raises TieredctlError where the store does not answer.
    """
    if wal.combined_named(judged.combined_segment_id) is None:
        return False
    try:
        # One answer with an altered bit says that there is no index, and then nothing would tell of the others.
        index = read_again(store, lambda at: read_object_index(at, stored), is_sound=lambda read: read is not None)
    except DecodeError:
        return False
    except TieredctlError as error:
        if error.code not in CONCERN_ONE_OBJECT:
            raise
        return False
    judged_segments = {(partition, segment_id) for partition, segment_id, _ in judged.segments}
    inside = () if index is None else ((one.topic_id_partition, one.segment_id) for one in index.entries)
    return judged_segments.issuperset(inside)
