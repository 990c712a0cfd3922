"""Plans and receipts as lines of JSON.

A plan: a header, a line for each object or upload, the totals, and last the SHA-256 of all bytes before that line,
with their HMAC-SHA256 by the key of the plan's maker.
Receipts: a header, and a line for each thing that was done.
A note of how old copies are, or which bytes they hold: a line, and a seal as a plan's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.formats.json_lines import LineField, LineFormat, fields_of, line_fields, line_of, number, text
from tieredctl.model.removal import (
    PLAN_ID,
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
    Seal,
    TimeNote,
)


def _share(value: Any) -> float:
    if type(value) not in (int, float) or not 0 <= value <= 100:
        raise TypeError(f"{value!r} is not a share")
    return float(value)


def _plan_id(value: Any) -> str:
    plan_id = text(value)
    if PLAN_ID.fullmatch(plan_id) is None:
        raise ValueError(f"{plan_id!r} is not a plan's id")
    return plan_id


def _texts(values: object) -> frozenset[str]:
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is not a list")
    return frozenset(map(text, values))


def _checksums(fields: Mapping[str, Any]) -> dict[str, str]:
    return {text(name): text(value) for name, value in fields.items()}


def _offsets(fields: Mapping[str, Any]) -> dict[int, int]:
    return {int(name): number(end) for name, end in fields.items()}


def _offsets_written(offsets: Mapping[int, int]) -> dict[str, int]:
    return {str(number): end for number, end in sorted(offsets.items())}


def _as_it_is(value: Any) -> Any:
    return value


PLAN_HEADER = LineFormat(
    PlanHeader,
    "RemovalPlan",
    **line_fields(
        PlanHeader,
        none_is_left_out=True,
        plan_id=LineField("planId", _plan_id),
        max_percent=LineField("maxPercent", _share),
        metadata_end_offsets=LineField("metadataEndOffsets", _offsets, _offsets_written),
        foreign_topic_ids=LineField("foreignTopicIds", _texts, sorted),
        unknown_keys=LineField("unknownKeys", _texts, sorted),
    ),
)
"""The first line of a plan."""

_OBJECT = LineFormat(PlannedObject, **line_fields(PlannedObject, evidence=LineField("evidence", _as_it_is, null=True)))
_UPLOAD = LineFormat(
    PlannedUpload,
    upload_id=LineField("upload", text),
    key=LineField("key", text),
    initiated_ms=LineField("initiatedMs", number),
    size=LineField("size", number),
)
PLAN_TOTALS = LineFormat(PlanTotals, **line_fields(PlanTotals))
"""The second-last line of a plan."""

_SEAL = LineFormat(
    Seal,
    digest=LineField("sha256", text),
    # Plans of older releases have none.
    signature=LineField("hmacSha256", text, null=True, lacking=True),
)

RECEIPTS_HEADER = LineFormat(
    ReceiptsHeader, "RemovalReceipts", **line_fields(ReceiptsHeader, plan_id=LineField("planId", _plan_id))
)
"""The first line of receipts."""

_COPY = LineFormat(
    QuarantinedCopy, **line_fields(QuarantinedCopy, last_modified_ms=LineField("last_modified_ms", number))
)
RECEIPT = LineFormat(
    Receipt,
    **line_fields(
        Receipt,
        none_is_left_out=True,
        copy=LineField("copy", _COPY.read, _COPY.written, lacking=True),
        checksums=LineField("checksums", _checksums, dict, lacking=True),
    ),
)
"""A line of receipts, without unknown fields."""

PLAN_RECORD = LineFormat(
    PlanRecord,
    use=LineField("use", PlanUse),
    plan_digest=LineField("digest", text, null=True),
    cluster_id=LineField("clusterId", text),
    layout=LineField("layout", text),
    foreign_topic_ids=LineField("foreignTopicIds", _texts, sorted, lacking=True),
    unknown_keys=LineField("unknownKeys", _texts, sorted, lacking=True),
)
"""What a store remembers of a plan, without unknown fields."""

_TIME = LineFormat(OriginalTime, **line_fields(OriginalTime))
_BYTES = LineFormat(CopiedBytes, **line_fields(CopiedBytes, checksums=LineField("checksums", _checksums, dict)))


def _each(line: LineFormat[Any]) -> LineField:
    """Several of another line's values."""
    return LineField(
        "copied",
        lambda values: tuple(map(line.read, values)),
        lambda values: list(map(line.written, values)),
    )


TIME_NOTE = LineFormat(TimeNote, "OriginalTimes", **line_fields(TimeNote, copied=_each(_TIME)))
"""How old copies in a store are; its seal follows."""

BYTES_NOTE = LineFormat(BytesNote, "CopiedBytes", **line_fields(BytesNote, copied=_each(_BYTES)))
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
