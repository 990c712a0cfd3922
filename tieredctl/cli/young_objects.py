"""What scans and plans of orphans say of objects that are too young to be orphaned."""

from __future__ import annotations

from tieredctl.model.counted import counted
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document


def young_sentence(summary: Document, min_age: str) -> str:
    """How many objects of a scan are not owned, but too young to be orphaned; and what shows them, unless others are.
    Empty without any. `min_age` as it was typed."""
    hint = "" if summary["status"][ObjectStatus.ORPHAN]["objects"] else ": a lower one shows what is orphaned"
    return _sentence(summary, f"younger than --min-age {min_age}{hint}")


def not_older_sentence(summary: Document, min_age: str) -> str:
    """The same where they have to be older by `min_age` than the oldest object that is needed."""
    return _sentence(summary, f"not older than the oldest needed object by --min-age {min_age}")


def _sentence(summary: Document, how: str) -> str:
    younger = summary["younger"]
    if not younger["objects"]:
        return ""
    are = "is" if younger["objects"] == 1 else "are"
    objects = f"{counted(younger['objects'], 'object')} that {are} not owned, {size_text(younger['bytes'])},"
    return f"{objects} {are} {how}."
