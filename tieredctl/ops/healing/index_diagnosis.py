"""Finds the parts of a segment that are missing or damaged, by the checks of `verify`."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.segment_parts import transaction_index_entries
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import is_uuid
from tieredctl.ops.file_reading import demand_size, reading, regular_size
from tieredctl.ops.healing.examination import NOT_IN_THE_STORE, Condition, grave_findings, reasons_by_part
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ports.layout import ORIGINAL_PARTS, Layout, Part, SegmentReader, possible_objects
from tieredctl.ports.object_store import ObjectStore, StoredObject

_OF_THE_LOG = (Part.LOG, Part.MANIFEST)


@dataclass(frozen=True, slots=True)
class FoundPart:
    """A part's condition: its size in bytes as the broker wrote it, None where it is missing, and what is wrong."""

    part: Part
    condition: Condition
    size: int | None
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class IndexDiagnosis:
    """The condition of a segment's parts."""

    parts: Sequence[FoundPart]
    """All but the log, and a transaction index where none is needed."""
    stored: Mapping[Part, StoredObject]
    """The segment's objects, as listed before anything was read."""
    log_damage: str | None
    """What is wrong with the log; None where it is sound."""


def diagnose(
    metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, index_interval_bytes: int
) -> IndexDiagnosis:
    """Reads a whole segment. Raises TieredctlError where the store does not answer, or the layout lacks a key."""
    keys = possible_objects(layout, metadata)
    stored = {part: current for part, key in keys.items() if (current := store.head(key))}
    task = SegmentTask(metadata, {part: keys[part] for part in stored}, Level.FULL, index_interval_bytes)
    reasons = reasons_by_part(grave_findings(task, store, layout))
    sizes = _sizes(metadata, store, layout)
    parts = [_found(part, sizes.get(part), reasons.get(part)) for part in ORIGINAL_PARTS if part is not Part.LOG]
    log_damage = next((reasons[part] for part in _OF_THE_LOG if part in reasons), None)
    if Part.LOG not in sizes:
        log_damage = log_damage or NOT_IN_THE_STORE
    return IndexDiagnosis([part for part in parts if part], stored, log_damage)


def with_earlier_transactions(
    diagnosis: IndexDiagnosis, rebuilt: Mapping[Part, bytes], segment: SegmentReader
) -> IndexDiagnosis:
    """The same, with a transaction index that has not the entries it should have called missing or damaged.

    That is about aborted transactions which began before their segment. By the segment alone, as `verify` looks at it,
    such a transaction may have been empty, and then it has no entry; by the producers as of its first offset it was
    not.
    """
    original = next((one for one in diagnosis.parts if one.part is Part.TRANSACTION_INDEX), None)
    if Part.TRANSACTION_INDEX not in rebuilt or (original and original.condition is not Condition.SOUND):
        return diagnosis
    expected = _transactions(rebuilt[Part.TRANSACTION_INDEX])
    indexed = _transactions(segment.read(Part.TRANSACTION_INDEX)) if original else set()
    if expected == indexed:
        return diagnosis
    condition, size = (Condition.DAMAGED, original.size) if original else (Condition.MISSING, None)
    producers = ", ".join(str(producer) for producer in sorted({producer for producer, _, _ in expected ^ indexed}))
    reason = f"its entries for transactions that began before the segment are wrong (producers: {producers})"
    others = [one for one in diagnosis.parts if one is not original]
    return replace(diagnosis, parts=[*others, FoundPart(Part.TRANSACTION_INDEX, condition, size, reason)])


def _sizes(metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout) -> Mapping[Part, int]:
    try:
        return layout.open_segment(store, metadata).parts()
    except DecodeError:  # a manifest, which has a finding already
        return {}


def _found(part: Part, size: int | None, reason: str | None) -> FoundPart | None:
    if size is not None:
        return FoundPart(part, Condition.DAMAGED if reason else Condition.SOUND, size, reason)
    if part is Part.TRANSACTION_INDEX and reason is None:
        return None
    return FoundPart(part, Condition.MISSING, None, reason or NOT_IN_THE_STORE)


def _transactions(data: bytes) -> set[tuple[int, int, int]]:
    """Producers, first and last offsets. The last stable offset is left out: it may differ and still be right, where a
    follower appended what follows the marker along with it."""
    return {(entry.producer_id, entry.first_offset, entry.last_offset) for entry in transaction_index_entries(data)}


_KIND = "Verification"
_MENDED = frozenset(
    {
        FindingCode.OBJECT_MISSING,
        FindingCode.SIZE_MISMATCH,
        FindingCode.INDEX_DAMAGED,
        FindingCode.PRODUCER_SNAPSHOT_DAMAGED,
        FindingCode.PRODUCER_SNAPSHOT_MISSING,
        FindingCode.TRANSACTION_INDEX_MISSING,
        FindingCode.TRANSACTION_INDEX_DAMAGED,
    }
)
LOST = _MENDED | {
    FindingCode.ACCEPTED_LOSS,
    FindingCode.BATCH_CORRUPT,
    FindingCode.OFFSETS_OUT_OF_ORDER,
    FindingCode.RECORDS_OUTSIDE_SEGMENT,
    FindingCode.EPOCH_MISMATCH,
    FindingCode.MANIFEST_DAMAGED,
    FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED,
}
"""The findings about any object of a segment."""
_LARGEST_BYTES = 1 << 30
_HINT = "Give what `tieredctl verify -o json` wrote."


class VerifiedSegments(NamedTuple):
    """What a result says."""

    segment_ids: frozenset[str]
    cluster_id: str | None
    """The cluster of the metadata that it was verified by."""
    is_complete: bool
    """Whether that verify looked everywhere; not where the file does not say so."""


def read_verified_segments(path: Path, codes: Collection[str] = _MENDED) -> VerifiedSegments:
    """The segments of a file with a finding of these codes. Raises TieredctlError where it cannot be read, or is
    something else."""
    with reading(path):
        demand_size(path, regular_size(path), _LARGEST_BYTES, "It is not what verify wrote.")
        data = path.read_bytes()
    try:
        document = json.loads(data)
        if document["kind"] != _KIND:
            raise ValueError(document["kind"])
        ids = frozenset(filter(None, (_segment_id(item, codes) for item in document["items"])))
        is_complete = document.get("summary", {}).get("complete") is True
        return VerifiedSegments(ids, document["source"].get("clusterId"), is_complete)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        raise TieredctlError(ErrorCode.USAGE, f"{path} is not a result of verify.", hint=_HINT) from None


def _segment_id(item: dict[str, Any], codes: Collection[str]) -> str | None:
    """The segment of a finding about a part that may be made again; an id that is none is a fault of the file."""
    segment_id = item["evidence"].get("segmentId") if item["code"] in codes else None
    if segment_id is not None and not (isinstance(segment_id, str) and is_uuid(segment_id)):
        raise ValueError(segment_id)
    return segment_id
