"""In which order findings are reported, and which of them only once."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.coverage import MISSING
from tieredctl.ports.metadata_source import CUT_SHORT, EVENTS_LOST

_OF_ALL_METADATA = (MISSING, COMPACTED, CUT_SHORT, EVENTS_LOST)
_NOTICED_TWICE = (
    FindingCode.OBJECT_ARCHIVED,
    FindingCode.SIZE_MISMATCH,
    FindingCode.TRANSACTION_INDEX_MISSING,
    FindingCode.UNREADABLE,
)


def concerning(findings: Iterable[Finding], segment_ids: Collection[str]) -> list[Finding]:
    """The findings about some segments, or about metadata that may concern them; all of them without any."""
    return [one for one in findings if not segment_ids or _concerns(one, segment_ids)]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by partition, then offset, each reported once."""
    return _without_repetition(sorted(findings, key=_place))


def _concerns(finding: Finding, segment_ids: Collection[str]) -> bool:
    if finding.code in (*_OF_ALL_METADATA, FindingCode.TOPIC_GONE):
        return True
    about = finding.about
    if isinstance(about, MetadataSubject):
        return about.segment_id is None or about.segment_id in segment_ids
    return isinstance(about, SegmentSubject) and about.segment_id in segment_ids


def _place(finding: Finding) -> tuple[bool, tuple[str, str, int, int], str, str]:
    """Where a finding stands among others: first what is missing of the metadata; by partition, then offset, then
    object."""
    is_about_what_is_here = finding.code not in _OF_ALL_METADATA
    return (is_about_what_is_here, finding.about.place, finding.subject, finding.code)


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """One finding for what both the listing and the reading of a segment found: the reading knows more about it."""
    last = {(f.code, f.subject): f for f in findings if f.code in _NOTICED_TWICE}
    grave = (f.about for f in findings if f.severity > Severity.WARNING and _of_all_objects(f) is None)
    placed = {about.segment_id for about in grave if isinstance(about, SegmentSubject)}
    return [f for f in findings if last.get((f.code, f.subject), f) is f and _of_all_objects(f) not in placed]


def _of_all_objects(finding: Finding) -> str | None:
    """The segment, where a finding only says that one of its objects does not have its original size."""
    about = finding.about
    if finding.code is FindingCode.SIZE_MISMATCH and isinstance(about, SegmentSubject) and about.part is None:
        return about.segment_id
    return None
