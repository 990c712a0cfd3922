"""Which of a segment's parts are missing or damaged, by the very checks of `verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.layouts.protocol import ORIGINAL_PARTS, Layout, Part
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ops.verification.unread import private_key_error
from tieredctl.storage.protocol import ObjectStore, StoredObject

_OF_THE_LOG = (Part.LOG, Part.MANIFEST)


class Condition(StrEnum):
    """How a part was found."""

    SOUND = "sound"
    MISSING = "missing"
    DAMAGED = "damaged"


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part as it was found: its size in bytes as the broker wrote it, None where it is missing, and what is wrong."""

    part: Part
    condition: Condition
    size: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """How a segment's parts were found."""

    parts: Sequence[FoundPart]
    """But for the log, and a transaction index where none is needed."""
    stored: Mapping[Part, StoredObject]
    """The segment's objects, as they were before anything was read."""
    log_damage: str | None
    """What is wrong with the log; None where it is sound."""


def diagnose(
    metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, index_interval_bytes: int
) -> Diagnosis:
    """Reads a whole segment. Raises TieredctlError where the store does not answer, or the layout lacks a key."""
    keys = layout.promised_objects(metadata) | layout.optional_objects(metadata)
    stored = {part: found for part, key in keys.items() if (found := store.head(key))}
    task = SegmentTask(metadata, {part: keys[part] for part in stored}, Level.FULL, index_interval_bytes)
    grave = [one for one in check_segment(task, store, layout).findings if one.severity > Severity.WARNING]
    if no_key := private_key_error(grave):
        raise no_key
    unread = next((one for one in grave if one.kind.incomplete), None)
    if unread:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{unread.subject}: {unread.message}")
    sizes = _sizes(metadata, store, layout)
    reasons = _reasons(grave)
    parts = [_found(part, sizes.get(part), reasons.get(part)) for part in ORIGINAL_PARTS if part is not Part.LOG]
    log_damage = next((reasons[part] for part in _OF_THE_LOG if part in reasons), None)
    if Part.LOG not in sizes:
        log_damage = log_damage or "it is not in the store"
    return Diagnosis([part for part in parts if part], stored, log_damage)


def _sizes(metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout) -> Mapping[Part, int]:
    try:
        return layout.open_segment(store, metadata).parts()
    except DecodeError:  # a manifest, of which there is a finding
        return {}


def _reasons(findings: Sequence[Finding]) -> dict[Part, str]:
    """What was found first of each part."""
    return {Part(str(one.evidence["part"])): one.message for one in reversed(findings)}


def _found(part: Part, size: int | None, reason: str | None) -> FoundPart | None:
    if size is not None:
        return FoundPart(part, Condition.DAMAGED if reason else Condition.SOUND, size, reason)
    if part is Part.TRANSACTION_INDEX and reason is None:
        return None
    return FoundPart(part, Condition.MISSING, None, reason or "it is not in the store")
