"""`remote ls` and `remote du` on what real brokers stored, held against the file system and against the metadata."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.remote.inventory import Inventory, iso_8601
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

LAYOUT = layout_named("local")
TOPIC_ID, SEGMENT_ID = "ABEiM0RVZneImaq7zN3u_w", "AQIDBAUGBwgJCgsMDQ4PEA"
KEY = f"t-3-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.log"
REMOTE = "remote/kafka-tiered-storage"


@pytest.fixture(params=["kafka-4.3.1", "kafka-3.9.1"])
def cluster(request: pytest.FixtureRequest, captures: Path) -> Path:
    folder: Path = captures / request.param
    return folder


def inventory_of(cluster: Path, selection: Selection = Selection()) -> Inventory:
    return Inventory(FileStore(str(cluster / REMOTE)), LAYOUT, selection)


def finished_segments(cluster: Path) -> list[RemoteLogSegmentMetadata]:
    store = replayed(EventStream(LogDirectories([cluster / "data"])))
    known = [segment.metadata for _, segment in store.segments()]
    return [metadata for metadata in known if metadata.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED]


def files_below(folder: Path) -> dict[str, int]:
    paths = [Path(parent, name) for parent, _, names in os.walk(folder) for name in names]
    return {path.relative_to(folder).as_posix(): path.stat().st_size for path in paths}


def test_a_row_has_the_shape_of_remote_ls_with_nulls_where_no_key_explains() -> None:
    store = MemoryStore()
    store.put(KEY, b"12345", 1_700_000_000_120)
    store.put("lost+found/7", b"x", 1_700_000_000_120)
    explained = {"segmentId": SEGMENT_ID, "topicId": TOPIC_ID, "partition": 3, "part": "log"}
    common = {"lastModified": "2023-11-14T22:13:20.120Z", "storageClass": None}

    rows = list(Inventory(store, LAYOUT).rows())

    assert rows == [
        {"key": "lost+found/7", "size": 1, **dict.fromkeys(explained), **common},
        {"key": KEY, "size": 5, **explained, **common},
    ]
    assert list(rows[0]) == ["key", "size", "lastModified", *explained, "storageClass"]


def test_times_are_utc_in_milliseconds() -> None:
    times = {
        0: "1970-01-01T00:00:00.000Z",
        -1: "1969-12-31T23:59:59.999Z",
        253_402_300_799_999: "9999-12-31T23:59:59.999Z",
        253_402_300_800_000: None,
        1 << 80: None,
    }
    assert {time_ms: iso_8601(time_ms) for time_ms in times} == times


def test_every_file_of_a_real_store_is_listed_and_explained(cluster: Path) -> None:
    inventory = inventory_of(cluster)

    rows = list(inventory.rows())

    assert {row["key"]: row["size"] for row in rows} == files_below(cluster / REMOTE)
    assert [row["key"] for row in rows] == sorted(row["key"] for row in rows)
    assert inventory.summary() == {
        "objects": len(rows),
        "bytes": sum(row["size"] for row in rows),
        "unexplained": 0,
        "storageClasses": {},
    }


def test_what_metadata_promises_is_what_the_store_lists(cluster: Path) -> None:
    finished = finished_segments(cluster)
    listed = {row["key"]: row["size"] for row in inventory_of(cluster).rows()}

    promised = {key for metadata in finished for key in LAYOUT.promised_objects(metadata).values()}
    optional = {key for metadata in finished for key in LAYOUT.optional_objects(metadata).values()}
    log_sizes = [(listed[LAYOUT.promised_objects(m)[Part.LOG]], m.segment_size_in_bytes) for m in finished]

    assert len(finished) > 100
    assert promised <= listed.keys()
    assert listed.keys() <= promised | optional
    assert all(stored == claimed for stored, claimed in log_sizes)


def test_a_segment_reads_as_its_files_are(cluster: Path) -> None:
    store = FileStore(str(cluster / REMOTE))

    for metadata in finished_segments(cluster):
        reader = LAYOUT.open_segment(store, metadata)
        keys = LAYOUT.promised_objects(metadata) | LAYOUT.optional_objects(metadata)
        for part, size in reader.parts().items():
            data = reader.read(part)
            assert data == (cluster / REMOTE / keys[part]).read_bytes()
            assert len(data) == size


def test_a_selection_keeps_what_it_names_and_one_of_nothing_is_no_answer(cluster: Path) -> None:
    everything = list(inventory_of(cluster).objects())
    some = next(listed.explained for listed in everything if listed.explained and listed.explained.start_offset > 0)
    selections = ["topic", "topic_id", "partition", "segment_id", "topic topic_id partition"]
    for fields in (*selections, "topic topic_id partition segment_id"):
        named = {field: getattr(some, field) for field in fields.split()}

        selected = list(inventory_of(cluster, Selection.of(**named)).objects())

        assert 0 < len(selected) < len(everything), fields
        assert selected == [
            listed for listed in everything if all(getattr(listed.explained, name) == named[name] for name in named)
        ], fields
    for selection in (Selection.of(topic="nothing"), Selection.of("nothing", TOPIC_ID, 0)):
        with pytest.raises(TieredctlError, match="has no object of topic nothing"):
            list(inventory_of(cluster, selection).rows())


def test_a_whole_partition_is_listed_by_its_prefix_alone() -> None:
    asked: list[str] = []

    class Watched(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            asked.append(prefix)
            return super().list(prefix, start_after)

    list(Inventory(Watched(), LAYOUT, Selection.of("t", TOPIC_ID, 3)).objects())
    list(Inventory(Watched(), LAYOUT, Selection.of("t", partition=3)).objects())

    assert asked == [f"t-3-{TOPIC_ID}/", ""]


def test_a_selection_leaves_out_what_no_key_explains() -> None:
    store = MemoryStore()
    store.put("lost+found/7", b"x")
    store.put(KEY, b"12345")

    inventory = Inventory(store, LAYOUT, Selection.of(partition=3))

    assert [row["key"] for row in inventory.rows()] == [KEY]
    assert inventory.summary() == {"objects": 1, "bytes": 5, "unexplained": 0, "storageClasses": {}}


def test_usage_adds_up_to_the_listing(cluster: Path) -> None:
    objects: Counter[tuple[object, ...]] = Counter()
    sizes: Counter[tuple[object, ...]] = Counter()
    for row in inventory_of(cluster).rows():
        owner = (row["topicId"], row["partition"], row["part"])
        objects[owner] += 1
        sizes[owner] += row["size"]

    usage = inventory_of(cluster).usage()

    owners = [(row["topicId"], row["partition"], row["part"]) for row in usage]
    assert dict(zip(owners, [(row["objects"], row["bytes"]) for row in usage], strict=True)) == {
        owner: (objects[owner], sizes[owner]) for owner in objects
    }


def test_usage_is_by_topic_and_partition_and_ends_with_what_is_not_explained() -> None:
    store = MemoryStore()
    for topic, partition, suffix in [("b", 10, "log"), ("b", 9, "index"), ("b", 9, "log"), ("a", 0, "log")]:
        store.put(f"{topic}-{partition}-{TOPIC_ID}/00000000000000000000-{SEGMENT_ID}.{suffix}", b"12")
    store.put("zzz", b"123")
    store.put("000", b"1")

    rows = Inventory(store, LAYOUT).usage()

    assert [(row["topic"], row["partition"], row["part"], row["objects"], row["bytes"]) for row in rows] == [
        ("a", 0, "log", 1, 2),
        ("b", 9, "log", 1, 2),
        ("b", 9, "offset-index", 1, 2),
        ("b", 10, "log", 1, 2),
        (None, None, None, 2, 4),
    ]


def test_storage_classes_are_listed_and_summed() -> None:
    class Classed(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            for stored in super().list(prefix, start_after):
                yield stored._replace(storage_class="GLACIER" if stored.key.startswith("old") else "STANDARD")

    store = Classed()
    for key, data in {"old/1": b"12", "old/2": b"345", "new": b"6"}.items():
        store.put(key, data)
    inventory = Inventory(store, LAYOUT)

    rows = {row["key"]: row["storageClass"] for row in inventory.rows()}

    assert rows == {"new": "STANDARD", "old/1": "GLACIER", "old/2": "GLACIER"}
    assert inventory.summary()["storageClasses"] == {
        "GLACIER": {"objects": 2, "bytes": 5},
        "STANDARD": {"objects": 1, "bytes": 1},
    }
