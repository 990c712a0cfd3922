"""What retention deletes while a store is listed and its metadata read is neither reported nor planned."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id, updated
from tieredctl.model.events import MetadataEvent
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphan_removal.limits import PlanOptions
from tieredctl.ops.orphan_removal.orphan_plan import Planning
from tieredctl.ops.orphan_removal.plan_file import PlanWriter
from tieredctl.ops.orphans import still_there
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.orphans.still_there import still_there as asked_again
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

HOUR_MS = 3_600_000
NOW_MS = FIRST_TIMESTAMP_MS + 100 * HOUR_MS
OLD_MS = FIRST_TIMESTAMP_MS - 100 * HOUR_MS
BEFORE: Sequence[MetadataEvent] = [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)]
LEFT_BEHIND: Sequence[MetadataEvent] = [updated(2, DELETING), updated(2, DELETED)]
"""A deletion that failed to delete."""


def objects_of(number: int) -> list[str]:
    identity = ExplainedKey(
        PARTITION.topic, PARTITION.topic_id, PARTITION.partition, (number - 1) * 10, segment_id(number), Part.LOG
    )
    return list(LAYOUT.promised_objects(identity).values())


class Retention:
    """Deletes the third segment when the store was listed, before its metadata is read; it may not come to the end."""

    def __init__(self, *events: MetadataEvent) -> None:
        self.store = MemoryStore()
        for number in (1, 2, 3):
            for key in objects_of(number):
                self.store.put(key, b"bytes", OLD_MS)
        self._events = [*BEFORE, *LEFT_BEHIND, *events]

    def read_metadata(self) -> EventStream:
        gone = [found for key in objects_of(3) if (found := self.store.head(key))]
        self.store.delete(gone)
        return EventStream(EventsInMemory(self._events))

    def scan(self, *, asked_again: bool = True) -> Scan:
        return Scan(
            *(SpooledListing(self.store.list()), LAYOUT, "memory:", self.read_metadata),
            ScanOptions(NOW_MS, 24 * HOUR_MS),
            self.store if asked_again else None,
        )


ENDINGS: dict[str, list[MetadataEvent]] = {
    "finished": [updated(3, DELETING), updated(3, DELETED)],
    "under way": [updated(3, DELETING)],
}


def test_what_is_gone_by_then_is_neither_reported_nor_planned_and_what_is_left_is() -> None:
    for ending, events in ENDINGS.items():
        scan, retention = Retention(*events).scan(), Retention(*events)
        options = PlanOptions("0123", cluster_id="rTFWgbQKRvehFNx-PhMpIg", max_percent=100.0)

        found = {document["key"]: document["cause"] for document in scan.documents()}
        totals = Planning(retention.scan(), PlanWriter(io.BytesIO()), options).run()

        assert found == dict.fromkeys(objects_of(1)) | dict.fromkeys(objects_of(2), "deleted-but-present"), ending
        assert scan.summary()["gone"] == len(objects_of(3)), ending
        assert [finding.evidence["objects"] for finding in scan.findings] == [len(objects_of(2))], ending
        expected = (len(objects_of(2)), len(objects_of(1) + objects_of(2)))
        assert (totals.objects, totals.listed_objects) == expected, ending


class ReadWithLosses(Retention):
    """The first reading of the metadata has a deletion that goes on; the second one lacks events, and has others."""

    def __init__(self, *second: MetadataEvent) -> None:
        super().__init__()
        self._readings = [[*BEFORE, updated(3, DELETING)], [*second]]

    def read_metadata(self) -> EventStream:
        return EventStream(EventsInMemory(self._readings.pop(0)))


def test_a_second_reading_that_lost_events_tells_all_the_same_what_went_on() -> None:
    for second, status in (
        ([*copied(3, 20, 29), updated(3, DELETING), updated(3, DELETED)], "in-progress"),
        (copied(3, 20, 29), "orphan"),
        ([], "orphan"),
    ):
        scan = ReadWithLosses(*second).scan()

        found = {document["key"]: document["status"] for document in scan.documents()}

        assert {found[key] for key in objects_of(3)} == {status}
        assert "metadata-cut-short" in {finding.code for finding in scan.findings}


class WrittenAgain(Retention):
    """Somebody writes what deletion left behind again, when the store was listed."""

    def __init__(self, modified_ms: int) -> None:
        super().__init__()
        self._modified_ms = modified_ms

    def read_metadata(self) -> EventStream:
        for key in objects_of(2):
            self.store.put(key, b"bytes", self._modified_ms)
        return EventStream(EventsInMemory(self._events))


def test_what_became_younger_is_neither_gone_nor_orphaned() -> None:
    for age_ms, status in ((HOUR_MS, "in-progress"), (48 * HOUR_MS, "unknown")):
        scan = WrittenAgain(NOW_MS - age_ms).scan()

        found = {document["key"]: document["status"] for document in scan.documents()}

        assert {found[key] for key in objects_of(2)} == {status}
        assert (scan.summary()["gone"], scan.findings) == (0, [])
        assert scan.summary()["objects"] == len(found) == 3 * len(objects_of(1))


WHENEVER = 1 << 62
"""A time that no object is younger than."""


class Counted(MemoryStore):
    """Counts what it is asked."""

    heads = 0
    listed = 0

    def head(self, key: str) -> StoredObject | None:
        self.heads += 1
        return super().head(key)

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        asked = self.heads
        found = [*super().list(prefix, start_after)]
        self.heads = asked  # what the store asks itself
        for stored in found:
            self.listed += 1
            yield stored


class Backwards(MemoryStore):
    """Lists by descending key."""

    def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        yield from [*super().list(prefix, start_after)][::-1]


@pytest.mark.parametrize("few", [1, 5, 1_000])
@pytest.mark.parametrize("for_each", [0, 1, 100])
def test_many_are_found_by_listing_as_few_are_by_name(monkeypatch: pytest.MonkeyPatch, few: int, for_each: int) -> None:
    monkeypatch.setattr(still_there, "_FEW", few)
    monkeypatch.setattr(still_there, "_LISTED_FOR_EACH", for_each)
    store = Counted()
    names = [f"a/{number:03}" for number in range(200)] + ["a/\udcff", "a/\U0001f600", "a/é", "a"]
    for name in names[::2]:
        store.put(name, b"")
    asked = names[10:150] + names[-3:]

    found = asked_again(store, dict.fromkeys(asked, WHENEVER)).same

    assert found == set(asked) & set(names[::2])


def test_few_are_asked_for_by_name_and_many_near_each_other_by_listing() -> None:
    # Many near each other are not asked for one by one.
    store = Counted()
    keys = [f"a/{number:05}" for number in range(3_000)]
    for key in keys:
        store.put(key, b"")
    assert asked_again(store, dict.fromkeys(keys, WHENEVER)).same == set(keys)
    assert store.heads == 1
    # A few far from each other cost no listing.
    store = Counted()
    for number in range(3_000):
        store.put(f"a/{number:05}", b"")
    assert asked_again(store, dict.fromkeys(["a/00000", "a/02999"], WHENEVER)).same == {"a/00000", "a/02999"}
    assert store.listed == 0
    # A list of no store is believed.
    scan = Retention(updated(3, DELETING), updated(3, DELETED)).scan(asked_again=False)
    assert {document["key"] for document in scan.documents()} >= set(objects_of(3))


def test_names_that_are_not_utf_8_are_found_among_many(tmp_path: Path) -> None:
    for number in range(600):
        for first in (b"\x80", "é".encode()):
            (Path(os.fsdecode(os.fsencode(tmp_path) + b"/" + first + b"%03d" % number))).write_bytes(b"")
    store = FileStore(str(tmp_path))
    keys = [stored.key for stored in store.list()]

    assert (len(keys), asked_again(store, dict.fromkeys(keys, WHENEVER)).same) == (1_200, set(keys))


def test_a_store_that_lists_in_another_order_is_asked_for_the_rest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(still_there, "_FEW", 2)
    store = Backwards()
    keys = [f"a/{number}" for number in range(9)]
    for key in keys:
        store.put(key, b"")

    assert asked_again(store, dict.fromkeys(keys, WHENEVER)).same == set(keys)


@pytest.mark.parametrize("few", [0, 1_000], ids=["by listing", "by name"])
def test_one_that_is_younger_than_it_was_listed_is_another(monkeypatch: pytest.MonkeyPatch, few: int) -> None:
    monkeypatch.setattr(still_there, "_FEW", few)
    store = MemoryStore()
    listed_ms = {key: store.put(key, b"").last_modified_ms for key in ("a/0", "a/1", "a/2")}
    listed_ms["a/1"] -= 3_600_000

    found = asked_again(store, listed_ms)

    assert (found.same, found.younger) == ({"a/0", "a/2"}, {"a/1": listed_ms["a/1"] + 3_600_000})


def test_one_answer_alone_hides_no_orphan() -> None:
    denied: list[str] = []

    class DeniesOnce(MemoryStore):
        def head(self, key: str) -> StoredObject | None:
            if key in denied:
                denied.clear()
                return None
            return super().head(key)

    store, options = DeniesOnce(), ScanOptions(NOW_MS, 24 * HOUR_MS)
    for key in objects_of(1) + objects_of(2):
        store.put(key, b"bytes", OLD_MS)
    metadata = EventStream(EventsInMemory([*copied(1, 0, 9), *copied(2, 10, 19), *LEFT_BEHIND]))
    listing = SpooledListing([*store.list()])
    denied += objects_of(2)[:1]

    scan = Scan(listing, LAYOUT, "memory:", lambda: metadata, options, store)
    orphans = [one["key"] for one in scan.documents() if one["status"] == "orphan"]

    assert (sorted(orphans), scan.summary()["gone"]) == (sorted(objects_of(2)), 0)
