"""On what every real cluster left behind, Spark has the results of the local engine, row for row."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.listing_frames import store_listing
from tieredctl_spark.metadata_pass import copies_in, read_events, read_segments
from tieredctl_spark.orphan_scan import SparkScan, scanned
from tieredctl_spark.segment_frame import SegmentFrame
from tieredctl_spark.transforms.usage import named_objects, storage_usage

from tests.replayed_states import states_of_rows, states_of_stream
from tests.shares import divided
from tests.spark.damage import REMOTE
from tests.spark.same_answers import answer
from tests.spark.segment_documents import documents_of
from tieredctl.cli.main import run
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

NOW_MS = 1_800_000_000_000
WITH_STORE = {
    "kafka-3.9.1": (REMOTE, "local"),
    "kafka-4.3.1": (REMOTE, "local"),
    "aiven-plain-4.3.1": ("bucket/tiered", "aiven"),
    "aiven-zstd-encrypted-4.3.1": ("bucket/tiered", "aiven"),
    "aiven-crash-4.3.1": ("bucket/tiered", "aiven"),
}

Usage = Counter[tuple[str | None, str | None, int | None, date, int | None]]


@dataclass(frozen=True)
class Capture:
    """A cluster's log directory, and its store."""

    metadata: MetadataPlace
    store: StorePlace

    @property
    def words(self) -> list[str]:
        options = [f"{name}={value}" for name, value in self.store.layout_options.items()]
        layout = ["--layout", self.store.layout, *(word for one in options for word in ("--layout-option", one))]
        return ["--log-dir", str(self.metadata.log_dirs[0]), "--store", self.store.url, *layout]


@pytest.fixture(params=divided([*WITH_STORE]))
def capture(request: pytest.FixtureRequest, captures: Path) -> Capture:
    folder, (store, layout) = captures / request.param, WITH_STORE[request.param]
    key = folder / "keys/private.pem"
    options = {"private-key": str(key)} if key.exists() else {}
    return Capture(MetadataPlace((folder / "data",)), StorePlace(f"file:{folder / store}", {}, layout, options))


def demand_same_states(segments: SegmentFrame, metadata: MetadataPlace) -> None:
    states = segments.rows().toArrow()
    with metadata.open() as stream:
        assert states_of_rows(states) == states_of_stream(stream)
    assert len(states)


def demand_same_verdicts(found: SparkScan, places: ScanPlaces, options: ScanOptions) -> None:
    with opened_scan(places, options) as opened:
        documents = list(opened.scan.documents())
        assert sorted(found.documents(), key=_key) == sorted(documents, key=_key)
        assert found.summary() == opened.scan.summary()
        assert sorted(map(str, found.findings)) == sorted(map(str, opened.scan.findings))
    assert documents


def _key(document: Document) -> str:
    return str(document["key"])


def demand_same_usage(spark: SparkSession, capture: Capture) -> None:
    store, layout = capture.store.open()
    listing = store_listing(spark, store).kept(kept_by_executors)
    with capture.metadata.open() as stream:
        events, _ = read_events(spark, capture.metadata, stream, kept_by_executors)
    usage = storage_usage(named_objects(listing, layout), copies_in(events), None).toArrow().to_pylist()
    names = ("topic", "topicId", "partition", "day", "brokerId")
    counted = {tuple(row[name] for name in names): (row["objects"], row["bytes"]) for row in usage}
    objects, size = Usage(), Usage()
    for group, stored in grouped(capture):
        objects[group] += 1
        size[group] += stored
    assert len(counted) == len(usage)
    assert counted == {group: (number, size[group]) for group, number in objects.items()}


def grouped(capture: Capture) -> Iterator[tuple[tuple[str | None, str | None, int | None, date, int | None], int]]:
    """What each object is counted by, and its size."""
    with capture.metadata.open() as stream:
        events = [record.event for record in stream.records()]
    brokers = {one.segment_id: one.author for one in events if isinstance(one, RemoteLogSegmentMetadata)}
    store, layout = capture.store.open()
    for stored in store.list():
        said, day = layout.explain(stored.key), datetime.fromtimestamp(stored.last_modified_ms / 1_000, UTC).date()
        named = (said.topic, said.topic_id, said.partition) if said else (None, None, None)
        yield (*named, day, brokers.get(said.segment_id) if said else None), stored.size


def demand_same_verification(capture: Capture, capsys: pytest.CaptureFixture[str]) -> None:
    results = []
    for engine in ([], ["--engine", "spark"]):
        code = run(["verify", *capture.words, "--level", "full", "--now", str(NOW_MS), "-o", "json", *engine])
        said = capsys.readouterr()
        results.append((code, answer(said.out)))
    local, found = results
    assert found == local
    assert local[1]["summary"]["records"]


def demand_same_segments(spark: SparkSession, metadata: MetadataPlace, capsys: pytest.CaptureFixture[str]) -> None:
    log_dir = str(metadata.log_dirs[0])
    run(["metadata", "segments", "--log-dir", log_dir, "-o", "json"])
    items = json.loads(capsys.readouterr().out)["items"]
    rows = spark.read.format("tiered_segments").option("log-dir", log_dir).load().toArrow().to_pylist()
    assert documents_of(rows) == items
    assert items


def test_states_verdicts_usage_and_findings_are_the_local_engines(
    spark: SparkSession, capture: Capture, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ScanPlaces(capture.metadata, capture.store, TopicsPlace())
    options = ScanOptions(NOW_MS, 0)

    found = scanned(spark, places, options, kept_by_executors, frozenset(ObjectStatus))

    demand_same_states(found.segments, capture.metadata)
    demand_same_verdicts(found, places, options)
    demand_same_usage(spark, capture)
    demand_same_verification(capture, capsys)
    demand_same_segments(spark, capture.metadata, capsys)


def test_states_of_events_in_the_oldest_form_are_the_local_engines(
    spark: SparkSession, captures: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    metadata = MetadataPlace((captures / "rlmm-3.4.1/data",))
    with metadata.open() as stream:
        segments, _ = read_segments(spark, metadata, stream, kept_by_executors)

    demand_same_states(segments, metadata)
    demand_same_segments(spark, metadata, capsys)
