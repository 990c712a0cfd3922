"""What is wise for the metadata topic: the same for an existing one and one still to be created."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.ops.cluster.retention import UNLIMITED, outlives


def min_isr_fault(min_isr: int, replicas: int) -> str | None:
    """Why a min ISR is unwise for this number of replicas (more than one); None where it is not."""
    if min_isr < 2:
        return "an event counts as written once a single broker has it"
    if min_isr >= replicas:
        return f"with {replicas} replicas, tiering stops when one broker is down"
    return None


def retention_fault(metadata_retention_ms: int, kept: Iterable[tuple[str, int | None]]) -> str | None:
    """Why the metadata's retention is too short for the topics' retention (ms, each with the topic's name).

    A topic whose retention is unknown is ignored.
    """
    outliving = [(whose, ms) for whose, ms in kept if ms is not None and outlives(ms, metadata_retention_ms)]
    if not outliving:
        return None
    whose, longest = max(outliving, key=lambda one: float("inf") if one[1] == UNLIMITED else one[1])
    spelled = "forever" if longest == UNLIMITED else f"for {longest} ms"
    return f"metadata is deleted after {metadata_retention_ms} ms, but data is kept {spelled} ({whose})"
