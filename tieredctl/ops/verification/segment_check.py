"""Reads one segment from the remote store, as deep as asked, and compares it with its metadata."""

from __future__ import annotations

from dataclasses import replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.verification.full_check import check_everything
from tieredctl.ops.verification.headers_check import ends_are_sound
from tieredctl.ops.verification.opened_segment import OpenedSegment
from tieredctl.ops.verification.other_forms import report_missing
from tieredctl.ops.verification.report import Level, SegmentFindings, SegmentReport, SegmentTask
from tieredctl.ops.verification.unread import report_unread
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.listed_store import AsListed
from tieredctl.ports.object_store import ObjectStore

_MOST_READS = 3


def check_segment(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
    """Everything that is wrong with a segment's objects. A store that fails, or a segment that cannot be decrypted, is
    a finding, never an exception: the other segments are still checked. A segment whose headers look wrong is read in
    full, to find what is wrong.

    The listing's word on sizes is taken as long as nothing looks wrong. What looks damaged is read again, since bytes
    may be altered in transit too: only what two reads in a row agree on is damage. An object that was listed and has
    gone since is missing.
    """
    reports = [_read(task, AsListed.of(store, task.listed.values()), layout)]
    if task.listed and _lacks_an_object(reports[0]):
        return _without_missing(task, store.reconnected(), layout)
    while _looks_damaged(reports[-1]) and not _agree(reports) and len(reports) < _MOST_READS:
        store = store.reconnected()
        reports.append(_read(task, store, layout))
    bytes_read = sum(report.bytes_read for report in reports)
    judged = reports[1:] if len(reports) > 1 and _is_listed_wrong(task, store) else reports
    return replace(reports[-1], bytes_read=bytes_read, findings=_believed(judged, task, layout))


def _is_listed_wrong(task: SegmentTask, store: ObjectStore) -> bool:
    """Whether an object has another size than it was listed with: then what differs between a read by the listing's
    sizes and later ones was not altered in transit."""
    try:
        return any((now := store.head(one.key)) is None or now.size != one.size for one in task.listed.values())
    except TieredctlError:
        return False


def _lacks_an_object(report: SegmentReport) -> bool:
    return any(one.code is ErrorCode.OBJECT_MISSING for one in report.unread)


def _without_missing(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
    """What is left of a segment that lost an object since it was listed."""
    report = check_segment(replace(task, listed={}), store, layout)
    keys = layout.promised_objects(task.metadata) | layout.optional_objects(task.metadata)
    findings = SegmentFindings(task.metadata, keys, list(report.findings), list(report.unread))
    for part, stored in task.listed.items():
        try:
            if store.head(stored.key) is None:
                report_missing(part, findings)
        except TieredctlError as error:
            report_unread(error, part, findings)
    return replace(report, findings=tuple(findings.found), unread=tuple(findings.unread))


def _looks_damaged(report: SegmentReport) -> bool:
    return any(finding.severity > Severity.INFO and not finding.kind.incomplete for finding in report.findings)


def _agree(reports: list[SegmentReport]) -> bool:
    return len(reports) > 1 and reports[-1].findings == reports[-2].findings


def _believed(reports: list[SegmentReport], task: SegmentTask, layout: Layout) -> tuple[Finding, ...]:
    """The last read's result, if it is sound or equal to the one before; else the results of both."""
    *_, last = reports
    if all(report.findings == last.findings for report in reports):
        return last.findings
    findings = SegmentFindings(task.metadata, layout.promised_objects(task.metadata), list(last.findings))
    if not _looks_damaged(last) or _agree(reports):
        message = "an earlier read returned different bytes: the store's answers are altered in transit"
        findings.add(FindingCode.ALTERED_IN_TRANSIT, Part.LOG, message)
    else:
        findings.found = [finding for finding in last.findings if finding in reports[-2].findings]
        findings.add(FindingCode.UNREADABLE, Part.LOG, f"{len(reports)} reads gave different bytes each time")
    return tuple(findings.found)


def _read(task: SegmentTask, store: ObjectStore, layout: Layout) -> SegmentReport:
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
        report_unread(error, Part.LOG if segment.is_open else Part.MANIFEST, segment.findings)
    return segment.report()
