"""The DataFrame of segments holds what `tieredctl metadata segments` shows."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from tieredctl_spark import replay_shares
from tieredctl_spark.arrow.segment_table import SEGMENT_TABLE_SCHEMA
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.tiered_segments import TieredSegments

from tests.metadata_logs import COPIED, DELETED, DELETING, copied, started, updated, write_events
from tests.spark.segment_documents import documents_of
from tieredctl.cli.main import run
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import MetadataEvent, RecordForm
from tieredctl.model.ids import TopicIdPartition, uuid_text
from tieredctl.rlmm.partitioner import metadata_partition

METADATA_PARTITIONS = 3
PARTITIONS = [TopicIdPartition(uuid_text(bytes([7] * 15 + [number])), f"t{number}", 0) for number in range(1, 40)]
Row = dict[str, Any]


def home(partition: TopicIdPartition) -> int:
    return metadata_partition(partition.topic_id, partition.partition, METADATA_PARTITIONS)


def write_topic(folder: Path, last: dict[int, list[MetadataEvent]] | None = None) -> None:
    """A segment of each of PARTITIONS, where it belongs; and at the end of some metadata partitions other events."""
    for number in range(METADATA_PARTITIONS):
        events: list[MetadataEvent] = []
        for place, partition in enumerate(PARTITIONS):
            if home(partition) == number:
                events += copied(place, 0, 9, partition=partition)
        write_events(folder, *events, *(last or {}).get(number, []), metadata_partition=number)


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> list[Row]:
    run(["metadata", "segments", *words, "-o", "json"])
    items: list[Row] = json.loads(capsys.readouterr().out)["items"]
    return items


def replayed(log_dir: Path, **options: str) -> tuple[int, list[Row]]:
    """How many tasks there are, and what they give."""
    reader: Any = TieredSegments({"logdir": str(log_dir), **options}).reader(spark_schema(SEGMENT_TABLE_SCHEMA))
    shares = reader.partitions()
    return len(shares), documents_of(row for one in shares for batch in reader.read(one) for row in batch.to_pylist())


@pytest.mark.spark
@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"topic": "orders7"}, ["--topic", "orders7"]),
        ({"topic": "orders7", "partition": "1"}, ["--topic", "orders7", "--partition", "1"]),
        ({"asOf": "2026-11-21T09:14:00Z"}, ["--as-of", "2026-11-21T09:14:00Z"]),
    ],
)
def test_options_are_those_of_the_command(
    spark: SparkSession, kafka_4: Path, capsys: pytest.CaptureFixture[str], options: dict[str, str], words: list[str]
) -> None:
    log_dir = str(kafka_4 / "data")

    rows = spark.read.format("tiered_segments").options(logDir=log_dir, **options).load().toArrow().to_pylist()

    assert rows
    assert documents_of(rows) == shown(capsys, "--log-dir", log_dir, *words)


def test_offsets_are_a_point_in_the_past_too(kafka_4: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "offsets").write_text("0 100\n3 40\n")

    _, rows = replayed(kafka_4 / "data", asof="0:100,3:40")

    assert rows == shown(capsys, "--log-dir", str(kafka_4 / "data"), "--as-of", str(tmp_path / "offsets"))
    assert rows


@pytest.mark.spark
def test_a_given_schema_names_the_columns_that_are_wanted(spark: SparkSession, kafka_4: Path) -> None:
    frame = spark.read.format("tiered_segments").schema("eventTimestamp timestamp, segmentId string")

    rows = frame.load(logDir=str(kafka_4 / "data")).toArrow()

    assert rows.column_names == ["eventTimestamp", "segmentId"]
    assert len(rows) == len(replayed(kafka_4 / "data")[1])


def test_refused_events_deletions_and_rare_contents_are_as_the_command_shows_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_events(
        tmp_path,
        started(1, 0, 9, custom_metadata=b"\x00\xff", txn_idx_empty=True),
        updated(1, DELETED),  # refused: its copy has not finished
        *copied(2, 10, 19),
        updated(2, DELETING),
        *copied(3, 20, 29),
        updated(3, DELETING),
        updated(3, DELETED),
        started(4, 30, 39, form=RecordForm.KIP_405),
        started(5, 40, 49, segment_size_in_bytes=-1),
        updated(6, COPIED),  # refused: it never began
        started(7, 50, 79, {0: 50, 3: 60, 4: 75}, max_timestamp_ms=-1),
    )

    _, rows = replayed(tmp_path)

    expected = shown(capsys, "--log-dir", str(tmp_path))
    assert expected[-1].pop("maxTimestampMs") == -1
    assert rows[-1].pop("maxTimestampMs") is None  # Kafka has no timestamp there
    assert rows == expected
    assert len(rows) == 5


def test_each_metadata_partition_is_replayed_by_itself(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_topic(tmp_path)

    shares, rows = replayed(tmp_path)

    assert shares == METADATA_PARTITIONS
    assert rows == shown(capsys, "--log-dir", str(tmp_path))
    assert len(rows) == len(PARTITIONS)


def test_one_task_replays_partitions_that_moved(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    moved = PARTITIONS[0]
    began = (home(moved) + 1) % METADATA_PARTITIONS
    write_events(tmp_path, started(99, 10, 19, partition=moved), metadata_partition=began)
    write_topic(tmp_path / "after", {home(moved): [updated(99, COPIED, partition=moved)]})
    for folder in (tmp_path / "after").iterdir():
        if not (tmp_path / folder.name).exists():
            folder.rename(tmp_path / folder.name)

    shares, rows = replayed(tmp_path)

    assert shares == 1
    assert rows == shown(capsys, "--log-dir", str(tmp_path))
    assert [row for row in rows if row["startOffset"] == 10]


def test_one_task_replays_what_has_too_few_partitions_to_tell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_events(tmp_path, *copied(1, 0, 9, partition=PARTITIONS[0]), metadata_partition=home(PARTITIONS[0]))

    shares, rows = replayed(tmp_path)

    assert (shares, len(rows)) == (1, 1)
    assert rows == shown(capsys, "--log-dir", str(tmp_path))


def test_events_that_are_found_astray_only_when_all_is_read_are_not_replayed_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    moved = PARTITIONS[0]
    elsewhere = (home(moved) + 1) % METADATA_PARTITIONS
    write_topic(tmp_path, {elsewhere: [started(99, 10, 19, partition=moved)]})
    monkeypatch.setattr(replay_shares, "_FIRST_RECORDS", 20)

    with pytest.raises(TieredctlError, match=re.escape(f"__remote_log_metadata-{elsewhere} has events of")) as raised:
        replayed(tmp_path)

    assert raised.value.code is ErrorCode.UNREADABLE


def test_one_metadata_partition_alone_is_what_it_says(kafka_4: Path) -> None:
    shares, rows = replayed(kafka_4 / "data")

    found = [replayed(kafka_4 / "data", **{"metadata-partition": str(number)}) for number in range(shares)]

    assert sorted((row for _, some in found for row in some), key=str) == sorted(rows, key=str)
    assert [count for count, _ in found] == [1] * shares


def test_another_topic_or_less_of_it_than_was_planned_is_not_replayed(tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9))
    reader = TieredSegments({"logdir": str(tmp_path)}).reader(spark_schema(SEGMENT_TABLE_SCHEMA))
    shares = reader.partitions()
    (log,) = tmp_path.glob("__remote_log_metadata-0/*.log")
    log.write_bytes(log.read_bytes()[: log.stat().st_size // 2])

    with pytest.raises(TieredctlError, match="were there when the work was planned") as raised:
        [*reader.read(shares[0])]

    assert raised.value.code is ErrorCode.UNREADABLE
