"""Plans and receipts as lines of JSON.

A plan: a header, a line for each object or upload, the totals, and last the SHA-256 of all bytes before that line,
with their HMAC-SHA256 by the key of whoever made the plan.
Receipts: a header, and a line for each thing that was done.
A note of how old copies are: a line, and a seal as a plan's.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.json_lines import Field, LineFormat, fields_of, line_of
from tieredctl.model.removal import (
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


def _offsets(fields: Mapping[str, Any]) -> dict[int, int]:
    return {int(name): _number(end) for name, end in fields.items()}


def _offsets_written(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(number): end for number, end in sorted(offsets.items())}


def _as_it_is(value: Any) -> Any:
    return value


PLAN_HEADER = LineFormat(
    PlanHeader,
    "RemovalPlan",
    plan_id=Field("planId", _text),
    created_ms=Field("createdMs", _number),
    valid_until_ms=Field("validUntilMs", _number),
    cluster_id=Field("clusterId", _text),
    store=Field("store", _text),
    layout=Field("layout", _text),
    mode=Field("mode", RemovalMode),
    min_age_ms=Field("minAgeMs", _number),
    max_percent=Field("maxPercent", _share),
    metadata_end_offsets=Field("metadataEndOffsets", _offsets, _offsets_written),
    foreign_topic_ids=Field("foreignTopicIds", _texts, sorted),
    unknown_keys=Field("unknownKeys", _texts, sorted),
)
"""The first line of a plan."""

_OBJECT = LineFormat(
    PlannedObject,
    key=Field("key", _text),
    size=Field("size", _number),
    last_modified_ms=Field("lastModifiedMs", _number),
    version=Field("version", _text, null=True),
    status=Field("status", _text),
    cause=Field("cause", _text, null=True),
    evidence=Field("evidence", _as_it_is, null=True),
)
_UPLOAD = LineFormat(
    PlannedUpload,
    upload_id=Field("upload", _text),
    key=Field("key", _text),
    initiated_ms=Field("initiatedMs", _number),
    size=Field("size", _number),
)
PLAN_TOTALS = LineFormat(
    PlanTotals,
    objects=Field("objects", _number),
    bytes=Field("bytes", _number),
    uploads=Field("uploads", _number),
    listed_objects=Field("listedObjects", _number),
)
"""The second-last line of a plan."""

_SEAL = LineFormat(
    Seal,
    digest=Field("sha256", _text),
    # Plans of older releases have none.
    signature=Field("hmacSha256", _text, null=True, lacking=True),
)

RECEIPTS_HEADER = LineFormat(
    ReceiptsHeader,
    "RemovalReceipts",
    plan_id=Field("planId", _text),
    plan_digest=Field("planDigest", _text),
    cluster_id=Field("clusterId", _text),
    store=Field("store", _text),
    layout=Field("layout", _text),
    mode=Field("mode", RemovalMode),
)
"""The first line of receipts."""

_COPY = LineFormat(
    QuarantinedCopy,
    key=Field("key", _text),
    size=Field("size", _number),
    last_modified_ms=Field("last_modified_ms", _number),
    version=Field("version", _text),
)
RECEIPT = LineFormat(
    Receipt,
    step=Field("step", ReceiptStep),
    key=Field("key", _text),
    at_ms=Field("atMs", _number),
    size=Field("size", _number),
    copy=Field("copy", _COPY.read, _COPY.written, lacking=True),
    upload_id=Field("uploadId", _text, lacking=True),
    error=Field("error", _text, lacking=True),
    compared_by=Field("comparedBy", _text, lacking=True),
    modified_ms=Field("modifiedMs", _number, lacking=True),
)
"""A line of receipts, without unknown fields."""

PLAN_RECORD = LineFormat(
    PlanRecord,
    use=Field("use", PlanUse),
    plan_digest=Field("digest", _text, null=True),
    cluster_id=Field("clusterId", _text),
    layout=Field("layout", _text),
    foreign_topic_ids=Field("foreignTopicIds", _texts, sorted, lacking=True),
    unknown_keys=Field("unknownKeys", _texts, sorted, lacking=True),
)
"""What a store remembers of a plan, without unknown fields."""

_TIME = LineFormat(
    OriginalTime,
    key=Field("key", _text),
    size=Field("size", _number),
    last_modified_ms=Field("lastModifiedMs", _number),
    version=Field("version", _text),
    original_ms=Field("originalMs", _number),
)


def _times(values: list[Any]) -> tuple[OriginalTime, ...]:
    return tuple(map(_TIME.read, values))


def _times_written(times: Sequence[OriginalTime]) -> list[dict[str, Any]]:
    return list(map(_TIME.written, times))


TIME_NOTE = LineFormat(
    TimeNote, "OriginalTimes", store=Field("store", _text), copied=Field("copied", _times, _times_written)
)
"""How old copies in a store are; its seal follows."""


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
