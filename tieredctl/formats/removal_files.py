"""Plans and receipts as lines of JSON.

A plan: a header, a line for each object or upload, the totals, and last the SHA-256 of all bytes before that line,
with their HMAC-SHA256 by the key of the plan's maker.
Receipts: a header, and a line for each thing that was done.
A note of how old copies are, or which bytes they hold: a line, and a seal as a plan's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.json_lines import LineField, LineFormat, fields_of, line_of
from tieredctl.model.removal import (
    BytesNote,
    CopiedBytes,
    OriginalTime,
    PlanHeader,
    Planned,
    PlannedObject,
    PlannedUpload,
    PlanRecord,
    PlanTotals,
    PlanUse,
    QuarantinedCopy,
    Receipt,
    ReceiptsHeader,
    ReceiptStep,
    RemovalMode,
    Seal,
    TimeNote,
)


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is not an integer")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is not text")
    return value


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 100:
        raise TypeError(f"{value!r} is not a share")
    return float(value)


def _texts(values: object) -> frozenset[str]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return frozenset(map(_text, values))


def _checksums(fields: Mapping[str, Any]) -> dict[str, str]:
    return {_text(name): _text(value) for name, value in fields.items()}


def _offsets(fields: Mapping[str, Any]) -> dict[int, int]:
    return {int(name): _number(end) for name, end in fields.items()}


def _offsets_written(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(number): end for number, end in sorted(offsets.items())}


def _as_it_is(value: Any) -> Any:
    return value


PLAN_HEADER = LineFormat(
    PlanHeader,
    "RemovalPlan",
    plan_id=LineField("planId", _text),
    created_ms=LineField("createdMs", _number),
    valid_until_ms=LineField("validUntilMs", _number),
    cluster_id=LineField("clusterId", _text),
    store=LineField("store", _text),
    layout=LineField("layout", _text),
    mode=LineField("mode", RemovalMode),
    min_age_ms=LineField("minAgeMs", _number),
    max_percent=LineField("maxPercent", _share),
    metadata_end_offsets=LineField("metadataEndOffsets", _offsets, _offsets_written),
    foreign_topic_ids=LineField("foreignTopicIds", _texts, sorted),
    unknown_keys=LineField("unknownKeys", _texts, sorted),
    control_plane=LineField("controlPlane", _text, lacking=True),
    max_missing=LineField("maxMissing", _number, lacking=True),
)
"""The first line of a plan."""

_OBJECT = LineFormat(
    PlannedObject,
    key=LineField("key", _text),
    size=LineField("size", _number),
    last_modified_ms=LineField("lastModifiedMs", _number),
    version=LineField("version", _text, null=True),
    status=LineField("status", _text),
    cause=LineField("cause", _text, null=True),
    evidence=LineField("evidence", _as_it_is, null=True),
)
_UPLOAD = LineFormat(
    PlannedUpload,
    upload_id=LineField("upload", _text),
    key=LineField("key", _text),
    initiated_ms=LineField("initiatedMs", _number),
    size=LineField("size", _number),
)
PLAN_TOTALS = LineFormat(
    PlanTotals,
    objects=LineField("objects", _number),
    bytes=LineField("bytes", _number),
    uploads=LineField("uploads", _number),
    listed_objects=LineField("listedObjects", _number),
)
"""The second-last line of a plan."""

_SEAL = LineFormat(
    Seal,
    digest=LineField("sha256", _text),
    # Plans of older releases have none.
    signature=LineField("hmacSha256", _text, null=True, lacking=True),
)

RECEIPTS_HEADER = LineFormat(
    ReceiptsHeader,
    "RemovalReceipts",
    plan_id=LineField("planId", _text),
    plan_digest=LineField("planDigest", _text),
    cluster_id=LineField("clusterId", _text),
    store=LineField("store", _text),
    layout=LineField("layout", _text),
    mode=LineField("mode", RemovalMode),
)
"""The first line of receipts."""

_COPY = LineFormat(
    QuarantinedCopy,
    key=LineField("key", _text),
    size=LineField("size", _number),
    last_modified_ms=LineField("last_modified_ms", _number),
    version=LineField("version", _text),
)
RECEIPT = LineFormat(
    Receipt,
    step=LineField("step", ReceiptStep),
    key=LineField("key", _text),
    at_ms=LineField("atMs", _number),
    size=LineField("size", _number),
    copy=LineField("copy", _COPY.read, _COPY.written, lacking=True),
    upload_id=LineField("uploadId", _text, lacking=True),
    error=LineField("error", _text, lacking=True),
    compared_by=LineField("comparedBy", _text, lacking=True),
    modified_ms=LineField("modifiedMs", _number, lacking=True),
    version=LineField("version", _text, lacking=True),
    checksums=LineField("checksums", _checksums, dict, lacking=True),
)
"""A line of receipts, without unknown fields."""

PLAN_RECORD = LineFormat(
    PlanRecord,
    use=LineField("use", PlanUse),
    plan_digest=LineField("digest", _text, null=True),
    cluster_id=LineField("clusterId", _text),
    layout=LineField("layout", _text),
    foreign_topic_ids=LineField("foreignTopicIds", _texts, sorted, lacking=True),
    unknown_keys=LineField("unknownKeys", _texts, sorted, lacking=True),
)
"""What a store remembers of a plan, without unknown fields."""

_TIME = LineFormat(
    OriginalTime,
    key=LineField("key", _text),
    size=LineField("size", _number),
    last_modified_ms=LineField("lastModifiedMs", _number),
    version=LineField("version", _text),
    original_ms=LineField("originalMs", _number),
)


def _times(values: list[Any]) -> tuple[OriginalTime, ...]:
    return tuple(map(_TIME.read, values))


def _times_written(times: Sequence[OriginalTime]) -> list[dict[str, Any]]:
    return list(map(_TIME.written, times))


TIME_NOTE = LineFormat(
    TimeNote, "OriginalTimes", store=LineField("store", _text), copied=LineField("copied", _times, _times_written)
)
"""How old copies in a store are; its seal follows."""

_BYTES = LineFormat(
    CopiedBytes,
    key=LineField("key", _text),
    size=LineField("size", _number),
    last_modified_ms=LineField("lastModifiedMs", _number),
    version=LineField("version", _text),
    checksums=LineField("checksums", _checksums, dict),
)


def _copied_bytes(values: list[Any]) -> tuple[CopiedBytes, ...]:
    return tuple(map(_BYTES.read, values))


def _copied_bytes_written(copied: Sequence[CopiedBytes]) -> list[dict[str, Any]]:
    return list(map(_BYTES.written, copied))


BYTES_NOTE = LineFormat(
    BytesNote,
    "CopiedBytes",
    store=LineField("store", _text),
    copied=LineField("copied", _copied_bytes, _copied_bytes_written),
)
"""Which bytes copies in a store hold; its seal follows."""


def encode_planned(planned: Planned) -> bytes:
    """A line of a plan."""
    return _UPLOAD.encode(planned) if isinstance(planned, PlannedUpload) else _OBJECT.encode(planned)


def decode_planned(line: bytes) -> Planned | PlanTotals:
    """A line of a plan between the first and the last. Raises DecodeError."""
    fields = fields_of(line)
    if "listedObjects" in fields:
        return PLAN_TOTALS.read(fields)
    return _UPLOAD.read(fields) if "upload" in fields else _OBJECT.read(fields)


def encode_seal(seal: Seal) -> bytes:
    """The last line of a plan."""
    return _SEAL.encode(seal)


def decode_seal(line: bytes) -> Seal:
    """Raises DecodeError, also for more or less than a seal."""
    fields = fields_of(line)
    if line != line_of(fields):
        raise DecodeError("it does not end with a seal", 0)
    return _SEAL.read(fields)
