"""What is due, by what the manifest has: another look at the sources, and the upkeep of events."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from tieredctl.model.counted import counted
from tieredctl.model.quantities import age_text
from tieredctl.ops.documents import Document
from tieredctl_spark.tables.kinds import EVENTS
from tieredctl_spark.tables.manifest import DataFile, Manifest, SnapshotState

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


def first_kept_day(keep_ms: int, now_ms: int) -> str:
    """By whole days: the first one that is kept is the one in which the retention ends."""
    return day_of(max(0, now_ms - keep_ms))


def events_due(files: Iterable[DataFile], keep_ms: int, now_ms: int) -> EventsDue:
    """What is due of a table of events in files."""
    today, first_kept = day_of(now_ms), first_kept_day(keep_ms, now_ms)
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
    age_ms = now_ms - looked.listed_ms
    if age_ms >= looked.list_every_ms:
        why = f"the store was listed {age_text(age_ms)} ago, and is every {age_text(looked.list_every_ms)}"
        found.append({"task": "listing", "why": why})
    state = manifest.tables.get(EVENTS.name)
    if isinstance(state, SnapshotState):
        if state.first_day is not None and state.first_day < first_kept_day(looked.keep_events_ms, now_ms):
            found.append({"task": "retention", "why": f"events of {state.first_day} are there"})
        return found
    due = events_due(() if state is None else state.files, looked.keep_events_ms, now_ms)
    if due.expired:
        rows = counted(sum(one.rows for one in due.expired), "event")
        found.append({"task": "retention", "why": f"{rows} are older than {age_text(looked.keep_events_ms)}"})
    for day, files in sorted(due.scattered.items()):
        found.append({"task": "compaction", "why": f"the events of {day} are in {counted(len(files), 'file')}"})
    return found
