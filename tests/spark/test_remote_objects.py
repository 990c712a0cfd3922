"""The DataFrame of objects holds what `remote ls` lists, and each object once."""

from __future__ import annotations

import os
import pickle
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.datasource import DataSourceReader, InputPartition
from tieredctl_spark import parted_keys
from tieredctl_spark.remote_objects import RemoteObjects

from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.spark.damage import REMOTE
from tieredctl.errors import TieredctlError
from tieredctl.layouts.registry import layout_named
from tieredctl.model.ids import uuid_text
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.storage.file import FileStore

TOPIC_ID = "ABEiM0RVZneImaq7zN3u_w"


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

    listed = list(Inventory(FileStore(str(store)), layout_named("local")).rows())
    assert rows_of(frame.select(*listed[0])) == listed
    versions = {stored.key: stored.version for stored in FileStore(str(store)).list()}
    for row in frame.select("key", "topic", "startOffset", "version").toArrow().to_pylist():
        explained = layout_named("local").explain(row["key"])
        assert explained is not None
        assert row == {
            "key": row["key"],
            "topic": explained.topic,
            "startOffset": explained.start_offset,
            "version": versions[row["key"]],
        }


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


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "The option store does not name a store"),
        ({"store": "memory:", "inventory": "x"}, "remote_objects has no option 'inventory'; its options are store, "),
        ({"store": "file:/nowhere/at/all"}, "There is no /nowhere/at/all"),
        ({"store": "memory:", "layout": "local", "storeOption.region": "x"}, "has no option 'region'"),
        ({"store": "memory:", "layout": "local", "layoutOption.key": "x"}, "has no option 'key'"),
    ],
)
def test_a_store_that_cannot_be_listed_says_why(options: dict[str, str], said: str) -> None:
    with pytest.raises(TieredctlError, match=said):
        _planned(RemoteObjects({name.lower(): value for name, value in options.items()}))


def test_only_keys_with_a_prefix_are_listed(kafka_4: Path) -> None:
    store = kafka_4 / REMOTE
    for prefix in ("", "orders7-", "nothing"):
        source = RemoteObjects({"store": f"file:{store}", "prefix": prefix})
        reader, partitions = pickle.loads(pickle.dumps(_planned(source)))

        found = [key for one in partitions for batch in reader.read(one) for key in batch["key"].to_pylist()]

        assert sorted(found) == [stored.key for stored in FileStore(str(store)).list(prefix)], prefix


@pytest.mark.spark
def test_a_given_schema_names_the_columns_that_are_wanted(spark: SparkSession, kafka_4: Path) -> None:
    store = kafka_4 / REMOTE

    found = spark.read.format("remote_objects").schema("size long, key string").load(store=f"file:{store}")

    assert sorted(map(tuple, found.collect())) == sorted((one.size, one.key) for one in FileStore(str(store)).list())


def test_a_bucket_is_listed_once_by_ranges_that_travel(moto: ObjectServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parted_keys, "_PAGE", 20)
    monkeypatch.setattr(parted_keys, "_WORTH_A_RANGE", 1)
    bucket = S3Bucket(moto.endpoint)
    segments = [f"{number:020d}-{uuid_text(bytes([number] * 16))}.log" for number in range(160)]
    names = [f"t{number % 7}-{number % 3}-{TOPIC_ID}/{segment}" for number, segment in enumerate(segments)]
    for name in names:
        bucket.put(f"ranges/{name}", b"12345")
    options = {f"storeoption.{name}": value for name, value in bucket.options.items()}
    source = RemoteObjects({"store": f"s3://{BUCKET}/ranges", "layout": "local", **options})

    reader, partitions = pickle.loads(pickle.dumps(_planned(source)))

    rows = [row for partition in partitions for batch in reader.read(partition) for row in batch.to_pylist()]
    assert [row["key"] for row in rows] == sorted(names)
    assert {(row["size"], row["topicId"], row["storageClass"]) for row in rows} == {(5, TOPIC_ID, "STANDARD")}
    assert len(partitions) > 5


def _planned(source: RemoteObjects) -> tuple[DataSourceReader, Sequence[InputPartition]]:
    reader = source.reader(source.schema())
    return reader, reader.partitions()
