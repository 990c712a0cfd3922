"""What a verification says in the end: how many findings, or how far "intact" goes."""

from __future__ import annotations

from tieredctl.model.counted import counted

_DEEPER = {"listing": "headers or full", "headers": "full"}


def verdict(level: str, findings: int, not_read: str | None) -> str:
    """`all intact` where all was read; else what of it is, and what the level does not read."""
    if not_read is None:
        return f"{counted(findings, 'finding') if findings else 'all intact'}."
    sound = counted(findings, "finding") if findings else "what was read is intact"
    return f"{sound}. Not read: {not_read} (--level {_DEEPER[level]})."
