"""What is due, by what the manifest has: another look at the sources, and the upkeep of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tieredctl.model.counted import counted
from tieredctl.model.quantities import age_text
from tieredctl.ops.documents import Document
from tieredctl_spark.tables.kinds import EVENTS
from tieredctl_spark.tables.manifest import DataFile, Looked, Manifest, SnapshotState

_MOST_FILES_OF_DAY = 4
"""A past day with more files, each of another run, is compacted."""


@dataclass(frozen=True, slots=True)
class EventsDue:
    """What is due for the table of events."""

    expired: tuple[DataFile, ...]
    """Files of days that are older than events are kept."""
    scattered: Mapping[str, tuple[DataFile, ...]]
    """By past day, the files of days that are compacted."""


def day_of(moment_ms: int) -> str:
    """As tables by day have it, in UTC."""
    return (datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=moment_ms)).date().isoformat()


def first_kept_day(keep_ms: int, now_ms: int, looked_ms: int) -> str:
    """By whole days: the first one that is kept is the one in which the retention ends, by the time of the look before
    unless it is earlier now: what a clock that is wrong for one run lets go never comes back."""
    return day_of(max(0, min(now_ms, looked_ms) - keep_ms))


def is_listing_due(age_ms: int, every_ms: int) -> bool:
    """Without news. A listing of a time to come was dated by a clock that was set back since: its age is not known."""
    return not 0 <= age_ms < every_ms


def events_due(files: Iterable[DataFile], first_kept: str, now_ms: int) -> EventsDue:
    """What is due of a table of events in files, of which days from the first one on are kept."""
    today = day_of(now_ms)
    by_day: dict[str, list[DataFile]] = {}
    for one in files:
        by_day.setdefault(one.day or today, []).append(one)
    expired = [one for day, some in by_day.items() if day < first_kept for one in some]
    scattered = {
        day: tuple(some)
        for day, some in by_day.items()
        if first_kept <= day < today and sum(not one.is_compacted for one in some) > _MOST_FILES_OF_DAY
    }
    return EventsDue(tuple(expired), scattered)


def due_documents(manifest: Manifest, now_ms: int) -> list[Document]:
    """A row for each task that the next run has besides news: what it is, and why."""
    looked, found = manifest.looked, list[Document]()
    first_kept = first_kept_day(looked.keep_events_ms, now_ms, manifest.looked_ms)
    age_ms = now_ms - looked.listed_ms
    if is_listing_due(age_ms, looked.list_every_ms):
        found.append({"task": "listing", "why": _why_listing(looked, age_ms)})
    state = manifest.tables.get(EVENTS.name)
    if isinstance(state, SnapshotState):
        if state.first_day is not None and state.first_day < first_kept:
            found.append({"task": "retention", "why": f"events of {state.first_day} are there"})
        return found
    due = events_due(() if state is None else state.files, first_kept, now_ms)
    if due.expired:
        rows = counted(sum(one.rows for one in due.expired), "event")
        found.append({"task": "retention", "why": f"{rows} are older than {age_text(looked.keep_events_ms)}"})
    for day, files in sorted(due.scattered.items()):
        found.append({"task": "compaction", "why": f"the events of {day} are in {counted(len(files), 'file')}"})
    return found


def _why_listing(looked: Looked, age_ms: int) -> str:
    if age_ms < 0:
        return "the store was listed at a time to come: the clock was wrong then, or is now"
    return f"the store was listed {age_text(age_ms)} ago, and is every {age_text(looked.list_every_ms)}"
