"""A partition's offsets as the JSON that commands show."""

from __future__ import annotations

from tieredctl.drawing.timeline import Part, Timeline
from tieredctl.ops.documents import Document, epochs_document, partition_document
from tieredctl.ops.timeline.partition_timeline import PartitionTimeline

_NAMES = {
    Part.COPIED: "copied",
    Part.COPYING: "copying",
    Part.DELETING: "deleting",
    Part.DELETED: "deleted",
    Part.UNREACHED: "unreached",
    Part.OVERLAP: "overlaps",
    Part.UNKNOWN: "unknown",
    Part.GAP: "gaps",
    Part.MISSING: "missing",
}


def timeline_document(found: PartitionTimeline) -> Document:
    """A partition with the fields of `ranges_document`."""
    return partition_document(found.partition) | ranges_document(found.timeline)


def ranges_document(timeline: Timeline) -> Document:
    """Lists of [first, last] by what these offsets are, both inclusive and joined where they touch; null for what is
    not known of the log."""
    return {
        "logStartOffset": timeline.log_start_offset,
        "localLogStartOffset": timeline.local_start_offset,
        "endOffset": timeline.end_offset,
        "leaderEpochs": epochs_document(tuple(timeline.epochs)),
        **{name: [list(pair) for pair in timeline.of(part).joined().pairs()] for part, name in _NAMES.items()},
    }
