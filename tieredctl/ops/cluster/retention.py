"""Kafka's rule for local against total retention, the same for topics and for brokers' defaults."""

from __future__ import annotations

UNLIMITED = -1
AS_TOTAL = -2


def local_retention_fault(local_name: str, local: int | None, total_name: str, total: int | None) -> str | None:
    """Why Kafka refuses a local retention (in ms or bytes) with a total one; None where it does not.

    Also None where one of the two is unknown.
    """
    if local is None or total is None or total == UNLIMITED or local == AS_TOTAL:
        return None
    if local == UNLIMITED:
        return f"{local_name} is unlimited, but {total_name} is {total}"
    if local > total:
        return f"{local_name} is {local}, above {total_name}, which is {total}"
    return None


def effective_local(local: int, total: int) -> int:
    """Local retention with -2 resolved; -1 is unlimited."""
    return total if local == AS_TOTAL else local


def outlives(data: int, metadata: int) -> bool:
    """Whether data kept for `data` ms may outlive its metadata, kept for `metadata` ms; -1 is forever.

    A segment's metadata is older than its deletion by more than its retention, so equal is too short.
    """
    return metadata != UNLIMITED and (data == UNLIMITED or data >= metadata)
