"""What could not be read of a segment, as findings: whether it is sound stays unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding
from tieredctl.ops.verification.report import SegmentFindings, Unread
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject

ARCHIVES = ("GLACIER", "DEEP_ARCHIVE")
"""S3's. Google Cloud Storage's ARCHIVE can be read like any other class."""
UNDECRYPTABLE = FindingCode.SEGMENT_UNDECRYPTABLE
_CODES = {ErrorCode.OBJECT_ARCHIVED: FindingCode.OBJECT_ARCHIVED, ErrorCode.PRIVATE_KEY: UNDECRYPTABLE}
"""Finding codes by the error's code; `unreadable` for any other."""


def report_unread(error: TieredctlError, part: Part, findings: SegmentFindings) -> None:
    """Why a part could not be read; once where several parts lie in one object that is archived."""
    code = _CODES.get(error.code, FindingCode.UNREADABLE)
    findings.unread.append(Unread.of(error))
    key = findings.keys.get(part, findings.keys.get(Part.INDEXES))
    if code is FindingCode.OBJECT_ARCHIVED and any(one.code == code and _key(one) == key for one in findings.found):
        return
    if code == UNDECRYPTABLE:
        findings.add(code, part, error.message, hint=error.hint)
    else:
        findings.add(code, part, error.message, error=error.code.value)


def report_archived(present: Mapping[Part, StoredObject], findings: SegmentFindings) -> None:
    """The objects of a segment in a storage class from which they must first be restored."""
    for part, stored in present.items():
        if stored.storage_class in ARCHIVES:
            message = (
                f"{stored.key} is in storage class {stored.storage_class}, and cannot be read until it is restored"
            )
            findings.add(FindingCode.OBJECT_ARCHIVED, part, message)


def private_key_error(unread: Iterable[Unread]) -> TieredctlError | None:
    """The error of the first segment that could not be decrypted."""
    for one in unread:
        if one.code is ErrorCode.PRIVATE_KEY:
            return TieredctlError(one.code, one.message, hint=one.hint)
    return None


def _key(finding: Finding) -> str | None:
    return finding.about.key if isinstance(finding.about, SegmentSubject) else None
