"""The job `backfill`: a topic's history as a table has each record once, wherever runs were killed."""

from __future__ import annotations

import io
import json
import shutil
from collections import Counter
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.arrow.instants import instants
from tieredctl_spark.backfill.run import BackfillOptions, BackfillRun, run_backfill
from tieredctl_spark.jobs import backfill as job
from tieredctl_spark.tables.files import folder_files, read_rows
from tieredctl_spark.tables.kinds import PROVENANCE
from tieredctl_spark.tables.reading import read_table
from tieredctl_spark.tables.table_store import Opened, TablesPlace

from tests.metadata_logs import DELETED, DELETING, events_of, metadata_batches, updated, write_log
from tests.records.captured_topics import captured_records, metadata_place, store_place
from tests.spark.damage import REMOTE
from tests.spark.pipeline.killed_runs import is_killed
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadataUpdate, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.ids import uuid_bytes
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import ObjectStore
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("spark")]

TOPIC, ENCRYPTED = "orders7", "orders32"
Row = dict[str, Any]


@dataclass(frozen=True)
class Backfill:
    """A topic's history, of a captured store and metadata that the test writes."""

    store: Path
    folder: Path

    @property
    def data(self) -> Path:
        return self.folder / "data"

    @property
    def tables(self) -> Path:
        return self.folder / "tables"

    def options(self, task_bytes: int) -> BackfillOptions:
        places = MetadataPlace((self.data,)), StorePlace(f"file:{self.store}")
        tables = TablesPlace.given(str(self.tables), {})
        return BackfillOptions(*places, Selection.of(TOPIC), tables, task_bytes=task_bytes)

    def run(self, *words: str) -> tuple[int, Row]:
        """Runs the job: its exit code, and what it printed; its sentence where it failed."""
        where = ("--log-dir", str(self.data), "--store", f"file:{self.store}", "--output", str(self.tables))
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err):
            code = job.main([*where, "--topic", TOPIC, *words])
        return code, json.loads(out.getvalue())["summary"] if out.getvalue() else {"failure": err.getvalue()}

    def rows(self, name: str) -> list[Row]:
        rows: list[Row] = read_rows(str(self.tables), name).drop_columns(PROVENANCE.names).to_pylist()
        return sorted(rows, key=lambda row: (row["partition"], row.get("offset", row.get("firstOffset"))))


@pytest.fixture
def backfill(kafka_4: Path, tmp_path: Path) -> Backfill:
    return Backfill(kafka_4 / REMOTE, tmp_path)


def write_metadata(backfill: Backfill, events: Sequence[Any]) -> None:
    write_log(backfill.data, 0, metadata_batches(events))


def by_library(capture: Path, request: RecordRequest, topic: str = TOPIC) -> list[Row]:
    """The rows of `tieredctl remote records`, times as tables have them."""
    with captured_records(capture, topic) as opened:
        batches = [batch for one in opened.partitions for batch in opened.read(one, request)]
    table = pa.Table.from_batches(batches)
    at = table.schema.get_field_index("timestamp")
    rows: list[Row] = table.set_column(at, "timestamp", instants(table.column(at))).to_pylist()
    return rows


