"""Which promised objects are missing: not what retention deleted meanwhile, nor what is found by its name."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import DELETING, FIRST_TIMESTAMP_MS, PARTITION, TOPIC_ID, copied, segment_id, started, updated
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphan_removal.limits import PlanOptions
from tieredctl.ops.orphan_removal.orphan_plan import Planning
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ops.verification.removed_keys import note_removed
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.storage.memory import MemoryStore

HOUR_MS = 3_600_000
KEY = b"k" * 32
NOW_MS = FIRST_TIMESTAMP_MS + 100 * HOUR_MS
OLD_MS = FIRST_TIMESTAMP_MS - 100 * HOUR_MS
OPTIONS = PlanOptions("0123", cluster_id="rTFWgbQKRvehFNx-PhMpIg", max_percent=100.0)
LIVE = frozenset([TOPIC_ID])


def objects_of(number: int) -> list[str]:
    identity = ExplainedKey(
        PARTITION.topic, PARTITION.topic_id, PARTITION.partition, (number - 1) * 10, segment_id(number), Part.LOG
    )
    return list(LAYOUT.promised_objects(identity).values())


@dataclass
class World:
    """Two finished copies, and what a third left behind."""

    store: MemoryStore = field(default_factory=MemoryStore)
    events: list[MetadataEvent] = field(
        default_factory=lambda: [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29), updated(3, DELETING)]
    )
    meanwhile: Sequence[MetadataEvent] = ()
    """What follows after the first reading."""
    topics: frozenset[str] | None = LIVE
    unlisted: int = 0
    """How many objects the listing lacks, as an older inventory does."""
    lost_before_reading: int | None = None
    """By which reading, from 1, the metadata has lost all events."""
    _readings: int = 0

    def __post_init__(self) -> None:
        for number in (1, 2, 3):
            for key in objects_of(number):
                self.store.put(key, b"bytes", OLD_MS)

    def delete(self, key: str) -> None:
        found = self.store.head(key)
        assert found is not None
        self.store.delete([found])

    def read(self) -> EventStream:
        if self._readings:
            self.events += self.meanwhile
            self.meanwhile = ()
        self._readings += 1
        is_lost = self.lost_before_reading is not None and self._readings >= self.lost_before_reading
        return EventStream(EventsInMemory([] if is_lost else self.events))

    def scan(self) -> Scan:
        """A scan that has not been run."""
        scanned = ScanOptions(NOW_MS, 24 * HOUR_MS, TopicSources(topic_ids=self.topics), key=KEY)
        listing = SpooledListing(list(self.store.list())[self.unlisted :])
        return Scan(listing, LAYOUT, self.store.url, self.read, scanned, self.store)

    def plan(self, **options: Any) -> int:
        """How many objects are planned."""
        return Planning(self.scan(), PlanWriter(io.BytesIO()), replace(OPTIONS, **options), [LAYOUT]).run().objects


def code_of(world: World) -> ErrorCode | None:
    """Of the refusal, if there is one."""
    try:
        world.plan()
    except TieredctlError as error:
        return error.code
    return None


def test_a_plan_is_refused_while_any_promised_part_is_missing() -> None:
    # Where all that is promised is there orphans are planned.
    assert World().plan() == len(objects_of(3))
    for part in range(len(objects_of(1))):
        world = World()
        world.delete(objects_of(1)[part])
        assert code_of(world) is ErrorCode.PROMISED_MISSING, part
        assert world.plan(max_missing=1), part
    # An object in the folder of another partition is not the promised one.
    world = World()
    for key in objects_of(2):
        world.delete(key)
        world.store.put(key.replace("-0-", "-1-", 1), b"bytes", OLD_MS)
    assert code_of(world) is ErrorCode.PROMISED_MISSING


def test_a_scan_that_finds_orphans_is_incomplete_while_a_promised_object_is_missing() -> None:
    world, missing = World(), objects_of(1)[0]
    whole = world.scan()
    whole.run()
    world.delete(missing)

    scan = world.scan()
    scan.run()

    added = [finding for finding in scan.findings if finding.code not in {one.code for one in whole.findings}]
    assert [(one.code, one.evidence) for one in added] == [("promised-objects-missing", {"objects": 1, "key": missing})]
    assert (exit_code_of(scan.findings), scan.summary()["complete"]) == (ExitCode.INCOMPLETE, False)


def test_where_nothing_looks_orphaned_a_scan_says_nothing_of_what_is_missing() -> None:
    world = World()
    for key in (objects_of(1)[0], *objects_of(3)):
        world.delete(key)

    scan = world.scan()
    scan.run()

    assert scan.findings == []


def test_what_is_no_more_promised_or_not_listed_is_not_missing() -> None:
    # What retention deleted since the metadata was read is not missing.
    world = World(meanwhile=[updated(2, DELETING)])
    for key in objects_of(2):
        world.delete(key)
    assert code_of(world) is None
    # What is no more promised is not missing. A copy that never ended, and one whose deletion began.
    world = World()
    world.events += [started(4, 30, 39)]
    for key in objects_of(3)[1:]:
        world.delete(key)
    assert world.plan() == 1
    # What is not listed is asked for by name.
    assert World(unlisted=3).plan() == len(objects_of(3))


def test_a_later_reading_of_metadata_that_lost_events_excuses_nothing() -> None:
    for reading, what in ((2, "the second look"), (3, "what is promised"), (4, "what is still promised")):
        world = World(lost_before_reading=reading)
        for key in objects_of(2):
            world.delete(key)

        assert code_of(world) is ErrorCode.METADATA_INCOMPLETE, what


def test_what_a_plan_removed_is_missing_of_a_live_topic_and_where_only_an_unsealed_note_says_so() -> None:
    for topics, key, code in (
        (LIVE, KEY, ErrorCode.PROMISED_MISSING),
        (None, KEY, None),
        (None, None, ErrorCode.PROMISED_MISSING),
    ):
        world = World(topics=topics)
        for name in objects_of(2):
            world.delete(name)
        note_removed(world.store, key, "before", objects_of(2))

        assert code_of(world) is code, (topics, key)
