"""Copies that never ended and whose objects a plan removed are not stuck any more, and say which plan it was."""

from __future__ import annotations

from functools import partial

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, segment_id, started
from tieredctl.model.clock import Clock
from tieredctl.ops.doctor.removed_leftovers import Leftovers, RemovalNotes, left_unfinished
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.verification.removed_keys import note_put_back, note_removed, read_removed_keys
from tieredctl.storage.memory import MemoryStore

LATER_MS, HOUR_MS = FIRST_TIMESTAMP_MS + 7_200_000, 3_600_000
COPY = started(1, 0, 9)
KEY = b"k" * 32
KEYS = list(LAYOUT.promised_objects(COPY).values())


def left(store: MemoryStore, *, now_ms: int = LATER_MS) -> Leftovers:
    metadata = replayed(EventStream(EventsInMemory([COPY, started(2, 10, 19)])))
    known = [one for _, one in metadata.segments()]
    return left_unfinished(
        known, Clock(now_ms, HOUR_MS), RemovalNotes(store, LAYOUT, partial(read_removed_keys, key=KEY))
    )


def ids(found: Leftovers) -> list[str]:
    return [one.metadata.segment_id for one in found.unfinished]


def test_what_a_plan_removed_is_told_apart_from_what_is_stuck() -> None:
    for key, severity in ((KEY, "info"), (None, "warning")):
        store = MemoryStore()
        note_removed(store, key, "plan-7", KEYS)

        found = left(store)

        assert ids(found) == [segment_id(2)]
        assert [(one.code, one.severity.label, one.evidence["planId"]) for one in found.findings] == [
            ("object-removed", severity, "plan-7")
        ]


def test_what_is_there_or_was_put_back_or_may_still_end_is_unfinished() -> None:
    there, back, young = MemoryStore(), MemoryStore(), MemoryStore()
    for store in (there, back, young):
        note_removed(store, KEY, "plan-7", KEYS)
    there.put(KEYS[0], b"")
    note_put_back(back, "plan-7", KEYS)

    for name, found in {
        "there": left(there),
        "put back": left(back),
        "young": left(young, now_ms=FIRST_TIMESTAMP_MS),
        "nothing noted": left(MemoryStore()),
    }.items():
        assert (ids(found), found.findings) == ([segment_id(1), segment_id(2)], []), name
