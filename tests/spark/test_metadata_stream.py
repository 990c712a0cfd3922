"""The stream of events: each record once, in batches of a bounded size, whatever is interrupted."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tieredctl_spark.metadata_stream import MetadataStreamReader
from tieredctl_spark.remote_log_metadata import RemoteLogMetadata
from tieredctl_spark.stream_offsets import admitted
from tieredctl_spark.tiered_findings import TieredFindings

from tests.metadata_logs import metadata_batches, started, write_events, write_log
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.log_directory import LogDirectories

MOST_ROWS = 250
counts = st.dictionaries(st.integers(0, 9), st.integers(0, 1_000), max_size=8)


def caught_up(spark: SparkSession, log_dir: Path, folder: Path) -> list[int]:
    """Reads what there is, and gives the number of rows in each batch."""
    stream = spark.readStream.format("remote_log_metadata").option("log-dir", str(log_dir))
    table = stream.option("max-rows-per-batch", str(MOST_ROWS)).load().writeStream.format("parquet")
    table = table.option("path", str(folder / "table")).option("checkpointLocation", str(folder / "checkpoint"))
    query = table.trigger(availableNow=True).start()
    query.awaitTermination()
    return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]


def places(spark: SparkSession, table: Path) -> list[tuple[int, int]]:
    rows = spark.read.parquet(str(table)).select("metadataPartition", "metadataOffset").toArrow().to_pylist()
    return sorted((row["metadataPartition"], row["metadataOffset"]) for row in rows)


def places_in(log_dir: Path) -> list[tuple[int, int]]:
    source = LogDirectories([log_dir])
    numbers = source.metadata_partitions()
    return [(number, int(offset)) for number in numbers for chunk in source.chunks(number) for offset in chunk.offsets]


@pytest.mark.spark
def test_every_record_comes_once_in_bounded_batches_across_restarts(
    spark: SparkSession, captures: Path, tmp_path: Path
) -> None:
    log_dir = tmp_path / "data"
    shutil.copytree(captures / "kafka-4.3.1/data", log_dir)

    first = caught_up(spark, log_dir, tmp_path)
    assert places(spark, tmp_path / "table") == places_in(log_dir)
    newest = max((log_dir / "__remote_log_metadata-1").glob("*.log"))
    offset = 1 + max(offset for number, offset in places_in(log_dir) if number == 1)
    added = metadata_batches([started(one, one, one) for one in range(30)], first_offset=offset)
    newest.write_bytes(newest.read_bytes() + b"".join(added))
    second = caught_up(spark, log_dir, tmp_path)

    assert (sum(first), max(first), second) == (680, MOST_ROWS, [30])
    assert places(spark, tmp_path / "table") == places_in(log_dir)

    # As if the driver had been killed after the last batch was planned, and before it was written.
    for name in ("3", ".3.crc"):
        (tmp_path / "checkpoint/commits" / name).unlink()
    shutil.rmtree(tmp_path / "table")
    assert caught_up(spark, log_dir, tmp_path) == [30]
    shutil.rmtree(tmp_path / "table/_spark_metadata")
    assert places(spark, tmp_path / "table") == [(1, one) for one in range(offset, offset + 30)]


@pytest.mark.spark
def test_a_stream_that_cannot_go_on_says_why_in_one_sentence(spark: SparkSession, tmp_path: Path) -> None:
    write_events(tmp_path / "data", *(started(one, one, one) for one in range(5)))
    caught_up(spark, tmp_path / "data", tmp_path)
    shutil.rmtree(tmp_path / "data")
    write_log(tmp_path / "data", 0, metadata_batches([started(9, 9, 9)], first_offset=70), first_offset=70)

    with pytest.raises(
        PySparkException, match="__remote_log_metadata-0 lost its records from offset 5 to 69"
    ) as raised:
        caught_up(spark, tmp_path / "data", tmp_path)

    assert "Traceback" not in str(raised.value)


def reader_of(
    log_dir: Path, kind: type[RemoteLogMetadata | TieredFindings] = RemoteLogMetadata, /, **options: str
) -> MetadataStreamReader:
    source = kind({"logdir": str(log_dir), **options})
    reader = source.streamReader(source.schema())
    assert isinstance(reader, MetadataStreamReader)
    return reader


def rows_between(reader: MetadataStreamReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for partition in reader.partitions(json.loads(json.dumps(start)), json.loads(json.dumps(end)))
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


def batches_of(reader: MetadataStreamReader) -> list[list[dict[str, Any]]]:
    """The rows of one batch of three records after another."""
    offset, found = reader.initialOffset(), []
    while (following := reader.latestOffset(offset, ReadMaxRows(3))) != offset:
        found.append(rows_between(reader, offset, following))
        offset = following
    return found


def test_damage_and_undecodable_records_are_told_once_where_reading_comes_to_them(tmp_path: Path) -> None:
    batches = metadata_batches([*(started(one, one, one) for one in range(20)), b"\x09no event"])
    batches[7] = batches[7][:-1] + bytes([batches[7][-1] ^ 1])
    write_log(tmp_path, 0, batches)

    records = batches_of(reader_of(tmp_path))
    found = batches_of(reader_of(tmp_path, TieredFindings))

    assert [row["metadataOffset"] for rows in records for row in rows] == [one for one in range(21) if one != 7]
    findings = [(number, row["code"]) for number, rows in enumerate(found) for row in rows]
    assert findings == [(2, "batch-corrupt"), (6, "event-undecodable")]


def test_a_topic_that_was_recreated_is_not_read_on(captures: Path) -> None:
    reader = reader_of(captures / "kafka-4.3.1/data")
    offset = reader.initialOffset() | {"metadataTopicId": "A" * 22}

    with pytest.raises(TieredctlError, match="was deleted and recreated") as raised:
        reader.latestOffset(offset, ReadAllAvailable())

    assert raised.value.code is ErrorCode.WORLD_CHANGED


def test_a_metadata_partition_that_appears_later_is_read_from_its_beginning(tmp_path: Path) -> None:
    write_events(tmp_path, started(1, 0, 9))
    reader = reader_of(tmp_path)
    start = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    write_events(tmp_path, started(2, 0, 9), started(3, 10, 19), metadata_partition=5)

    end = reader.latestOffset(start, ReadAllAvailable())

    assert [row["metadataPartition"] for row in rows_between(reader, start, end)] == [5, 5]


@pytest.mark.parametrize("left", [0, 1, 4])
def test_a_log_that_ends_before_the_checkpoint_is_not_read_on(tmp_path: Path, left: int) -> None:
    events = metadata_batches([started(one, one, one) for one in range(5)])
    log = write_log(tmp_path, 0, events)
    reader = reader_of(tmp_path)
    checkpoint = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    log.write_bytes(b"".join(events[:left]))

    for running in (reader, reader_of(tmp_path)):
        with pytest.raises(TieredctlError, match=f"-0 ends at offset {left}, but it was read up to offset 5") as raised:
            running.latestOffset(checkpoint, ReadAllAvailable())
        assert raised.value.code is ErrorCode.UNREADABLE


def test_a_metadata_partition_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    write_events(tmp_path, started(1, 0, 9))
    write_events(tmp_path, started(2, 0, 9), metadata_partition=5)
    reader = reader_of(tmp_path)
    checkpoint = reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    shutil.rmtree(tmp_path / "__remote_log_metadata-5")

    with pytest.raises(TieredctlError, match="__remote_log_metadata-5 is gone, but it was read up to offset 1"):
        reader.latestOffset(checkpoint, ReadAllAvailable())


def test_records_that_are_gone_where_a_planned_batch_is_read_are_missed(tmp_path: Path) -> None:
    events = metadata_batches([started(one, one, one) for one in range(5)])
    log = write_log(tmp_path, 0, events)
    reader = reader_of(tmp_path)
    start = reader.initialOffset()
    end = reader.latestOffset(start, ReadAllAvailable())
    log.write_bytes(b"".join(events[:2]))

    with pytest.raises(TieredctlError, match="offsets from 0 up to 2 where it is read, but offsets from 0 up to 5"):
        rows_between(reader, start, end)


def test_records_that_retention_took_before_a_planned_batch_is_read_are_missed(tmp_path: Path) -> None:
    events = metadata_batches([started(one, one, one) for one in range(5)])
    log = write_log(tmp_path, 0, events[:3])
    write_log(tmp_path, 0, events[3:], first_offset=3)
    reader = reader_of(tmp_path)
    start = reader.initialOffset()
    planned = reader.partitions(start, reader.latestOffset(start, ReadMaxRows(3)))
    log.unlink()

    with pytest.raises(TieredctlError, match="offsets from 3 up to"):
        [*reader.read(planned[0])]


@pytest.mark.parametrize("text", ["0", "-1", "many", "1e3", ""])
def test_a_number_of_rows_has_to_be_one(tmp_path: Path, text: str) -> None:
    with pytest.raises(TieredctlError, match=r"max-rows-per-batch '.*' is not a whole number from 1 on"):
        reader_of(tmp_path, **{"max-rows-per-batch": text})


@given(counts, counts, st.integers(1, 2_000))
def test_a_batch_is_as_large_as_it_may_be_and_starves_no_partition(
    begins: dict[int, int], added: dict[int, int], most: int
) -> None:
    ends = {number: begin + added.get(number, 0) for number, begin in begins.items()}

    reached = admitted(begins, ends, most)

    taken = {number: reached[number] - begin for number, begin in begins.items()}
    waiting = {number: ends[number] - begin for number, begin in begins.items() if ends[number] > begin}
    assert sum(taken.values()) == min(most, sum(waiting.values()))
    assert all(0 <= taken[number] <= ends[number] - begin for number, begin in begins.items())
    if most >= len(waiting):
        assert all(taken[number] for number in waiting)
