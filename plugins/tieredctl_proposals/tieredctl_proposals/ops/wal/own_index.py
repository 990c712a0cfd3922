"""Whether everything in a combined object was judged, by what the object itself says is in it."""

from __future__ import annotations

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.wal.lifecycle import JudgedObject
from tieredctl_proposals.wal.reading import read_object_index
from tieredctl_proposals.wal.replayed import ReplayedWal

CONCERN_ONE_OBJECT = (ErrorCode.OBJECT_MISSING, ErrorCode.OBJECT_ARCHIVED, ErrorCode.UNREADABLE)
"""Why an object's index cannot be read, where those of others can."""


def is_all_judged(store: ObjectStore, stored: StoredObject, judged: JudgedObject, wal: ReplayedWal) -> bool:
    """Events may be missing without a trace. So an object's own event has to be there, and where the object has an
    index, every segment in it has to be among the judged. What cannot be read was not judged.

    Raises TieredctlError where the store does not answer.
    """
    if wal.combined_named(judged.combined_segment_id) is None:
        return False
    try:
        index = read_object_index(store, stored)
    except DecodeError:
        return False
    except TieredctlError as error:
        if error.code not in CONCERN_ONE_OBJECT:
            raise
        return False
    known = {(partition, segment_id) for partition, segment_id, _ in judged.segments}
    inside = () if index is None else ((one.topic_id_partition, one.segment_id) for one in index.entries)
    return known.issuperset(inside)
