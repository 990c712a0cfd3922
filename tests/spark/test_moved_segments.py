"""What goes on after the metadata was read is in progress, by either engine."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.orphan_scan import scanned
from tieredctl_spark.output_folder import OutputFolder

from tests.metadata_logs import DELETED, DELETING, FIRST_TIMESTAMP_MS, copied, updated, write_events
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ports.layout import Part
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
WHILE_FIRST_IS_COPIED = FIRST_TIMESTAMP_MS / 1000 + 0.5
"""In seconds."""


@dataclass(frozen=True)
class GoesOnMeanwhile(TopicsPlace):
    """Between the first reading of the metadata and whatever follows, it gets another end."""

    data: Path = Path()
    end: tuple[MetadataEvent, ...] = ()

    @contextmanager
    def open(self, now_ms: int) -> Iterator[TopicSources]:
        yield TopicSources(cluster=self)

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        write_events(self.data, *LEAVING, *self.end)
        return dict.fromkeys(topic_ids, True)

    def describe(self) -> Document:
        return {}


LEAVING = [*copied(1, 0, 9), *copied(2, 10, 19), updated(1, DELETING), updated(2, DELETING)]


@pytest.mark.parametrize(
    ("end", "lost", "verdicts"),
    [
        ([updated(1, DELETED)], [], ["in-progress", "delete-never-finished"]),
        ([], [updated(7, DELETED)], ["delete-never-finished"] * 2),  # and what was there is not
        ([updated(1, DELETED)], [updated(7, DELETED)] * 2, ["in-progress", "delete-never-finished"]),
    ],
    ids=["a deletion ends", "metadata is lost", "both"],
)
def test_what_goes_on_after_the_metadata_was_read_is_in_progress_by_either_engine(
    spark: SparkSession, tmp_path: Path, end: list[MetadataEvent], lost: list[MetadataEvent], verdicts: list[str]
) -> None:
    data, store, output = tmp_path / "data", tmp_path / "store", OutputFolder(spark, str(tmp_path / "output"))
    for one in (LEAVING[0], LEAVING[2]):
        assert isinstance(one, RemoteLogSegmentMetadata)
        file = store / LAYOUT.promised_objects(one)[Part.LOG]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (WHILE_FIRST_IS_COPIED, WHILE_FIRST_IS_COPIED))
    place = StorePlace(f"file:{store}", {}, LAYOUT.name)
    places = ScanPlaces(MetadataPlace((data,)), place, GoesOnMeanwhile(data=data, end=tuple(end)))
    options = ScanOptions(time.time_ns() // 1_000_000, 0)
    before = [*LEAVING, *lost]

    write_events(data, *before)
    found = scanned(spark, places, options, output.keep, frozenset({ObjectStatus.ORPHAN}))

    write_events(data, *before)
    with opened_scan(places, options) as opened:
        local, documents = opened.scan, list(opened.scan.documents())
    assert [one["cause"] or one["status"] for one in documents] == verdicts
    assert list(found.documents()) == [one for one in documents if one["cause"]]
    assert found.totals() == local.totals()
    assert found.summary() == local.summary()
    assert sorted(map(str, found.findings)) == sorted(map(str, local.findings))
