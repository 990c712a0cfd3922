"""The stream of a topic's records: each once, across restarts, and nothing that is lost goes unsaid."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows
from tieredctl_spark.record_stream import RecordStreamReader
from tieredctl_spark.tiered_log import TieredLog

from tests.metadata_logs import events_of, metadata_batches, write_log
from tests.records.captured_topics import WITH_STORE, captured_records, captured_topics, store_place
from tests.refusals import refused_with
from tests.shares import divided
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.records.request import Isolation, RecordRequest
from tieredctl.rlmm.cache import DeletedOffsets

Offset = dict[str, Any]
Place = tuple[int, int]
TOPIC, MOST_OFFSETS = "orders7", 100


def options_of(capture: Path, data: Path, topic: str = TOPIC, **options: str) -> dict[str, str]:
    place = store_place(capture)
    layout = {f"layout-option.{name}": value for name, value in place.layout_options.items()}
    return {"log-dir": str(data), "store": place.url, "topic": topic} | layout | options


def reader_of(options: dict[str, str]) -> RecordStreamReader:
    source = TieredLog(options)
    reader = source.streamReader(source.schema())
    assert isinstance(reader, RecordStreamReader)
    return reader


def between(reader: RecordStreamReader, start: Offset, end: Offset) -> list[Place]:
    """Where the records of a batch are."""
    planned = reader.partitions(*(json.loads(json.dumps(one)) for one in (start, end)))
    batches = [batch for partition in planned for batch in reader.read(partition)]
    return [(row["partition"], row["offset"]) for batch in batches for row in batch.to_pylist()]


def batches_of(reader: RecordStreamReader, start: Offset, most: int) -> Iterator[tuple[Offset, list[Place]]]:
    """One batch after another, with where it ends."""
    while (end := reader.latestOffset(start, ReadMaxRows(most))) != start:
        yield end, between(reader, start, end)
        start = end


def places_by_library(capture: Path, topic: str, isolation: Isolation = Isolation.READ_UNCOMMITTED) -> list[Place]:
    with captured_records(capture, topic) as opened:
        parts = [opened.read(one, RecordRequest(isolation=isolation)) for one in opened.partitions]
        rows = [row for part in parts for batch in part for row in batch.to_pylist()]
    return [(row["partition"], row["offset"]) for row in rows]


@pytest.mark.parametrize(("name", "isolation"), divided([*product(WITH_STORE, Isolation)]))
def test_batches_of_any_capture_give_each_record_once_in_order(name: str, isolation: Isolation, captures: Path) -> None:
    for topic in captured_topics(captures / name):
        reader = reader_of(options_of(captures / name, captures / name / "data", topic, isolation=isolation))

        found = [places for _, places in batches_of(reader, reader.initialOffset(), MOST_OFFSETS)]

        reader.stop()
        assert all(len(places) <= MOST_OFFSETS for places in found)
        expected = places_by_library(captures / name, topic, isolation)
        assert sorted(place for places in found for place in places) == expected, topic


def test_what_could_not_be_read_yet_is_asked_for_again_without_any_news(kafka_4: Path, tmp_path: Path) -> None:
    capture = Path(shutil.copytree(kafka_4, tmp_path / "capture"))
    with captured_records(capture, TOPIC) as opened:
        span = opened.partitions[0].spans[-1]
    (snapshot,) = capture.rglob(f"*-{span.segment.segment_id}.snapshot")
    hidden = snapshot.rename(tmp_path / "hidden")
    reader = reader_of(options_of(capture, capture / "data", isolation="read_committed"))
    begin = reader.initialOffset()

    held = reader.latestOffset(begin, ReadAllAvailable())
    hidden.rename(snapshot)
    end = reader.latestOffset(held, ReadAllAvailable())

    first, second = between(reader, begin, held), between(reader, held, end)
    reader.stop()
    assert len(first) < len([*first, *second])
    assert sorted([*first, *second]) == places_by_library(capture, TOPIC, Isolation.READ_COMMITTED)


@pytest.mark.spark
def test_a_restarted_stream_goes_on_with_what_was_copied_since(
    spark: SparkSession, kafka_4: Path, tmp_path: Path
) -> None:
    data = tmp_path / "data"
    events = events_of(kafka_4 / "data")
    write_log(data, 0, metadata_batches(events[: len(events) * 6 // 10]))

    def caught_up() -> list[int]:
        """Reads what there is, and gives the number of rows in each batch."""
        given = options_of(kafka_4, data, isolation="read_committed", maxOffsetsPerTrigger=str(MOST_OFFSETS))
        table = spark.readStream.format("tiered_log").options(**given).load()
        writer = table.writeStream.option("checkpointLocation", str(tmp_path / "checkpoint"))
        query = writer.trigger(availableNow=True).start(str(tmp_path / "table"))
        query.awaitTermination()
        return [progress.numInputRows for progress in query.recentProgress if progress.numInputRows]

    def places() -> list[Place]:
        rows = spark.read.parquet(str(tmp_path / "table")).select("partition", "offset").toArrow().to_pylist()
        return sorted((row["partition"], row["offset"]) for row in rows)

    first = caught_up()
    before = places()
    write_log(data, 0, metadata_batches(events))
    second = caught_up()
    after = places()
    assert 0 < len(before) < len(after)
    assert max(first) <= MOST_OFFSETS
    assert after == places_by_library(kafka_4, TOPIC, Isolation.READ_COMMITTED)

    # As if the driver had been killed after the last batch was planned, and before it was written.
    last = max(int(path.name) for path in (tmp_path / "checkpoint/commits").iterdir() if path.name.isdigit())
    for name in (f"{last}", f".{last}.crc"):
        (tmp_path / "checkpoint/commits" / name).unlink()
    shutil.rmtree(tmp_path / "table")
    assert caught_up() == second[-1:]
    shutil.rmtree(tmp_path / "table/_spark_metadata")
    assert set(places()) <= set(after)


def at(offset: Offset, number: int) -> Offset:
    return offset | {"nextOffsets": {"0": number}}


def test_records_that_are_gone_before_they_are_read_end_the_stream_or_are_passed_over(kafka_4: Path) -> None:
    given = options_of(kafka_4, kafka_4 / "data", partition="0")
    start = (fails := reader_of(given)).initialOffset()
    goes_on = reader_of(given | {"failOnDataLoss": "false"})
    whole = goes_on.latestOffset(start, ReadAllAvailable())
    end = whole["nextOffsets"]["0"]
    places = between(goes_on, start, whole)

    # Retention took the first segment, the log was cut, and a partition is no more.
    with captured_records(kafka_4, TOPIC) as opened:
        second = opened.partitions[0].spans[1].first
    for reader in (fails, goes_on):
        reader.latestOffset(start, ReadAllAvailable())
        look = reader._seen
        assert look is not None
        known = look.partitions[0]
        deleted = DeletedOffsets([(known.first, second - 1)])
        remote = type(known.remote)(known.remote.partition, known.remote.spans[1:], second, deleted)
        look.partitions[0] = type(known)(remote, second, known.end)  # type: ignore[index]

    assert between(goes_on, start, whole) == [place for place in places if place[1] >= second]
    assert goes_on.latestOffset(at(start, end + 9), ReadAllAvailable()) == whole
    with_gone = {**whole, "nextOffsets": {"0": end, "7": 3}}
    assert goes_on.latestOffset(with_gone, ReadAllAvailable()) == with_gone  # so that what comes back is not read twice
    # A partition that is new to the stream begins where remote storage does: what was before it never was to be read.
    new = {**start, "nextOffsets": {}}
    assert between(fails, new, whole) == [place for place in places if place[1] >= second]
    # What waits for the end of a transaction is not passed over.
    for reader in (fails, goes_on):
        look = reader._seen
        assert look is not None
        whole_part = look.partitions[0]
        look.partitions[0] = whole_part._replace(end=end - 1)  # type: ignore[index]
        with pytest.raises(TieredctlError) as waits:
            between(reader, at(start, second), whole)
        assert waits.value.code is ErrorCode.UNREADABLE
        look.partitions[0] = whole_part  # type: ignore[index]
    for lost in (
        lambda: between(fails, start, whole),
        lambda: between(fails, at(start, second), at(start, end + 1)),
        lambda: between(fails, at(start, end), {**whole, "nextOffsets": {"0": end, "7": 3}}),
        lambda: fails.latestOffset(at(start, end + 9), ReadAllAvailable()),
        lambda: fails.latestOffset({**whole, "nextOffsets": {"0": end, "7": 3}}, ReadAllAvailable()),
    ):
        with pytest.raises(TieredctlError) as refused:
            lost()
        assert refused.value.code is ErrorCode.UNREADABLE


@pytest.mark.parametrize("fails_on_loss", [True, False])
def test_a_partition_is_not_gone_where_its_metadata_partition_is_away(
    kafka_4: Path, tmp_path: Path, fails_on_loss: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    data = shutil.copytree(kafka_4 / "data", tmp_path / "data")
    words = {"damage": "row", "fail-on-data-loss": str(fails_on_loss).lower()}
    reader = reader_of(options_of(kafka_4, data, **words))
    start, end = reader.initialOffset(), reader.latestOffset(reader.initialOffset(), ReadAllAvailable())
    reader.stop()
    shutil.rmtree(data / "__remote_log_metadata-0")
    reader = reader_of(options_of(kafka_4, data, **words))

    if fails_on_loss:
        with refused_with(ErrorCode.METADATA_INCOMPLETE):
            reader.latestOffset(end, ReadAllAvailable())
    else:
        assert reader.latestOffset(end, ReadAllAvailable()) == end
        assert "metadata partition 0 is missing here" in capsys.readouterr().err
    with refused_with(ErrorCode.METADATA_INCOMPLETE):
        reader.partitions(start, end)


def test_a_topic_that_was_recreated_is_another(kafka_4: Path) -> None:
    reader = reader_of(options_of(kafka_4, kafka_4 / "data"))
    start = reader.initialOffset() | {"topicId": "A" * 22}

    for ask in (reader.latestOffset, reader.partitions):
        with pytest.raises(TieredctlError) as refused:
            ask(start, ReadAllAvailable() if ask == reader.latestOffset else start)  # type: ignore[arg-type]
        assert refused.value.code is ErrorCode.WORLD_CHANGED


def test_a_stream_begins_where_it_is_told(kafka_4: Path) -> None:
    with captured_records(kafka_4, TOPIC) as opened:
        rows = [row for batch in opened.read(opened.partitions[0]) for row in batch.to_pylist()]
    given = options_of(kafka_4, kafka_4 / "data", partition="0")
    earliest = reader_of(given)
    end = earliest.latestOffset(earliest.initialOffset(), ReadAllAvailable())["nextOffsets"]["0"]
    first = next(row for row in rows if row["timestamp"] >= rows[40]["timestamp"])
    time = datetime.fromtimestamp(first["timestamp"] / 1_000, UTC).isoformat(timespec="milliseconds")
    for place, expected in (("earliest", 0), ("7", 7), (time, first["offset"]), ("latest", end)):
        assert reader_of(given | {"from": place}).initialOffset()["nextOffsets"] == {"0": expected}, place
    with pytest.raises(TieredctlError) as refused:
        reader_of(given | {"from": str(end + 1)}).initialOffset()
    assert refused.value.code is ErrorCode.UNREADABLE


def test_options_that_do_not_fit_a_stream_are_refused(kafka_4: Path) -> None:
    given = options_of(kafka_4, kafka_4 / "data")
    for change in ({"to": "7"}, {"as-of": "0:12"}, {"max-offsets-per-trigger": "0"}, {"failOnDataLoss": "no"}):
        with pytest.raises(TieredctlError) as refused:
            reader_of(given | change)
        assert refused.value.code is ErrorCode.USAGE, change


@pytest.mark.spark
def test_a_stream_that_cannot_go_on_says_why_in_one_sentence(
    spark: SparkSession, kafka_4: Path, tmp_path: Path
) -> None:
    given = options_of(kafka_4, kafka_4 / "data", **{"from": "99999"})
    table = spark.readStream.format("tiered_log").options(**given).load()

    query = table.writeStream.option("checkpointLocation", str(tmp_path / "c")).trigger(availableNow=True)
    with pytest.raises(PySparkException, match=f"{TOPIC}-0 ends at offset") as raised:
        query.start(str(tmp_path / "table")).awaitTermination()

    assert "Traceback" not in str(raised.value)
