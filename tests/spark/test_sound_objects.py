"""Only what brokers may read is counted where it is listed: all else is judged, as by the local engine."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark import metadata_pass, metadata_shares, segment_frame
from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.orphan_scan import scanned
from tieredctl_spark.transforms import sound_objects

from tests.metadata_logs import (
    DELETING,
    PARTITION,
    copied,
    metadata_batches,
    partition_delete,
    segment_id,
    started,
    updated,
    write_events,
    write_log,
)
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemotePartitionDeleteState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
OTHER, REMOVED = (replace(PARTITION, partition=number) for number in (1, 2))
UNHEARD = replace(PARTITION, partition=7)
GONE = TopicIdPartition(uuid_text(bytes(range(16))), "gone", 0)
NAMESAKE = replace(PARTITION, topic="namesake")
ORPHANS, EVERYTHING = frozenset({ObjectStatus.ORPHAN}), frozenset(ObjectStatus)

SOUND = [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29), *copied(11, 0, 9, partition=OTHER)]
CLAIMED = [
    *copied(5, 30, 39),
    *copied(5, 10, 19, partition=OTHER),
    *copied(6, 40, 49),
    started(6, 20, 29, partition=OTHER),
]
LEAVING = [*copied(4, 50, 59), updated(4, DELETING)]
UNREADABLE = [
    *copied(21, 0, 9, partition=REMOVED),
    partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_MARKED, partition=REMOVED),
    *copied(31, 0, 9, partition=GONE),
]
STORED = [
    *((number, 10 * number - 10, PARTITION, "owned") for number in (1, 2, 3)),
    (11, 0, OTHER, "owned"),
    *((number, 0 if number > 20 else 50, partition, cause) for number, partition, cause in [
        (4, PARTITION, "delete-never-finished"),
        (21, REMOVED, "partition-gone"),
        (31, GONE, "topic-gone"),
    ]),
    # Ids that two partitions claim, finished or not.
    (5, 30, PARTITION, "unknown"),
    (5, 10, OTHER, "unknown"),
    (6, 40, PARTITION, "unknown"),
    # An id that is known in a key that is not the promised one.
    (1, 5, PARTITION, "unknown"),
    (1, 0, OTHER, "unknown"),
    (1, 0, UNHEARD, "unknown"),
    (2, 10, NAMESAKE, "unknown"),
]  # fmt: skip
"""Of each segment's objects: number, start offset, partition, and the cause or the status that they have."""


LOST = LAYOUT.promised_objects(started(3, 20, 29))[Part.TIME_INDEX]


def verdicts() -> dict[str, str]:
    """By the keys of all objects: one that is promised is missing."""
    found: dict[str, str] = {}
    for number, offset, partition, verdict in STORED:
        place = partition.topic, partition.topic_id, partition.partition
        identity = ExplainedKey(*place, offset, segment_id(number), Part.LOG)
        found |= dict.fromkeys(LAYOUT.promised_objects(identity).values(), verdict)
    del found[LOST]
    return found


def store_objects(folder: Path) -> None:
    for key in (*verdicts(), ".tieredctl/lease.json"):
        file = folder / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(key)
        os.utime(file, (1_700_000_100, 1_700_000_100))


def in_one_log(folder: Path, _: pytest.MonkeyPatch) -> None:
    write_events(folder, *SOUND, *CLAIMED, *LEAVING, *UNREADABLE)


def piece_by_piece(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A log that tasks divide among them, segments that are looked up a few at a time, too many claims to name,
    and too many ids to send."""
    monkeypatch.setattr(metadata_shares, "MOST_OFFSETS", 4)
    monkeypatch.setattr(sound_objects, "_SEGMENTS_AT_ONCE", 2)
    monkeypatch.setattr(sound_objects, "_MOST_CLAIMED", 1)
    monkeypatch.setattr(segment_frame, "_MOST_NAMED", 1)
    batches = metadata_batches([*SOUND, *CLAIMED, *LEAVING, *UNREADABLE])
    for first in range(0, len(batches), 5):
        write_log(folder, 0, batches[first : first + 5], first_offset=first)


def with_another_count_meanwhile(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Events of one partition are in two metadata partitions, which two tasks read."""
    monkeypatch.setattr(metadata_pass, "_OFFSETS_IN_TASK", 1)
    earlier = [*SOUND[:-1], *CLAIMED, *LEAVING[:-1], *UNREADABLE[:-1]]
    write_events(folder, *earlier, metadata_partition=0)
    write_events(folder, SOUND[-1], LEAVING[-1], UNREADABLE[-1], metadata_partition=1)


@pytest.mark.parametrize(
    ("written", "listed"),
    [(in_one_log, EVERYTHING), (piece_by_piece, ORPHANS), (with_another_count_meanwhile, EVERYTHING)],
)
def test_what_is_owned_and_what_is_not_is_told_apart_as_locally(
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    written: Callable[[Path, pytest.MonkeyPatch], None],
    listed: frozenset[ObjectStatus],
) -> None:
    data, store, live = tmp_path / "data", tmp_path / "store", tmp_path / "live"
    written(data, monkeypatch)
    store_objects(store)
    live.write_text(f"{PARTITION.topic_id}\n")
    place = StorePlace(f"file:{store}", {}, LAYOUT.name)
    places = ScanPlaces(MetadataPlace((data,)), place, TopicsPlace(topic_ids=live))
    options = ScanOptions(time.time_ns() // 1_000_000, 0)

    found = scanned(spark, places, options, kept_by_executors, listed)

    with opened_scan(places, options) as opened:
        local, documents = opened.scan, list(opened.scan.documents())
    assert {one["key"]: one["cause"] or one["status"] for one in documents} == verdicts()
    assert list(found.documents()) == [one for one in documents if ObjectStatus(one["status"]) in listed]
    assert found.summary() == local.summary()
    assert found.totals() == local.totals()
    assert sorted(map(str, found.findings)) == sorted(map(str, local.findings))
    are_missing = FindingCode.PROMISED_OBJECTS_MISSING in {one.code for one in found.findings}
    assert are_missing == found.facts.certainty.is_whole
