"""Plans and receipts as lines of JSON.

A plan: a header, a line for each object or upload, the totals, and last the SHA-256 of all bytes before that line,
with their HMAC-SHA256 by the key of whoever made the plan.
Receipts: a header, and a line for each thing that was done.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tieredctl.errors import DecodeError
from tieredctl.model.removal import (
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
)

API_VERSION = "tieredctl/v1"
PLAN_KIND = "RemovalPlan"
RECEIPTS_KIND = "RemovalReceipts"
DIGEST = "sha256"
SIGNATURE = "hmacSha256"


def encode_plan_header(header: PlanHeader) -> bytes:
    """The first line of a plan."""
    return _line(
        {
            "kind": PLAN_KIND,
            "apiVersion": API_VERSION,
            "planId": header.plan_id,
            "createdMs": header.created_ms,
            "validUntilMs": header.valid_until_ms,
            "clusterId": header.cluster_id,
            "store": header.store,
            "layout": header.layout,
            "mode": header.mode.value,
            "minAgeMs": header.min_age_ms,
            "maxPercent": header.max_percent,
            "metadataEndOffsets": {str(number): end for number, end in sorted(header.metadata_end_offsets.items())},
            "foreignTopicIds": sorted(header.foreign_topic_ids),
            "unknownKeys": sorted(header.unknown_keys),
        }
    )


def decode_plan_header(line: bytes) -> PlanHeader:
    """Raises DecodeError."""
    fields = _fields(line, PLAN_KIND)
    with _Reading():
        return PlanHeader(
            plan_id=_text(fields["planId"]),
            created_ms=_number(fields["createdMs"]),
            valid_until_ms=_number(fields["validUntilMs"]),
            cluster_id=_text(fields["clusterId"]),
            store=_text(fields["store"]),
            layout=_text(fields["layout"]),
            mode=RemovalMode(fields["mode"]),
            min_age_ms=_number(fields["minAgeMs"]),
            max_percent=float(fields["maxPercent"]),
            metadata_end_offsets={int(name): _number(end) for name, end in fields["metadataEndOffsets"].items()},
            foreign_topic_ids=frozenset(map(_text, fields["foreignTopicIds"])),
            unknown_keys=frozenset(map(_text, fields["unknownKeys"])),
        )


def encode_planned(planned: Planned) -> bytes:
    """A line of a plan."""
    if isinstance(planned, PlannedUpload):
        initiated_ms, size = planned.initiated_ms, planned.size
        return _line({"upload": planned.upload_id, "key": planned.key, "initiatedMs": initiated_ms, "size": size})
    return _line(
        {
            "key": planned.key,
            "size": planned.size,
            "lastModifiedMs": planned.last_modified_ms,
            "version": planned.version,
            "status": planned.status,
            "cause": planned.cause,
            "evidence": planned.evidence,
        }
    )


def decode_planned(line: bytes) -> Planned | PlanTotals:
    """A line of a plan between the first and the last. Raises DecodeError."""
    fields = _fields(line)
    with _Reading():
        if "listedObjects" in fields:
            names = ("objects", "bytes", "uploads", "listedObjects")
            return PlanTotals(*(_number(fields[name]) for name in names))
        if "upload" in fields:
            initiated_ms, size = _number(fields["initiatedMs"]), _number(fields["size"])
            return PlannedUpload(_text(fields["key"]), _text(fields["upload"]), initiated_ms, size)
        version, cause = fields["version"], fields["cause"]
        return PlannedObject(
            key=_text(fields["key"]),
            size=_number(fields["size"]),
            last_modified_ms=_number(fields["lastModifiedMs"]),
            version=None if version is None else _text(version),
            status=_text(fields["status"]),
            cause=None if cause is None else _text(cause),
            evidence=fields["evidence"],
        )


def encode_plan_totals(totals: PlanTotals) -> bytes:
    """The last line but one of a plan."""
    return _line(
        {
            "objects": totals.objects,
            "bytes": totals.bytes,
            "uploads": totals.uploads,
            "listedObjects": totals.listed_objects,
        }
    )


def encode_seal(seal: Seal) -> bytes:
    """The last line of a plan."""
    return _line({DIGEST: seal.digest, SIGNATURE: seal.signature})


def decode_seal(line: bytes) -> Seal:
    """Raises DecodeError. Plans of older releases have no signature."""
    with _Reading():
        fields = _fields(line)
        if line != _line(fields):
            raise ValueError("more or less than a seal")
        signature = fields.get(SIGNATURE)
        return Seal(_text(fields[DIGEST]), None if signature is None else _text(signature))


def encode_receipts_header(header: ReceiptsHeader) -> bytes:
    """The first line of receipts."""
    return _line(
        {
            "kind": RECEIPTS_KIND,
            "apiVersion": API_VERSION,
            "planId": header.plan_id,
            "planDigest": header.plan_digest,
            "clusterId": header.cluster_id,
            "store": header.store,
            "layout": header.layout,
            "mode": header.mode.value,
        }
    )


def decode_receipts_header(line: bytes) -> ReceiptsHeader:
    """Raises DecodeError."""
    fields = _fields(line, RECEIPTS_KIND)
    with _Reading():
        return ReceiptsHeader(
            plan_id=_text(fields["planId"]),
            plan_digest=_text(fields["planDigest"]),
            cluster_id=_text(fields["clusterId"]),
            store=_text(fields["store"]),
            layout=_text(fields["layout"]),
            mode=RemovalMode(fields["mode"]),
        )


def encode_receipt(receipt: Receipt) -> bytes:
    """A line of receipts, without what is not known."""
    fields = {
        "step": receipt.step.value,
        "key": receipt.key,
        "atMs": receipt.at_ms,
        "size": receipt.size,
        "copy": receipt.copy and receipt.copy._asdict(),
        "uploadId": receipt.upload_id,
        "error": receipt.error,
        "comparedBy": receipt.compared_by,
        "modifiedMs": receipt.modified_ms,
    }
    return _line({name: value for name, value in fields.items() if value is not None})


def decode_receipt(line: bytes) -> Receipt:
    """Raises DecodeError."""
    fields = _fields(line)
    with _Reading():
        copy = fields.get("copy")
        return Receipt(
            step=ReceiptStep(fields["step"]),
            key=_text(fields["key"]),
            at_ms=_number(fields["atMs"]),
            size=_number(fields["size"]),
            copy=copy and _copy(copy),
            upload_id=fields.get("uploadId"),
            error=fields.get("error"),
            compared_by=fields.get("comparedBy"),
            modified_ms=None if fields.get("modifiedMs") is None else _number(fields["modifiedMs"]),
        )


def _copy(fields: Mapping[str, Any]) -> QuarantinedCopy:
    size, modified_ms = _number(fields["size"]), _number(fields["last_modified_ms"])
    return QuarantinedCopy(_text(fields["key"]), size, modified_ms, _text(fields["version"]))


def encode_plan_record(record: PlanRecord) -> bytes:
    """What a store remembers of a plan, without what is not known."""
    fields: dict[str, Any] = {
        "use": record.use.value,
        "digest": record.plan_digest,
        "clusterId": record.cluster_id,
        "layout": record.layout,
    }
    for name, named in (("foreignTopicIds", record.foreign_topic_ids), ("unknownKeys", record.unknown_keys)):
        if named is not None:
            fields[name] = sorted(named)
    return _line(fields)


def decode_plan_record(data: bytes) -> PlanRecord:
    """Raises DecodeError."""
    fields = _fields(data)
    with _Reading():
        digest = fields["digest"]
        return PlanRecord(
            PlanUse(fields["use"]),
            _text(fields["clusterId"]),
            _text(fields["layout"]),
            None if digest is None else _text(digest),
            _texts(fields.get("foreignTopicIds")),
            _texts(fields.get("unknownKeys")),
        )


def _texts(values: object) -> frozenset[str] | None:
    if values is None:
        return None
    if not isinstance(values, list):
        raise TypeError(f"{values!r} is no list")
    return frozenset(map(_text, values))


class _Reading:
    """Whatever is not there, or of another kind, is one error."""

    def __enter__(self) -> None:
        return

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, KeyError | TypeError | ValueError | AttributeError | OverflowError):
            raise DecodeError(f"a field is missing or of another kind ({error})", 0) from None


def _line(fields: Mapping[str, Any]) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode("ascii") + b"\n"


def _fields(line: bytes, kind: str | None = None) -> dict[str, Any]:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        raise DecodeError("a line is no JSON", 0) from None
    if not isinstance(fields, dict) or (kind is not None and fields.get("kind") != kind):
        raise DecodeError(f"it is no {kind or 'object'}", 0)
    if kind is not None and fields.get("apiVersion") != API_VERSION:
        raise DecodeError(f"it is of version {fields.get('apiVersion')!r}, not {API_VERSION}", 0)
    return fields


def _number(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no integer")
    return value


def _text(value: object) -> str:
    if type(value) is not str:
        raise TypeError(f"{value!r} is no text")
    return value
