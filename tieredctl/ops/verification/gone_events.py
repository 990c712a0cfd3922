"""Where events are missing from the middle or the end of a metadata log, a segment may have been deleted, or copied,
without a trace: findings that rest only on its absence there, or in the store, are unknown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.metadata_source import METADATA_TOPIC

_BY_ABSENCE = (
    FindingCode.OBJECT_MISSING,
    FindingCode.OBJECT_UNREFERENCED,
    FindingCode.OFFSET_GAP,
    FindingCode.LOCAL_REMOTE_GAP,
    FindingCode.COPY_STUCK,
    FindingCode.DELETE_STUCK,
)


def without_unknown(findings: Iterable[Finding], stream: EventStream) -> list[Finding]:
    """The findings that hold no matter which events are missing, and one that counts the others."""
    kept: list[Finding] = []
    unknown = Counter[str]()
    for finding in findings:
        if finding.code in _BY_ABSENCE and _may_be_wrong(finding, stream):
            unknown[finding.code] += 1
        else:
            kept.append(finding)
    if unknown:
        counts = ", ".join(f"{code} ({count})" for code, count in sorted(unknown.items()))
        message = f"events are missing, so these findings are uncertain: {counts}"
        kept.append(Finding(stream.how_events_were_lost, METADATA_TOPIC, message, {"unknown": dict(unknown)}))
    return kept


def _may_be_wrong(finding: Finding, stream: EventStream) -> bool:
    if isinstance(finding.about, PartitionSubject):
        return stream.may_have_lost(finding.about.partition)
    return stream.has_lost_events
