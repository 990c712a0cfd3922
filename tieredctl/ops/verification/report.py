"""The tasks and reports of a check of segments: values that travel to executors and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.remote.part_finding import key_holding, part_finding
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject

DEFAULT_INDEX_INTERVAL_BYTES = 4_096


class Level(StrEnum):
    """How deep to look: at the listing, at the headers of the first and last batches, or at every byte."""

    LISTING = "listing"
    HEADERS = "headers"
    FULL = "full"


@dataclass(frozen=True, slots=True)
class SegmentTask:
    """A segment to read: one in COPY_SEGMENT_FINISHED, whether or not the listing had all its objects."""

    metadata: RemoteLogSegmentMetadata
    keys: dict[Part, str]
    """The segment's objects that the listing had."""
    level: Level
    index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES
    listed: Mapping[Part, StoredObject] = field(default_factory=dict)
    """What the store said of these objects when the task was made; empty where nobody asked."""


@dataclass(frozen=True, slots=True)
class Unread:
    """Why a part could not be read: an error's fields, as a value."""

    code: ErrorCode
    message: str
    hint: str

    @classmethod
    def of(cls, error: TieredctlError) -> Unread:
        return cls(error.code, error.message, error.hint)


@dataclass(frozen=True, slots=True)
class SegmentReport:
    """The result of reading one segment, or of several about which there is nothing else to say. Counts are of what was
    read, sound or not."""

    segment_id: str
    """Empty where it is of several."""
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    findings: tuple[Finding, ...] = ()
    unread: tuple[Unread, ...] = ()
    """The reason for each part that could not be read."""
    not_looked_at: str | None = None
    """Why the segment was not asked for at all."""
    segments: int = 1
    objects: int = 0
    """How many objects these segments have, where they were not looked at."""


@dataclass(slots=True)
class SegmentFindings:
    """Findings about one segment, each with the segment's identity in its evidence."""

    metadata: RemoteLogSegmentMetadata
    keys: dict[Part, str]
    found: list[Finding] = field(default_factory=list)
    unread: list[Unread] = field(default_factory=list)

    def add(
        self,
        code: FindingCode,
        part: Part,
        message: str,
        *,
        position: int | None = None,
        offsets: tuple[int, int] | None = None,
        severity: Severity | None = None,
        **evidence: object,
    ) -> None:
        """`position` is a byte of the part; `offsets` the first and last (inclusive) at risk."""
        self.found.append(
            part_finding(
                code,
                self.metadata,
                self.keys,
                part,
                message,
                position=position,
                offsets=offsets,
                severity=severity,
                **evidence,
            )
        )


ARCHIVES = ("GLACIER", "DEEP_ARCHIVE", "Archive")
"""S3's, and Azure's tier. Google Cloud Storage's ARCHIVE can be read like any other class."""
UNDECRYPTABLE = FindingCode.SEGMENT_UNDECRYPTABLE
_CODES = {ErrorCode.OBJECT_ARCHIVED: FindingCode.OBJECT_ARCHIVED, ErrorCode.PRIVATE_KEY: UNDECRYPTABLE}
"""Finding codes by the error's code; `unreadable` for any other."""


def report_unread(error: TieredctlError, part: Part, findings: SegmentFindings) -> None:
    """Why a part could not be read; once where several parts lie in one object that is archived."""
    code = _CODES.get(error.code, FindingCode.UNREADABLE)
    findings.unread.append(Unread.of(error))
    key = key_holding(part, findings.keys)
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
