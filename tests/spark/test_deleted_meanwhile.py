"""What retention deletes between the plan of a reading and its tasks is a gap, and is not called missing."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from tieredctl_spark.backfill.written_shares import HistoryShare, write_shares
from tieredctl_spark.record_shares import record_shares
from tieredctl_spark.tables.table_store import TablesPlace
from tieredctl_spark.tables.writing import TableWriter
from tieredctl_spark.tiered_log import TieredLog

from tests.metadata_logs import DELETED, DELETING, events_of, metadata_batches, updated, write_log
from tests.spark.damage import REMOTE
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.lost_records import LostRecords
from tieredctl.records.remote_partition import RemotePartition
from tieredctl.records.request import OnDamage, RecordRequest
from tieredctl.records.served_spans import ServedSpan
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records

TOPIC = "orders7"


class MovingTopic:
    """A captured topic, of whose first partition retention takes segments."""

    def __init__(self, capture: Path, folder: Path) -> None:
        self._events = events_of(capture / "data")
        self._data = folder / "data"
        self._remote = Path(shutil.copytree(capture / REMOTE, folder / "store"))
        self._write()
        self.metadata, self.store = MetadataPlace((self._data,)), StorePlace(f"file:{self._remote}")
        self.options = {"log-dir": str(self._data), "store": self.store.url, "topic": TOPIC, "partition": "0"}

    def planned(self) -> RemotePartition:
        with topic_records(self.metadata, self.store, Selection.of(TOPIC)) as topic:
            return topic.partitions[0]

    def take(self, spans: Sequence[ServedSpan], *, is_recorded: bool = True) -> None:
        """Deletes their objects, and records it as a leader does."""
        for segment in (span.segment for span in spans):
            for file in self._remote.rglob(f"*{segment.segment_id}*"):
                file.unlink()
            if is_recorded:
                self._write(
                    replace(updated(0, state, partition=segment.topic_id_partition), segment_id=segment.segment_id)
                    for state in (DELETING, DELETED)
                )

    def _write(self, more: Any = ()) -> None:
        self._events = [*self._events, *more]
        write_log(self._data, 0, metadata_batches(self._events))


@pytest.fixture
def topic(kafka_4: Path, tmp_path: Path) -> MovingTopic:
    return MovingTopic(kafka_4, tmp_path)


def test_a_data_frame_begins_after_what_was_deleted_and_tells_what_lies_between(topic: MovingTopic) -> None:
    spans = topic.planned().spans
    for number, damage in enumerate(("row", "fail")):
        source = TieredLog({**topic.options, "damage": damage})
        reader: Any = source.reader(source.schema())
        (planned,) = reader.partitions()

        topic.take([spans[number]])

        rows = [row for batch in reader.read(planned) for row in batch.to_pylist()]
        assert {row["damage"] for row in rows} == {None}
        assert min(row["offset"] for row in rows) == spans[number + 1].first

    source = TieredLog({**topic.options, "damage": "row"})
    reader = source.reader(source.schema())
    (planned,) = reader.partitions()
    topic.take([spans[3]])
    rows = [row for batch in reader.read(planned) for row in batch.to_pylist()]
    (gap,) = [row for row in rows if row["damage"] is not None]
    assert (gap["offset"], gap["damage"].partition(":")[0]) == (spans[3].first, FindingCode.OFFSET_GAP)


def test_a_stream_that_is_to_go_on_passes_over_what_was_deleted_before_its_task(
    topic: MovingTopic, capfd: pytest.CaptureFixture[str]
) -> None:
    for number, flag in ((0, "true"), (1, "false")):
        source = TieredLog({**topic.options, "fail-on-data-loss": flag})
        reader: Any = source.streamReader(source.schema())
        spans = topic.planned().spans
        start = reader.initialOffset()
        (planned,) = reader.partitions(start, reader.latestOffset(start, reader.getDefaultReadLimit()))
        reader.stop()

        topic.take(spans[1:2])

        if number == 0:
            with pytest.raises(LostRecords):
                list(reader.read(planned))
            continue
        offsets = [row["offset"] for batch in reader.read(planned) for row in batch.to_pylist()]
        assert (min(offsets), max(offsets)) == (spans[0].first, spans[-1].last)
        assert not {*offsets} & {*range(spans[1].first, spans[1].last + 1)}
        assert f"{spans[1].first}" in capfd.readouterr().err


def test_what_no_event_says_was_deleted_stays_missing(topic: MovingTopic) -> None:
    source = TieredLog(topic.options)
    reader: Any = source.reader(source.schema())
    (planned,) = reader.partitions()

    topic.take(topic.planned().spans[:1], is_recorded=False)

    with pytest.raises(LostRecords) as lost:
        list(reader.read(planned))
    assert lost.value.finding.code is FindingCode.OBJECT_MISSING


@pytest.mark.spark
def test_a_backfill_tells_it_as_what_was_deleted_before_it_began(
    topic: MovingTopic, spark: SparkSession, tmp_path: Path
) -> None:
    partition, remote = topic.planned(), topic.store.open()
    request = RecordRequest(on_damage=OnDamage.SKIP)
    (share,) = record_shares(partition, *remote, request, continues=True)
    files = TablesPlace.given(str(tmp_path / "tables"), {}).open_writable()

    topic.take([partition.spans[0], partition.spans[2]])
    (written,) = write_shares(
        spark, topic.metadata, remote, [HistoryShare(share)], TableWriter(files, 1, "run", None, "2026-01-01")
    )

    (file,) = written.files["unreadable"]
    rows = pq.read_table(tmp_path / "tables" / file.path).to_pylist()
    assert [(row["code"], row["firstOffset"], row["lastOffset"]) for row in rows] == [
        (FindingCode.OFFSET_GAP, span.first, span.last) for span in (partition.spans[0], partition.spans[2])
    ]
    assert written.lost_offsets == sum(row["lastOffset"] - row["firstOffset"] + 1 for row in rows)
