"""Verdicts in rows, as they come from buckets that were judged anywhere, as `orphans scan` shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tieredctl.model.key_text import key_text
from tieredctl.model.ownership import InProgressReason, ObjectStatus, OrphanCause, UnknownReason
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.totals import Group, GroupTotals
from tieredctl.ops.remote.inventory import iso_8601

_REASONS: Mapping[str, UnknownReason | InProgressReason] = {one: one for one in (*UnknownReason, *InProgressReason)}
_OF_OBJECT = ("segmentId", "topicId", "partition", "part")


def verdict_document(row: Mapping[str, Any]) -> Document:
    """An object with its verdict and the evidence for it, from a row by VERDICT_SCHEMA that has a key."""
    return {
        "key": key_text(row["key"]),
        "size": row["bytes"],
        "lastModified": iso_8601(row["newestMs"]),
        **{name: row[name] for name in _OF_OBJECT},
        "storageClass": row["storageClass"] or None,
        **{name: row[name] for name in ("status", "cause", "topicLive")},
        "evidence": evidence_document(row),
    }


def evidence_document(row: Mapping[str, Any]) -> Document | None:
    """The evidence alone."""
    found: Document | None = None
    if row["metadataOffset"] is not None:
        found = {name: row[name] for name in ("state", "metadataPartition", "metadataOffset")}
    elif row["topicId"] is not None:
        found = {name: row[name] for name in ("metadataPartition", "noEventBefore")}
    if row["reason"] is not None:
        found = {**(found or {}), "reason": row["reason"]}
    if row["originalMs"] is None:
        return found
    return {**(found or {}), "originalTime": iso_8601(row["originalMs"])}


def group_of(row: Mapping[str, Any]) -> tuple[Group, GroupTotals]:
    """What a row counts."""
    cause, reason = row["cause"], row["reason"]
    names = row["topic"] or "", row["topicId"] or "", ObjectStatus(row["status"])
    why = None if reason is None else _REASONS[reason]
    group = Group(*names, None if cause is None else OrphanCause(cause), row["storageClass"], why)
    return group, GroupTotals(row["objects"], row["bytes"], row["oldestMs"], row["newestMs"])
