"""What a plan has in it, on a store and a metadata topic in memory."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import DELETING, FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id, started, updated
from tieredctl.errors import TieredctlError
from tieredctl.formats.removal_files import PLAN_HEADER, decode_planned
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.ownership import OrphanCause
from tieredctl.model.removal import PlannedObject, PlanTotals
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphan_removal.limits import PlanOptions, enough_percent, is_too_large
from tieredctl.ops.orphan_removal.orphan_plan import Planning
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.memory import MemoryStore

HOUR_MS = 3_600_000
NOW_MS = FIRST_TIMESTAMP_MS + 100 * HOUR_MS
OLD_MS = FIRST_TIMESTAMP_MS - 100 * HOUR_MS
BEGINS_MS = OLD_MS - HOUR_MS
"""When the first event was written: objects come after it."""
OTHER_PARTITION = TopicIdPartition("Ex-aw3fEQIi3do0H9Y7cKQ", "u", 0)
OPTIONS = PlanOptions("0123", cluster_id="rTFWgbQKRvehFNx-PhMpIg", max_percent=100.0)


def key(number: int, start: int = 0, partition: TopicIdPartition = PARTITION) -> str:
    identity = ExplainedKey(
        partition.topic, partition.topic_id, partition.partition, start, segment_id(number), Part.LOG
    )
    return LAYOUT.promised_objects(identity)[Part.LOG]


OWNED, STUCK, GIVEN_UP, NEVER_NAMED = key(1), key(2, 10), key(3, 20), key(9, 15)
EVENTS: Sequence[MetadataEvent] = [
    *copied(1, 0, 9, event_timestamp_ms=BEGINS_MS),
    *copied(2, 10, 19),
    updated(2, DELETING),
    started(3, 20, 29),
    *copied(4, 20, 29),
]
TIMES = dict.fromkeys((OWNED, STUCK, GIVEN_UP, NEVER_NAMED), OLD_MS)


@dataclass
class Planned:
    """A plan in memory."""

    totals: PlanTotals
    planning: Planning
    lines: list[bytes] = field(default_factory=list)

    @property
    def objects(self) -> list[PlannedObject]:
        decoded = [decode_planned(line) for line in self.lines[1:-2]]
        return [one for one in decoded if isinstance(one, PlannedObject)]

    @property
    def keys(self) -> set[str]:
        return {one.key for one in self.objects}


def plan(
    times: Mapping[str, int] = TIMES,
    options: PlanOptions = OPTIONS,
    events: Sequence[MetadataEvent] = EVENTS,
    *,
    min_age_ms: int = 24 * HOUR_MS,
    selection: Selection = Selection(),
) -> Planned:
    store = MemoryStore()
    for name, modified_ms in times.items():
        store.put(name, b"12345", modified_ms)
    scanned = ScanOptions(NOW_MS, min_age_ms, selection=selection)
    scan = Scan(SpooledListing(store.list()), LAYOUT, store.url, lambda: EventStream(EventsInMemory(events)), scanned)
    file = io.BytesIO()
    planning = Planning(scan, PlanWriter(file), options, [LAYOUT])
    totals = planning.run()
    return Planned(totals, planning, file.getvalue().splitlines(keepends=True))


def refusal(**how: Any) -> str:
    with pytest.raises(TieredctlError) as refused:
        plan(**how)
    return refused.value.code


def test_orphans_of_every_cause_are_planned_with_their_evidence_and_nothing_else() -> None:
    # Orphans of every cause are planned and nothing else.
    planned = plan()
    assert planned.keys == {STUCK, GIVEN_UP, NEVER_NAMED}
    assert planned.totals == PlanTotals(3, 15, 0, 4)
    # Each has the evidence for it.
    evidence = {one.key: one.evidence for one in plan().objects}
    assert evidence[STUCK] == {"state": "DELETE_SEGMENT_STARTED", "metadataPartition": 0, "metadataOffset": 4}
    assert evidence[NEVER_NAMED] == {"metadataPartition": 0, "noEventBefore": len(EVENTS)}
    # The header says how far the metadata was read.
    header = PLAN_HEADER.decode(plan().lines[0])
    assert header.metadata_end_offsets == {0: len(EVENTS)}
    assert (header.created_ms, header.valid_until_ms) == (NOW_MS, NOW_MS + 24 * HOUR_MS)
    # The roots own quarantine is passed over.
    planned = plan(TIMES | {f".tieredctl/quarantine/1/{STUCK}": OLD_MS})
    assert (planned.totals.objects, planned.totals.listed_objects) == (3, 4)


def test_a_cause_or_a_filter_leaves_the_others_out_and_what_is_young_is_left() -> None:
    for cause, expected in (
        (OrphanCause.NO_METADATA, {NEVER_NAMED}),
        (OrphanCause.DELETE_NEVER_FINISHED, {STUCK}),
        (OrphanCause.COPY_NEVER_FINISHED, {GIVEN_UP}),
        (OrphanCause.TOPIC_GONE, set()),
    ):
        assert plan(options=replace(OPTIONS, causes=frozenset({cause}))).keys == expected, cause
    filtered = plan(selection=Selection.of(segment_id=segment_id(2)))
    assert (filtered.keys, filtered.totals.listed_objects) == ({STUCK}, 4)
    assert plan(TIMES | {STUCK: NOW_MS - 23 * HOUR_MS}).keys == {GIVEN_UP, NEVER_NAMED}


def test_limits_count_what_they_leave() -> None:
    by_number = plan(options=replace(OPTIONS, max_objects=1))
    by_bytes = plan(options=replace(OPTIONS, max_bytes=14))
    assert (by_number.totals.objects, by_number.planning.planned.left) == (1, 2)
    assert (by_bytes.totals.bytes, by_bytes.planning.planned.left) == (10, 1)
    # The share may be reached and not exceeded.
    planned, whole = 3, 4
    for max_percent, is_refused in ((75.0, False), (74.9, True), (0.0, True)):
        assert is_too_large(planned, whole, max_percent) is is_refused, max_percent


def test_limits_keep_a_plan_below_the_share_and_an_age_below_the_floor_has_to_be_allowed() -> None:
    assert plan({}).totals == PlanTotals(0, 0, 0, 0)
    assert plan(options=replace(OPTIONS, max_percent=25.0, max_objects=1)).totals.objects == 1
    for min_age_ms, allowed in ((HOUR_MS, False), (HOUR_MS - 1, True), (0, True)):
        planned = plan(min_age_ms=min_age_ms, options=replace(OPTIONS, allow_young=allowed))
        assert planned.totals.objects == 3, min_age_ms


@given(st.integers(0, 1 << 40).flatmap(lambda whole: st.tuples(st.integers(0, whole), st.just(whole))))
def test_a_plan_that_is_too_large_names_the_least_whole_share_that_is_enough(share: tuple[int, int]) -> None:
    enough = enough_percent(*share)

    assert not is_too_large(*share, enough)
    assert share[1] == 0 or enough == 0 or is_too_large(*share, enough - 1)


FOLDER, _, NAME = STUCK.rpartition("/")
FOREIGN = {
    "times": {key(7, partition=OTHER_PARTITION): OLD_MS},
    "options": replace(OPTIONS, foreign_topic_ids=frozenset({OTHER_PARTITION.topic_id})),
}
OTHERS_FIRST = {f"inside/{FOLDER}/{'0' * length}.log": OLD_MS for length in (1, 2, len(NAME))}
ANOTHER_ROOTS = {".tieredctl/quarantine/1/a": OLD_MS, "b/.tieredctl/lease.json": OLD_MS}
REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "an age below the floor": ({"min_age_ms": HOUR_MS - 1}, "age-too-low"),
    "metadata of other topics": ({"events": copied(1, 0, 9, partition=OTHER_PARTITION)}, "no-overlap"),
    "a store that no layout explains": ({"times": {"notes.txt": OLD_MS}}, "no-overlap"),
    "foreign topics alone, though named": (FOREIGN, "no-overlap"),
    "metadata that names no cluster": ({"options": replace(OPTIONS, cluster_id=None)}, "usage"),
    "a root inside the root": ({"times": TIMES | {f"inside/{STUCK}": OLD_MS}}, "ambiguous-prefix"),
    "a root deep inside": ({"times": TIMES | {f"deep/{'down/' * 20}{STUCK}": OLD_MS}}, "ambiguous-prefix"),
    "a root inside, after other files": (
        {"times": TIMES | OTHERS_FIRST | {f"inside/{STUCK}": OLD_MS}},
        "ambiguous-prefix",
    ),
    "another root's quarantine": ({"times": TIMES | ANOTHER_ROOTS}, "quarantine-scanned"),
}


def test_what_is_no_place_to_plan_for_is_refused() -> None:
    for name, (how, code) in REFUSED.items():
        assert refusal(**how) == code, name
