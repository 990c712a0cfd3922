"""`orphans` on Spark finds what the local engine finds, row for row."""

from __future__ import annotations

import json
import os
import shutil
import time
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from tieredctl_spark.orphan_scan import SparkScan, scanned
from tieredctl_spark.output_folder import OutputFolder

from tests.metadata_logs import copied, write_events
from tests.spark.damage import REMOTE
from tieredctl.cli.main import run
from tieredctl.errors import ExitCode
from tieredctl.layouts.protocol import Part
from tieredctl.layouts.registry import layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import uuid_text
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.wiring.orphans import ScanPlaces, opened_scan
from tieredctl.wiring.places import MetadataPlace, StorePlace, TopicsPlace

pytestmark = pytest.mark.spark

LAYOUT = layout_named("local")
EVERYTHING = frozenset(ObjectStatus)
HOUR_MS = 3_600_000
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


@pytest.mark.parametrize(
    ("cluster", "options"),
    [
        ("kafka-4.3.1", options_of(24 * HOUR_MS)),
        ("kafka-4.3.1", replace(options_of(0), selection=Selection(partition=0))),
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
    assert found.summary() == local.summary() | {"reserved": None}
    assert sorted(map(str, found.findings)) == sorted(map(str, local.findings))


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("form", ["json", "table"])
def test_the_command_line_shows_the_same_by_either_engine(
    kafka_4: Path, form: str, capsys: pytest.CaptureFixture[str]
) -> None:
    where = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}", "--layout", LAYOUT.name]
    words = ["orphans", "scan", *where, "--min-age", "0s", "-o", form]

    by_engine = []
    for engine in ([], ["--engine", "spark"]):
        code = run([*words, *engine])
        captured = capsys.readouterr()
        by_engine.append((code, captured.out, captured.err))

    (code, out, err), elsewhere = by_engine
    if form == "json":
        expected = json.loads(out)
        expected["summary"]["reserved"] = None
        assert (elsewhere[0], json.loads(elsewhere[1]), elsewhere[2]) == (code, expected, err)
    else:
        assert elsewhere == (code, out, err)


@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize(
    "words", [["--key-list", "{0}/keys"], ["--as-of", "2020-01-01T00:00:00Z"]], ids=["a list of keys", "the past"]
)
def test_what_only_the_local_engine_reads_is_refused(
    kafka_4: Path, words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "keys").touch()
    where = ["--log-dir", str(kafka_4 / "data"), "--store", f"file:{kafka_4 / REMOTE}", "--layout", LAYOUT.name]

    code = run(["orphans", "scan", *where, "--engine", "spark", *(word.format(tmp_path) for word in words)])

    assert code == ExitCode.USAGE
    assert "local engine" in capsys.readouterr().err


def test_what_gets_an_owner_after_it_was_listed_is_not_orphaned(spark: SparkSession, tmp_path: Path) -> None:
    data, bucket, output = tmp_path / "data", tmp_path / REMOTE, OutputFolder(spark, str(tmp_path / "output"))
    first, second = copied(1, 0, 9), copied(2, 10, 19)
    for started in (first[0], second[0]):
        assert isinstance(started, RemoteLogSegmentMetadata)
        file = bucket / LAYOUT.promised_objects(started)[Part.LOG]
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
        os.utime(file, (1_000_000_000, 1_000_000_000))

    def owned_once_listed(frame: DataFrame, name: str) -> DataFrame:
        kept = output.keep(frame, name)
        if name == "listing":
            write_events(data, *first, *second)
        return kept

    statuses = []
    for keep in (output.keep, owned_once_listed):
        write_events(data, *first)
        found = scanned(spark, places_of(tmp_path), options_of(0), keep, EVERYTHING)
        statuses.append([one["status"] for one in found.documents()])

    assert statuses == [["owned", "orphan"], ["owned", "owned"]]