def test_rows_are_those_that_the_library_reads_and_later_copies_are_appended(
    spark: SparkSession, backfill: Backfill, kafka_4: Path
) -> None:
    events = events_of(kafka_4 / "data")
    expected = by_library(kafka_4, RecordRequest(isolation=Isolation.READ_COMMITTED))
    committed = ("--isolation", "read_committed")

    write_metadata(backfill, events[: len(events) * 6 // 10])
    _, first = backfill.run(*committed)
    write_metadata(backfill, events)
    code, second = backfill.run(*committed)
    _, third = backfill.run(*committed)

    assert (code, second["unreadable"], second["lostOffsets"]) == (ExitCode.CLEAN, 0, 0)
    assert backfill.rows("records") == expected
    assert 0 < first["records"] < second["records"] == first["records"] + second["appended"] == len(expected)
    assert (third["version"], third["appended"]) == (second["version"], 0)
    assert read_table(spark, str(backfill.tables), "records").count() == len(expected)

    # The tables are of this topic, read like this.
    for words in ((), ("--catalog", "lake"), ("--topic", "orders8"), ("--output", f"{backfill.store}/tables")):
        assert backfill.run(*words)[0] == ExitCode.USAGE, words


def test_a_batch_that_unfolds_further_than_is_allowed_is_unreadable(backfill: Backfill, kafka_4: Path) -> None:
    write_metadata(backfill, events_of(kafka_4 / "data"))

    code, summary = backfill.run("--max-batch-bytes", "1")

    assert code == ExitCode.INCOMPLETE
    assert {row["code"] for row in backfill.rows("unreadable")} == {"unreadable"}
    assert summary["lostOffsets"] > 0


def test_no_row_is_there_twice_or_missing_wherever_runs_are_killed(backfill: Backfill, kafka_4: Path) -> None:
    write_metadata(backfill, events_of(kafka_4 / "data"))
    expected = by_library(kafka_4, RecordRequest())
    options, seen, done = backfill.options(task_bytes=3_000), list[int](), list[BackfillRun]()

    def run(opened: Opened) -> None:
        done.append(run_backfill(options, {}, opened))

    while is_killed(run, backfill.tables, backfill.folder / f"moments-{len(seen)}", 3 * len(seen)):
        is_written = (backfill.tables / "_manifests").exists()
        rows = backfill.rows("records") if is_written else []
        seen.append(len(rows))
        assert set(Counter((row["partition"], row["offset"]) for row in rows).values()) <= {1}

    assert backfill.rows("records") == expected
    assert len(seen) > 3
    assert seen == sorted(seen)
    assert seen[-1] > 0
    # And nothing that a killed run left is in the folder.
    named = {one.path for one in folder_files(done[0].manifest.tables, "records")}
    files = {path.relative_to(backfill.tables).as_posix() for path in backfill.tables.rglob("*.parquet")}
    assert files == named


def test_what_cannot_be_read_is_in_a_table_beside_it(backfill: Backfill, kafka_4: Path, tmp_path: Path) -> None:
    shutil.copytree(backfill.store, tmp_path / "store")
    with captured_records(kafka_4, TOPIC) as opened:
        span = opened.partitions[0].spans[1]
        key = opened.layout.promised_objects(span.segment)[Part.LOG]
    (tmp_path / "store" / key).unlink()
    write_metadata(backfill, events_of(kafka_4 / "data"))
    damaged = replace(backfill, store=tmp_path / "store")

    code, summary = damaged.run()
    again, same = damaged.run()

    expected = by_library(kafka_4, RecordRequest(on_damage=OnDamage.SKIP))
    lost = [row for row in expected if row["segmentId"] == span.segment.segment_id]
    assert (code, again) == (ExitCode.CORRUPTION, ExitCode.CORRUPTION)
    assert damaged.rows("records") == [row for row in expected if row not in lost]
    (row,) = damaged.rows("unreadable")
    assert (row["code"], row["key"], row["part"], row["partition"]) == (FindingCode.OBJECT_MISSING, key, Part.LOG, 0)
    assert (row["firstOffset"], row["lastOffset"]) == (span.first, span.last)
    assert summary["lostOffsets"] == same["lostOffsets"] == span.last - span.first + 1
    assert not summary["complete"]


def test_what_a_run_has_no_key_for_is_left_to_one_that_has_and_other_partitions_go_on(
    captures: Path, tmp_path: Path
) -> None:
    capture = Path(shutil.copytree(captures / "aiven-zstd-encrypted-4.3.1", tmp_path / "capture"))
    with captured_records(capture, ENCRYPTED) as opened:
        partitions = {one.partition.partition for one in opened.partitions}
        span = opened.partitions[1].spans[-1]
    (manifest,) = capture.rglob(f"*-{span.segment.segment_id}.rsm-manifest")
    of_this_key = manifest.read_text()
    of_another = of_this_key.replace('"dataKey":"key1:', '"dataKey":"key2:AAAA')
    expected = by_library(capture, RecordRequest(), ENCRYPTED)
    backfill = Backfill(capture, tmp_path)
    with_key, tables = store_place(capture), TablesPlace.given(str(backfill.tables), {})

    def run(store: StorePlace, content: str) -> BackfillRun:
        manifest.write_text(content)
        places = metadata_place(capture), store, Selection.of(ENCRYPTED), tables
        return run_backfill(BackfillOptions(*places, task_bytes=2_000), {})

    without_key = run(replace(with_key, layout_options={}), of_this_key)
    places = metadata_place(capture), replace(with_key, layout_options={}), Selection.of(ENCRYPTED)
    apart = TablesPlace.given(str(tmp_path / "committed"), {})
    committed = run_backfill(BackfillOptions(*places, apart, Isolation.READ_COMMITTED), {})
    partly = run(with_key, of_another)
    before = backfill.rows("records")
    last = run(with_key, of_this_key)

    assert set(without_key.unread) == set(committed.unread) == partitions
    assert committed.exit_code is ExitCode.INCOMPLETE
    assert (without_key.records, without_key.exit_code) == (0, ExitCode.INCOMPLETE)
    number = span.segment.topic_id_partition.partition
    reached = partly.manifest.next_offsets[str(number)]
    assert (set(partly.unread), partly.exit_code) == ({number}, ExitCode.INCOMPLETE)
    assert 0 < reached <= span.first
    assert before == [row for row in expected if row["partition"] != number or row["offset"] < reached]
    assert (last.unread, last.exit_code, last.manifest.lost_offsets) == ({}, ExitCode.CLEAN, 0)
    assert backfill.rows("records") == expected
    assert not backfill.rows("unreadable")


@dataclass(frozen=True, slots=True)
class RefusingStore(StoreAround):
    """Refuses so many times to show a producer snapshot, which is asked for twice, and then shows all."""

    left: list[int]

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        self.left[0] -= key.endswith(".snapshot")
        if key.endswith(".snapshot") and self.left[0] >= 0:
            raise TieredctlError(ErrorCode.STORE_FORBIDDEN, key)
        return self.store.read(key, start, end)


@dataclass(frozen=True)
class RefusingPlace(StorePlace):
    left: list[int] = field(default_factory=lambda: [2])

    def open(self) -> Remote[ObjectStore]:
        store, layout = super().open()
        return Remote(RefusingStore(store, self.left), layout)


def test_where_the_end_of_transactions_was_not_shown_once_the_rest_is_left_to_the_next_run(
    backfill: Backfill, kafka_4: Path
) -> None:
    write_metadata(backfill, events_of(kafka_4 / "data"))
    plain = backfill.options(1 << 20)
    refusing = RefusingPlace(plain.store.url, layout="local")

    first = run_backfill(replace(plain, store=refusing, isolation=Isolation.READ_COMMITTED), {})
    second = run_backfill(replace(plain, isolation=Isolation.READ_COMMITTED), {})

    expected = by_library(kafka_4, RecordRequest(isolation=Isolation.READ_COMMITTED))
    assert first.records < len(expected)
    assert (len(first.unread), first.exit_code) == (1, ExitCode.INCOMPLETE)
    assert (second.unread, second.exit_code) == ({}, ExitCode.CLEAN)
    assert backfill.rows("records") == expected


def test_what_retention_took_between_runs_is_told_and_a_log_that_lost_its_end_is_refused(
    backfill: Backfill, kafka_4: Path
) -> None:
    events = events_of(kafka_4 / "data")
    with captured_records(kafka_4, TOPIC) as opened:
        taken = opened.partitions[0].spans[-2]
    write_metadata(backfill, events[: len(events) * 6 // 10])
    backfill.run()

    def deleted(state: RemoteLogSegmentState) -> RemoteLogSegmentMetadataUpdate:
        segment = taken.segment
        return replace(updated(0, state, partition=segment.topic_id_partition), segment_id=segment.segment_id)

    write_metadata(backfill, [*events, deleted(DELETING), deleted(DELETED)])
    code, summary = backfill.run()

    rows = [row for row in by_library(kafka_4, RecordRequest()) if row["segmentId"] != taken.segment.segment_id]
    (row,) = backfill.rows("unreadable")
    assert backfill.rows("records") == rows
    assert (code, row["code"]) == (ExitCode.CORRUPTION, FindingCode.OFFSET_GAP)
    assert (row["firstOffset"], row["lastOffset"]) == (taken.first, taken.last)
    assert summary["lostOffsets"] == taken.last - taken.first + 1

    write_metadata(backfill, events[: len(events) * 6 // 10])
    code, _ = backfill.run()
    assert code == ExitCode.INCOMPLETE
    assert backfill.rows("records") == rows


def test_where_retention_took_all_that_is_new_it_is_reported_once(backfill: Backfill, kafka_4: Path) -> None:
    events = events_of(kafka_4 / "data")
    with captured_records(kafka_4, TOPIC) as opened:
        spans = opened.partitions[0].spans
    begin, end, new = spans[-2].first, spans[-1].last + 1, {uuid_bytes(span.segment.segment_id) for span in spans[-2:]}
    deletions = [
        replace(updated(0, state, partition=span.segment.topic_id_partition), segment_id=span.segment.segment_id)
        for span in spans
        for state in (DELETING, DELETED)
    ]

    write_metadata(backfill, [event for event in events if not any(one in event for one in new)])
    _, before = backfill.run("--partition", "0")
    write_metadata(backfill, [*events, *deletions])
    code, summary = backfill.run("--partition", "0")
    again, same = backfill.run("--partition", "0")

    (row,) = backfill.rows("unreadable")
    assert before["nextOffsets"] == {"0": begin}
    assert (row["code"], row["firstOffset"], row["lastOffset"]) == (FindingCode.OFFSET_GAP, begin, end - 1)
    assert (code, summary["nextOffsets"], summary["lostOffsets"]) == (ExitCode.CORRUPTION, {"0": end}, end - begin)
    assert not summary["complete"]
    assert (again, same["version"]) == (ExitCode.CORRUPTION, summary["version"])


def test_a_doubt_about_the_metadata_counts_in_the_runs_that_have_it(backfill: Backfill, kafka_4: Path) -> None:
    events = events_of(kafka_4 / "data")

    codes = []
    for some in ([*events, b"no event"], [*events, b"no event"], events):
        write_metadata(backfill, some)
        codes.append(backfill.run("--partition", "0")[0])

    assert codes[0] == codes[1] != ExitCode.CLEAN == codes[2]
    assert backfill.rows("unreadable")
