"""Aborted transactions that began before their segment. By the segment alone, as `verify` looks at it, such a
transaction may have been empty, and then it has no entry; by the producers as of its first offset it was not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tieredctl.formats.segment_parts import transaction_index_entries
from tieredctl.layouts.protocol import Part, SegmentReader
from tieredctl.ops.index_recovery.index_diagnosis import Condition, Diagnosis, FoundPart


def with_earlier_transactions(diagnosis: Diagnosis, rebuilt: Mapping[Part, bytes], segment: SegmentReader) -> Diagnosis:
    """The same, with a transaction index that has not the entries it should have called missing or damaged."""
    found = next((one for one in diagnosis.parts if one.part is Part.TRANSACTION_INDEX), None)
    if Part.TRANSACTION_INDEX not in rebuilt or (found and found.condition is not Condition.SOUND):
        return diagnosis
    expected = _transactions(rebuilt[Part.TRANSACTION_INDEX])
    indexed = _transactions(segment.read(Part.TRANSACTION_INDEX)) if found else set()
    if expected == indexed:
        return diagnosis
    condition, size = (Condition.DAMAGED, found.size) if found else (Condition.MISSING, None)
    producers = ", ".join(str(producer) for producer in sorted({producer for producer, _, _ in expected ^ indexed}))
    reason = f"its entries for transactions that began before the segment are wrong, of producer {producers}"
    others = [one for one in diagnosis.parts if one is not found]
    return replace(diagnosis, parts=[*others, FoundPart(Part.TRANSACTION_INDEX, condition, size, reason)])


def _transactions(data: bytes) -> set[tuple[int, int, int]]:
    """Producers, first and last offsets. The last stable offset is left out: it may differ, and be right, where a
    follower appended what came behind the marker along with it."""
    return {(entry.producer_id, entry.first_offset, entry.last_offset) for entry in transaction_index_entries(data)}
