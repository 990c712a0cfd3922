"""What lies in which storage class, and what it costs."""

from __future__ import annotations

from collections.abc import Iterator

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.noncurrent import noncurrent
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.ports.object_store import KeptVersion, Retention, StoredObject, Versioning
from tieredctl.storage.memory import MemoryStore

GIB = 1 << 30
HOUR_MS = 3_600_000
PRICE = StoragePrice(8.0, "EUR", class_prices={"GLACIER": 1.0})
OWNED, NOBODYS = 1, 2


def stored(number: int, part: Part, size: int, storage_class: str | None) -> StoredObject:
    identity = ExplainedKey(PARTITION.topic, PARTITION.topic_id, PARTITION.partition, 0, segment_id(number), part)
    return StoredObject(LAYOUT.promised_objects(identity)[part], size, FIRST_TIMESTAMP_MS, "1", storage_class)


OBJECTS = [
    stored(OWNED, Part.LOG, 4 * GIB, "STANDARD"),
    stored(OWNED, Part.OFFSET_INDEX, GIB, None),
    stored(NOBODYS, Part.LOG, 2 * GIB, "GLACIER"),
    stored(NOBODYS, Part.OFFSET_INDEX, GIB, "STANDARD"),
    stored(NOBODYS, Part.TIME_INDEX, GIB, "DEEP_ARCHIVE"),
]


def scan(price: StoragePrice | None = PRICE) -> Scan:
    options = ScanOptions(now_ms=FIRST_TIMESTAMP_MS + 100 * HOUR_MS, min_age_ms=24 * HOUR_MS, price=price)
    # What was put after the last event cannot be judged: the second segment's event is newer than both.
    events = [
        *copied(OWNED, 0, 9, event_timestamp_ms=FIRST_TIMESTAMP_MS - HOUR_MS),
        *copied(3, 10, 19, event_timestamp_ms=FIRST_TIMESTAMP_MS + HOUR_MS),
    ]
    return Scan(SpooledListing(OBJECTS), LAYOUT, "memory:", lambda: EventStream(EventsInMemory(events)), options)


def test_each_class_is_counted_and_costs_its_own_price() -> None:
    # Each object is shown with its storage class.
    shown = {document["key"]: document["storageClass"] for document in scan().documents()}
    assert shown == {one.key: one.storage_class for one in OBJECTS}
    found = scan()
    found.run()
    summary = found.summary()
    assert summary["storageClasses"] == {
        "DEEP_ARCHIVE": {"objects": 1, "bytes": GIB, "monthlyCost": 8.0},
        "GLACIER": {"objects": 1, "bytes": 2 * GIB, "monthlyCost": 2.0},
        "STANDARD": {"objects": 2, "bytes": 5 * GIB, "monthlyCost": 40.0},
    }
    assert summary["status"]["orphan"] == {"objects": 3, "bytes": 4 * GIB, "monthlyCost": 18.0}
    assert summary["status"]["owned"] == {"objects": 2, "bytes": 5 * GIB, "monthlyCost": 40.0}
    assert summary["classesWithoutPrice"] == ["DEEP_ARCHIVE"]
    # A row of totals has all classes of a topic.
    found = scan()
    found.run()
    rows = [(row["status"], row["objects"], row["bytes"], row["monthlyCost"]) for row in found.totals()]
    assert rows == [("orphan", 3, 4 * GIB, 18.0), ("owned", 2, 5 * GIB, 40.0)]
    # Without prices nothing is reported to cost anything.
    found = scan(price=None)
    found.run()
    summary = found.summary()
    assert (summary["classesWithoutPrice"], summary["currency"]) == ([], None)
    assert summary["storageClasses"]["GLACIER"] == {"objects": 1, "bytes": 2 * GIB}
    assert {row["monthlyCost"] for row in found.totals()} == {None}


def test_noncurrent_versions_cost_what_their_class_does() -> None:
    class Versioned(MemoryStore):
        def retention(self) -> Retention:
            return Retention(Versioning.ENABLED)

        def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
            yield KeptVersion("a", "1", 2 * GIB, 0, False, "GLACIER")
            yield KeptVersion("b", "1", GIB, 0, False, "STANDARD")
            yield KeptVersion("b", "2", 0, 0, True)

    found = noncurrent(Versioned(), LAYOUT, Selection(), PRICE).document()

    assert (found["bytes"], found["monthlyCost"]) == (3 * GIB, 10.0)
