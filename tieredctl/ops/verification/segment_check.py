"""Reads one segment out of the remote store, as deep as asked, and holds it against its metadata."""

from __future__ import annotations

from tieredctl.errors import TieredctlError
from tieredctl.layouts.protocol import Layout, Part
from tieredctl.ops.verification.full_check import check_everything
from tieredctl.ops.verification.headers_check import check_ends
from tieredctl.ops.verification.opened_segment import OpenedSegment
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.storage.protocol import ObjectStore


def check_segment(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
    """Everything that is wrong with a segment's objects. A store that fails is a finding, never an exception: the
    other segments are still looked at."""
    metadata = task.metadata
    findings = SegmentFindings(metadata, layout.promised_objects(metadata) | layout.optional_objects(metadata))
    segment = OpenedSegment(task, layout.open_segment(store, metadata), findings)
    try:
        segment.look()
        if task.level is Level.HEADERS:
            check_ends(segment)
        else:
            check_everything(segment)
    except TieredctlError as error:
        findings.add("unreadable", Part.LOG, error.message)
    return segment.report()
