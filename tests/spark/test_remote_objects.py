"""The DataFrame of objects holds what `remote ls` lists, and each object once."""

from __future__ import annotations

import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession
from tieredctl_spark.key_ranges import key_ranges

from tests.spark.damage import REMOTE
from tieredctl.layouts.registry import layout_named
from tieredctl.model.ids import uuid_text
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

TOPIC_ID = "ABEiM0RVZneImaq7zN3u_w"

names = st.text(st.sampled_from("-/0Aa_z~é\U0010ffff"), min_size=1, max_size=6)


def read(spark: SparkSession, store: Path, **options: str) -> DataFrame:
    return spark.read.format("remote_objects").options(store=f"file:{store}", **options).load()


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """As `remote ls` writes times."""
    rows: list[dict[str, Any]] = sorted(frame.toArrow().to_pylist(), key=lambda row: row["key"])
    for row in rows:
        moment = row["lastModified"]
        row["lastModified"] = moment and moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return rows


@pytest.mark.spark
@pytest.mark.parametrize("options", [{}, {"layout": "local"}], ids=["auto", "local"])
def test_a_captured_store_is_listed_as_plainly(spark: SparkSession, cluster: Path, options: dict[str, str]) -> None:
    store = cluster / REMOTE

    frame = read(spark, store, **options)

    assert rows_of(frame) == list(Inventory(FileStore(str(store)), layout_named("local")).rows())
    assert frame.rdd.getNumPartitions() == sum(1 for folder in store.iterdir() if any(folder.iterdir()))


@pytest.mark.spark
def test_what_no_layout_explains_is_listed_too(spark: SparkSession, tmp_path: Path) -> None:
    segment = f"{0:020d}-{uuid_text(bytes(range(16)))}.log"
    for key in (f"t-0-{TOPIC_ID}/{segment}", "lost+found/7", "ä", os.fsdecode(b"\xff")):
        (tmp_path / key).parent.mkdir(exist_ok=True)
        (tmp_path / key).write_bytes(b"12345")
    os.utime(tmp_path / "ä", ns=(0, 2**62))

    rows = {row["key"]: row for row in read(spark, tmp_path, layout="local").toArrow().to_pylist()}

    assert set(rows) == {f"t-0-{TOPIC_ID}/{segment}", "lost+found/7", "ä", r"\udcff"}
    assert rows["lost+found/7"]["topicId"] is None
    assert rows["ä"]["lastModified"] == datetime.fromtimestamp(2**62 // 10**9, UTC).replace(microsecond=427_000)
    assert rows[f"t-0-{TOPIC_ID}/{segment}"]["part"] == "log"


@pytest.mark.spark
def test_objects_without_events_are_found_by_a_join_on_ids(spark: SparkSession, captures: Path, tmp_path: Path) -> None:
    cluster = captures / "kafka-4.3.1"
    for source in sorted((cluster / REMOTE).iterdir()):
        os.symlink(source, tmp_path / source.name)
    orphans = {uuid_text(bytes([0xFB, 0xEF, 0xBE, 0xFF, number, *range(11)])) for number in range(5)}
    assert all("-" in orphan and "_" in orphan for orphan in orphans)
    (tmp_path / f"gone-0-{TOPIC_ID}").mkdir()
    for orphan in orphans:
        (tmp_path / f"gone-0-{TOPIC_ID}/{0:020d}-{orphan}.log").write_bytes(b"")
    events = spark.read.format("remote_log_metadata").option("logDir", str(cluster / "data")).load()

    left = read(spark, tmp_path).join(events, "segmentId", "left_anti").select("segmentId").toArrow()

    assert sorted(left["segmentId"].to_pylist()) == sorted(orphans)


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "The option store does not name a store"),
        ({"store": "file:/nowhere/at/all"}, "There is no /nowhere/at/all"),
        ({"store": "memory:", "layout": "local", "storeOption.region": "x"}, "has no option 'region'"),
        ({"store": "memory:", "layout": "local", "layoutOption.key": "x"}, "has no option 'key'"),
    ],
)
def test_a_store_that_cannot_be_listed_says_why(spark: SparkSession, options: dict[str, str], said: str) -> None:
    with pytest.raises(Exception, match=said):
        spark.read.format("remote_objects").options(**options).load().count()


@given(st.sets(names), st.integers(1, 9))
def test_ranges_hold_every_key_once(keys: set[str], most: int) -> None:
    store = MemoryStore()
    for key in keys:
        store.put(key, b"")

    ranges = key_ranges(store, most)

    assert [stored.key for keys_of in ranges for stored in keys_of.objects(store)] == sorted(keys)
    assert len(ranges) <= most


@given(st.sets(names), st.sets(names))
def test_ranges_stay_whole_when_the_store_changes(before: set[str], after: set[str]) -> None:
    planned, grown = MemoryStore(), MemoryStore()
    for key in before:
        planned.put(key, b"")
    for key in after:
        grown.put(key, b"")

    ranges = key_ranges(planned, 5)

    assert [stored.key for keys_of in ranges for stored in keys_of.objects(grown)] == sorted(after)


@pytest.mark.parametrize(
    "keys",
    [
        [f"topic-{number}/{key}" for number in range(40) for key in range(3)],
        [f"all/of/it/topic-{number}/{key}" for number in range(40) for key in range(3)],
        [f"all/{uuid_text(bytes([number] * 16))}" for number in range(0, 250, 2)],
    ],
    ids=["folders", "folders in a folder", "ids"],
)
def test_ranges_are_of_like_length(keys: list[str]) -> None:
    store = MemoryStore()
    for key in keys:
        store.put(key, b"")

    lengths = [len(list(keys_of.objects(store))) for keys_of in key_ranges(store, 10)]

    assert len(lengths) >= 8
    assert max(lengths) < 3 * len(keys) / len(lengths)


def test_folders_are_found_without_listing_them() -> None:
    asked = 0

    class Counted(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Any:
            nonlocal asked
            for stored in super().list(prefix, start_after):
                asked += 1
                yield stored

    store = Counted()
    for number in range(600):
        store.put(f"topic-{number % 6}/{number}", b"")

    assert len(key_ranges(store, 100)) == 6
    assert asked == 6
