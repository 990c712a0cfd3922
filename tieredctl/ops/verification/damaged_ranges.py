"""Finds which bytes of the stored object are to blame for a log's damaged stretches, where the layout knows."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.verification.log_check import CorruptBatch, LogFacts
from tieredctl.ports.layout import DamagedRange


def blame(damages: Sequence[DamagedRange], facts: LogFacts, metadata: RemoteLogSegmentMetadata) -> None:
    """Adds the first damage of each stretch to its finding. Damages are ordered by position; each lies in one stretch,
    since no sound batch can be in it."""
    if not damages:
        return
    if facts.torn_at is not None:
        first = min(max(facts.last_offset + 1, metadata.start_offset), metadata.end_offset)
        facts.corrupt.append(CorruptBatch(facts.torn_at, "the last batch is incomplete", first, metadata.end_offset))
        facts.torn_at = None
    facts.corrupt.sort(key=lambda batch: batch.position)
    begins = [batch.position for batch in facts.corrupt]
    for damage in reversed(damages):
        row = bisect_right(begins, damage.position) - 1
        if row >= 0:
            facts.corrupt[row] = replace(facts.corrupt[row], reason=damage.reason, stored=damage.stored)
