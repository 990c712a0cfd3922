"""Which objects of a segment are missing or damaged, by the checks of `verify --level full`."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_subjects import SegmentSubject
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.guards.second_reading import head_again
from tieredctl.ops.healing.segment_views import LayoutWithParts, StoreWith
from tieredctl.ops.verification.report import Level, SegmentTask, private_key_error
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ports.layout import Layout, Part, possible_objects
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.ports.segment_objects import SegmentObjects

NOT_IN_THE_STORE = "it is not in the store"
_OF_ANOTHER_SEGMENT = "it describes another segment"


class Condition(StrEnum):
    """The condition of a part."""

    SOUND = "sound"
    MISSING = "missing"
    DAMAGED = "damaged"


def grave_findings(task: SegmentTask, store: ObjectStore, layout: SegmentObjects) -> list[Finding]:
    """What is wrong with a segment, warnings left out. Raises TieredctlError where something of it could not be
    read."""
    report = check_segment(task, store, layout)
    if no_key := private_key_error(report.unread):
        raise no_key
    grave = [one for one in report.findings if one.severity > Severity.WARNING]
    unread = next((one for one in grave if one.kind.incomplete), None)
    if unread:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{unread.subject}: {unread.message}")
    return grave


def reasons_by_part(findings: Collection[Finding]) -> dict[Part, str]:
    """The first finding for each part."""
    reasons: dict[Part, str] = {}
    for finding in findings:
        if isinstance(finding.about, SegmentSubject) and finding.about.part is not None:
            reasons.setdefault(Part(finding.about.part), finding.message)
    return reasons


@dataclass(frozen=True, slots=True)
class Examined:
    """The objects of a segment at one moment."""

    stored: Mapping[Part, StoredObject]
    """Those that exist."""
    damage: Mapping[Part, str]
    """Why each object that should be written again should be. Of a segment without a sound manifest, only what is
    missing beside it is known."""

    def condition(self, part: Part) -> Condition:
        """The condition of one object."""
        if part not in self.damage:
            return Condition.SOUND
        return Condition.DAMAGED if part in self.stored else Condition.MISSING


def examine(
    metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, index_interval_bytes: int
) -> Examined:
    """Reads a whole segment. Raises TieredctlError where the store does not answer, or something cannot be read."""
    keys = possible_objects(layout, metadata)
    found = _looked_at(metadata, store, layout, index_interval_bytes)
    if found.damage and _describes_another(metadata, store, layout, found):
        return _only_manifest(found, keys, _OF_ANOTHER_SEGMENT)
    if Part.MANIFEST in found.damage:
        return _only_manifest(found, keys, found.damage[Part.MANIFEST])
    if Part.LOG not in found.damage or Part.LOG not in found.stored:
        return found
    # An index of another segment may put the blame on a log that is sound.
    indexes = [key for part, key in keys.items() if part not in (Part.LOG, Part.MANIFEST)]
    if Part.LOG in _looked_at(metadata, StoreWith(store, hidden=indexes), layout, index_interval_bytes).damage:
        return found
    blamed = {
        part: found.damage[Part.LOG]
        for part, key in keys.items()
        if key in indexes and part in found.stored and _blames_log(metadata, store, layout, index_interval_bytes, key)
    }
    return replace(found, damage=blamed | {part: why for part, why in found.damage.items() if part is not Part.LOG})


def damage_of_parts(
    metadata: RemoteLogSegmentMetadata,
    parts: Mapping[Part, bytes],
    store: ObjectStore,
    layout: SegmentObjects,
    index_interval_bytes: int,
) -> dict[Part, str]:
    """What is wrong with parts as a broker wrote them, in memory; those that are not there are not missed."""
    task = SegmentTask(metadata, {part: part.value for part in parts}, Level.FULL, index_interval_bytes)
    reasons = reasons_by_part(grave_findings(task, store, LayoutWithParts(layout, metadata.segment_id, parts)))
    return {part: reason for part, reason in reasons.items() if part in parts}


def _looked_at(
    metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, index_interval_bytes: int
) -> Examined:
    promised = layout.promised_objects(metadata)
    keys = promised | layout.optional_objects(metadata)
    asked = ((part, head_again(store, key) if part in promised else store.head(key)) for part, key in keys.items())
    stored = {part: current for part, current in asked if current is not None}
    task = SegmentTask(metadata, {part: keys[part] for part in stored}, Level.FULL, index_interval_bytes)
    damage = {part: NOT_IN_THE_STORE for part in promised if part not in stored}
    for part, reason in reasons_by_part(grave_findings(task, store, layout)).items():
        damage.setdefault(part if part in keys else Part.INDEXES, reason)
    return Examined(stored, damage)


def _only_manifest(found: Examined, keys: Mapping[Part, str], why: str) -> Examined:
    missing = {part: NOT_IN_THE_STORE for part in keys if part in found.damage and part not in found.stored}
    return replace(found, damage={Part.MANIFEST: why} | missing)


def _blames_log(
    metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, index_interval_bytes: int, index: str
) -> bool:
    keys = possible_objects(layout, metadata)
    hidden = [key for part, key in keys.items() if part not in (Part.LOG, Part.MANIFEST) and key != index]
    return Part.LOG in _looked_at(metadata, StoreWith(store, hidden=hidden), layout, index_interval_bytes).damage


def _describes_another(metadata: RemoteLogSegmentMetadata, store: ObjectStore, layout: Layout, found: Examined) -> bool:
    """Whether a manifest that can be read is another segment's: then what it says of the others is wrong."""
    if Part.MANIFEST not in found.stored or Part.MANIFEST in found.damage:
        return False
    try:
        recorded = layout.recorded_metadata(store, metadata)
    except DecodeError:
        return True
    claims = (metadata.end_offset, metadata.segment_size_in_bytes)
    return recorded is not None and (recorded.end_offset, recorded.segment_size_in_bytes) != claims
