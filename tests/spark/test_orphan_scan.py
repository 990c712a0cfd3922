"""`orphans` on Spark finds what the local engine finds, row for row."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn
from tieredctl_spark.orphan_scan import SparkScan, scanned
from tieredctl_spark.output_folder import OutputFolder

from tests.metadata_logs import (
    FIRST_TIMESTAMP_MS,
    PARTITION,
    copied,
    partition_delete,
    started,
    write_events,
    write_records,
)
from tests.shares import divided
from tests.spark.damage import REMOTE
from tests.spark.same_answers import answer
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata, RemotePartitionDeleteState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import uuid_text
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES, TopicSources
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.export import export_metadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ports.layout import Part
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
EVERYTHING = frozenset(ObjectStatus)
HOUR_MS = 3_600_000
WHILE_FIRST_IS_COPIED = FIRST_TIMESTAMP_MS / 1000 + 0.5
"""In seconds: between the first two records of a log that `write_events` writes."""
STRAY_ID = uuid_text(bytes(range(100, 116)))


@pytest.fixture
def littered(cluster: Path, tmp_path: Path) -> Path:
    """A cluster whose store has what nobody owns, too: copies under other ids, offsets, partitions and topics."""
    copy = tmp_path / "cluster"
    shutil.copytree(cluster, copy)
    store = copy / REMOTE
    for number, log in enumerate(sorted(store.rglob("*.log"))[:12]):
        said = LAYOUT.explain(str(log.relative_to(store)))
        assert said is not None
        others = (
            said._replace(segment_id=STRAY_ID),
            said._replace(start_offset=said.start_offset + 1),
            said._replace(partition=said.partition + 7),
            said._replace(topic_id=STRAY_ID),
        )
        stray = store / LAYOUT.promised_objects(others[number % len(others)])[Part.LOG]
        stray.parent.mkdir(exist_ok=True)
        shutil.copy2(log, stray)
    (store / "readme.txt").write_text("not of Kafka")
    (store / ".tieredctl/quarantine").mkdir(parents=True)
    (store / ".tieredctl/quarantine/one").write_text("of tieredctl")
    return copy


def by_spark(
    spark: SparkSession,
    places: ScanPlaces,
    options: ScanOptions,
    folder: Path,
    listed: frozenset[ObjectStatus] = EVERYTHING,
) -> SparkScan:
    return scanned(spark, places, options, OutputFolder(spark, str(folder)).keep, listed)


def locally(places: ScanPlaces, options: ScanOptions) -> tuple[Scan, list[Document]]:
    with opened_scan(places, replace(options)) as opened:
        documents = list(opened.scan.documents())
        return opened.scan, documents


def places_of(cluster: Path, topics: Path | None = None) -> ScanPlaces:
    store = StorePlace(f"file:{cluster / REMOTE}", {}, LAYOUT.name)
    return ScanPlaces(MetadataPlace((cluster / "data",)), store, TopicsPlace(topic_ids=topics))


def options_of(min_age_ms: int) -> ScanOptions:
    return ScanOptions(now_ms=time.time_ns() // 1_000_000, min_age_ms=min_age_ms)


def test_a_store_without_any_object_of_the_layout_is_another_one_or_was_emptied(
    spark: SparkSession, cluster: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    places = replace(places_of(cluster), store=StorePlace(f"file:{other}", {}, LAYOUT.name))

    for present in ((), (".tieredctl/lease.json", "notes.txt")):
        for name in present:
            (other / name).parent.mkdir(exist_ok=True)
            (other / name).write_text("x")
        refused: list[TieredctlError] = []
        for scan in (partial(by_spark, spark, folder=tmp_path / f"out-{len(present)}"), locally):
            with pytest.raises(TieredctlError) as refusal:
                scan(places=places, options=options_of(0))
            refused.append(refusal.value)

        assert [error.code for error in refused] == [ErrorCode.NO_OVERLAP] * 2, present
        assert refused[0].message == refused[1].message, present


@pytest.mark.parametrize(
    ("cluster", "options"),
    [
        pytest.param("kafka-4.3.1", options_of(24 * HOUR_MS), marks=pytest.mark.exhaustive),
        pytest.param(
            "kafka-4.3.1",
            replace(options_of(0), selection=Selection.of(partition=0)),
            marks=pytest.mark.exhaustive,
        ),
        ("kafka-3.9.1", options_of(0)),
    ],
    ids=["a day old", "any age, one partition", "any age"],
    indirect=["cluster"],
)
def test_spark_finds_what_the_local_engine_finds(
    spark: SparkSession, littered: Path, tmp_path: Path, options: ScanOptions
) -> None:
    places = places_of(littered)

    found = by_spark(spark, places, options, tmp_path / "output")

    local, documents = locally(places, options)
    assert list(found.documents()) == documents
    assert found.totals() == local.totals()
    assert found.counted.groups == local.groups
    assert found.summary() == local.summary()
    assert sorted(map(str, found.findings)) == sorted(map(str, local.findings))


@dataclass
class CommandLine:
    """`orphans scan` of a cluster, by either engine."""

    words: list[str]
    capsys: pytest.CaptureFixture[str]

    def run(self, *more: str) -> tuple[int, str, str]:
        code = run(["orphans", "scan", *self.words, *more])
        said = self.capsys.readouterr()
        return code, said.out, said.err


@pytest.fixture
def command_line(kafka_4: Path, capsys: pytest.CaptureFixture[str]) -> CommandLine:
    words = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}", "--layout", LAYOUT.name]
    return CommandLine([*words, "--min-age", "0s"], capsys)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "words", [pytest.param(("-o", "table"), marks=pytest.mark.exhaustive), ("--topic", "order7")], ids=" ".join
)
def test_the_command_line_shows_the_same_by_either_engine(command_line: CommandLine, words: tuple[str, ...]) -> None:
    local = command_line.run(*words)

    found = command_line.run(*words, "--engine", "spark")

    assert found == local


@pytest.mark.usefixtures("spark")
def test_a_document_says_the_same_by_either_engine(command_line: CommandLine) -> None:
    code, local, error = command_line.run("-o", "json")

    found_code, found, found_error = command_line.run("-o", "json", "--engine", "spark")

    assert (found_code, answer(found), found_error) == (code, answer(local), error)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("point", divided(["a time", "offsets"]))
def test_a_list_of_keys_is_judged_as_of_a_point_as_the_local_engine_does(
    command_line: CommandLine, kafka_4: Path, tmp_path: Path, point: str
) -> None:
    with MetadataPlace((kafka_4 / "data",)).open() as stream:
        records = list(stream.records())
    middle, offsets = records[len(records) // 3], tmp_path / "offsets"
    offsets.write_text(f"0\n1\n{middle.metadata_partition} {middle.metadata_offset}\n")
    store = kafka_4 / REMOTE
    files = [path.relative_to(store).as_posix() for path in store.rglob("*") if path.is_file()]
    keys = tmp_path / "keys"
    keys.write_text("".join(f"{key}\n" for key in sorted([*files, ".tieredctl/lease.json", "gone/by-now.log"])))
    os.utime(keys, (4_000_000_000, 4_000_000_000))
    at = str(middle.timestamp_ms) if point == "a time" else str(offsets)
    words = ["--key-list", str(keys), "--as-of", at, "--now", "4000000001000", "-o", "json"]
    local = command_line.run(*words)

    found = command_line.run(*words, "--engine", "spark")

    (code, out, error), (found_code, found_out, found_error) = local, found
    here, there = answer(out), answer(found_out)
    # Of the log, and of what was believed of it.
    del here["source"]["endOffsets"], there["source"]["endOffsets"]
    assert (found_code, there, found_error) == (code, here, error)
    statuses = here["summary"]["status"]
    assert 0 < statuses["owned"]["objects"] < here["summary"]["objects"]


@pytest.mark.usefixtures("spark")
def test_a_listing_to_resume_is_of_the_local_engine(command_line: CommandLine, tmp_path: Path) -> None:
    code, _, error = command_line.run("--engine", "spark", "--resume", str(tmp_path / "checkpoint"))

    assert code == ExitCode.USAGE
    assert "local engine" in error


def test_a_log_that_loses_its_end_before_it_is_read_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    bucket, output, export = (
        tmp_path / REMOTE,
        OutputFolder(spark, str(tmp_path / "output")),
        tmp_path / "export.parquet",
    )
    bucket.mkdir(parents=True)

    def export_of(*events: MetadataEvent) -> None:
        folder = tmp_path / f"data-{len(events)}"
        write_events(folder, *events)
        with MetadataPlace((folder,)).open() as stream:
            export_metadata(stream, export, force=True)

    class CutMeanwhile(TopicsPlace):
        """It is opened after the metadata was, and before that is planned."""

        @contextmanager
        def open(self, now_ms: int) -> Iterator[TopicSources]:
            export_of(*copied(1, 0, 9))
            yield NO_TOPIC_SOURCES

    export_of(*copied(1, 0, 9), *copied(2, 10, 19))
    places = ScanPlaces(MetadataPlace(export=export), StorePlace(f"file:{bucket}", {}, LAYOUT.name), CutMeanwhile())

    with pytest.raises(TieredctlError, match="holds offsets from 0 up to 2 where it is read") as raised:
        scanned(spark, places, options_of(0), output.keep, EVERYTHING)

    assert raised.value.code is ErrorCode.UNREADABLE


def test_what_gets_an_owner_after_it_was_listed_is_not_orphaned(spark: SparkSession, tmp_path: Path) -> None:
    data, bucket, output = tmp_path / "data", tmp_path / REMOTE, OutputFolder(spark, str(tmp_path / "output"))
    first, second = copied(1, 0, 9), copied(2, 10, 19)
    again = copied(3, 10, 19, event_timestamp_ms=FIRST_TIMESTAMP_MS + 1_000)
    for event in (first[0], second[0]):
        assert isinstance(event, RemoteLogSegmentMetadata)
        file = bucket / LAYOUT.promised_objects(event)[Part.LOG]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (WHILE_FIRST_IS_COPIED, WHILE_FIRST_IS_COPIED))

    def owned_once_listed(frame: DataFrame, name: str) -> DataFrame:
        kept = output.keep(frame, name)
        if name == "listing":
            write_events(data, *first, *again, *second)
        return kept

    statuses = []
    for keep in (output.keep, owned_once_listed):
        write_events(data, *first, *again)
        found = scanned(spark, places_of(tmp_path), options_of(0), keep, EVERYTHING)
        statuses.append([one["status"] for one in found.documents()])

    assert statuses == [["owned", "orphan"], ["owned", "owned"]]


def test_a_listing_that_lacks_promised_objects_is_not_complete(spark: SparkSession, tmp_path: Path) -> None:
    data, bucket, output = tmp_path / "data", tmp_path / REMOTE, OutputFolder(spark, str(tmp_path / "output"))
    events = [*copied(1, 0, 9), *copied(2, 10, 19)]
    write_events(data, *events)
    for event in events:
        for key in LAYOUT.promised_objects(event).values() if isinstance(event, RemoteLogSegmentMetadata) else ():
            file = bucket / key
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch()
            os.utime(file, (WHILE_FIRST_IS_COPIED, WHILE_FIRST_IS_COPIED))

    def lacking(frame: DataFrame, name: str) -> DataFrame:
        is_left_out = fn.col("key").cast("string").endswith(".index")
        return output.keep(frame.where(~is_left_out) if name == "listing" else frame, name)

    told = []
    for keep in (output.keep, lacking):
        found = scanned(spark, places_of(tmp_path), options_of(0), keep, EVERYTHING)
        told.append(([one.code for one in found.findings], found.summary()["complete"]))

    assert told == [([], True), ([FindingCode.UNREADABLE], False)]


def test_metadata_begins_with_its_first_record_whatever_a_clock_said_later(spark: SparkSession, tmp_path: Path) -> None:
    """What is older than that is unknown, and counted, by either engine."""
    events = [*copied(1, 0, 9), *copied(2, 10, 19)]
    times = (FIRST_TIMESTAMP_MS, 1_000, FIRST_TIMESTAMP_MS + 1, FIRST_TIMESTAMP_MS + HOUR_MS)
    records = [
        Record(offset, time_ms, None, encode_event(event))
        for offset, (time_ms, event) in enumerate(zip(times, events, strict=True))
    ]
    write_records(tmp_path / "data", *records)
    (never_named, *_) = copied(9, 0, 9)
    assert isinstance(never_named, RemoteLogSegmentMetadata)
    file = tmp_path / REMOTE / LAYOUT.promised_objects(never_named)[Part.LOG]
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (FIRST_TIMESTAMP_MS / 1000 - 1,) * 2)

    found = by_spark(spark, places_of(tmp_path), options_of(0), tmp_path / "output")

    local, documents = locally(places_of(tmp_path), options_of(0))
    (document,) = found.documents()
    assert document == documents[0]
    assert (document["status"], document["evidence"]["reason"]) == ("unknown", "older-than-metadata")
    assert (
        [one.code for one in found.findings] == [one.code for one in local.findings] == ["object-older-than-metadata"]
    )
    assert found.totals() == local.totals()


@pytest.mark.parametrize("listed", divided([EVERYTHING, frozenset({ObjectStatus.ORPHAN})]))
def test_what_other_segments_of_a_partition_prove_is_seen_by_either_engine(
    spark: SparkSession, tmp_path: Path, listed: frozenset[ObjectStatus]
) -> None:
    """Of a partition that is being removed no segment may be left to tell."""
    removed, unheard = replace(PARTITION, partition=1), replace(PARTITION, partition=2)
    events = [
        *copied(1, 0, 99),
        *copied(2, 200, 299, event_timestamp_ms=FIRST_TIMESTAMP_MS + HOUR_MS),
        partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_MARKED, partition=removed),
    ]
    write_events(tmp_path / "data", *events)
    expected = {
        started(91, 50, 99): "unknown",
        started(92, 100, 199): "unknown",
        started(93, 200, 299): "no-metadata",
        started(94, 299, 310): "no-metadata",
        started(95, 300, 399): "unknown",
        started(96, 0, 9, partition=removed): "partition-gone",
        started(97, 0, 9, partition=unheard): "unknown",
    }
    for one in expected:
        file = tmp_path / REMOTE / LAYOUT.promised_objects(one)[Part.LOG]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (WHILE_FIRST_IS_COPIED, WHILE_FIRST_IS_COPIED))

    found = by_spark(spark, places_of(tmp_path), options_of(0), tmp_path / "output", listed)

    local, documents = locally(places_of(tmp_path), options_of(0))
    verdicts = {one["segmentId"]: one["cause"] or one["status"] for one in documents}
    assert verdicts == {one.segment_id: verdict for one, verdict in expected.items()}
    assert list(found.documents()) == [one for one in documents if ObjectStatus(one["status"]) in listed]
    assert found.totals() == local.totals()
    assert found.counted.groups == local.groups
    assert found.summary() == local.summary()
    assert sorted(map(str, found.findings)) == sorted(map(str, local.findings))
    assert [one.code for one in found.findings].count(FindingCode.PROMISED_OBJECTS_MISSING) == 1
