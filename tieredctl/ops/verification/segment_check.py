"""Reads one segment out of the remote store, as deep as asked, and holds it against its metadata."""

from __future__ import annotations

from tieredctl.errors import TieredctlError
from tieredctl.layouts.protocol import Layout, Part
from tieredctl.ops.verification.full_check import check_everything
from tieredctl.ops.verification.headers_check import ends_are_sound
from tieredctl.ops.verification.opened_segment import OpenedSegment
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.storage.protocol import ObjectStore


def check_segment(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
    """Everything that is wrong with a segment's objects. A store that fails is a finding, never an exception: the
    other segments are still looked at. A segment whose headers look wrong is read in full, to say what is.

    Raises TieredctlError `private-key` where objects are encrypted and the layout lacks the key.
    """
    metadata = task.metadata
    keys = layout.promised_objects(metadata) | layout.optional_objects(metadata)
    segment = OpenedSegment(task, layout.open_segment(store, metadata), SegmentFindings(metadata, keys))
    try:
        segment.look()
        if task.level is Level.HEADERS:
            if ends_are_sound(segment):
                return segment.report()
            segment.forget()
        check_everything(segment)
    except TieredctlError as error:
        if error.kind.code == "private-key":
            raise  # for the whole run: no object is to blame
        segment.findings.add("unreadable", Part.LOG, error.message)
    return segment.report()
