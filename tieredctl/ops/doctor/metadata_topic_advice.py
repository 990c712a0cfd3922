"""What is wise for the metadata topic: the same for one that is to be made, and for one that is there."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.ops.cluster.retention import UNLIMITED, outlives


def min_isr_fault(min_isr: int, replicas: int) -> str | None:
    """Why a min ISR is unwise beside a number of replicas, of which there are several; None where it is not."""
    if min_isr < 2:
        return "an event that one broker has is taken to be safe"
    if min_isr >= replicas:
        return f"with {replicas} replicas, one broker that is down stops tiering"
    return None


def retention_fault(metadata_retention_ms: int, kept: Iterable[tuple[str, int | None]]) -> str | None:
    """Why the metadata's retention is too short beside what is kept for how long (ms, each with whose it is).

    A topic whose retention is not known counts for nothing.
    """
    outliving = [(whose, ms) for whose, ms in kept if ms is not None and outlives(ms, metadata_retention_ms)]
    if not outliving:
        return None
    whose, longest = max(outliving, key=lambda one: float("inf") if one[1] == UNLIMITED else one[1])
    spelled = "for ever" if longest == UNLIMITED else f"for {longest} ms"
    return f"metadata goes after {metadata_retention_ms} ms, but data is kept {spelled} ({whose})"
