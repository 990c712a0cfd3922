"""The DataFrame of record batches holds what the segments' logs do, and what cannot be read is a row that says so."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Self

import pytest
from pyspark.sql import DataFrame, SparkSession
from tieredctl_spark.arrow.batch_table import batch_tables
from tieredctl_spark.segment_batches import SegmentBatches

from tests.faults.cluster import captured
from tests.rigs.lies import half, one_bit_flipped, zeros
from tests.spark.damage import REMOTE
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_batches import Attributes, read_batch_header
from tieredctl.layouts.registry import layout_named
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES
from tieredctl.storage.memory import MemoryStore

ENCRYPTED = "aiven-zstd-encrypted-4.3.1"


def read(spark: SparkSession, cluster: Path, store: Path, **options: str) -> DataFrame:
    given = {"log-dir": str(cluster / "data"), "store": f"file:{store}", **options}
    return spark.read.format("segment_batches").options(**given).load()


def moment(milliseconds: int) -> datetime:
    return datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=milliseconds)


def batches_of(log: bytes) -> list[dict[str, Any]]:
    """One at a time."""
    rows, position = [], 0
    while position < len(log):
        header = read_batch_header(log, position, len(log))
        rows.append(
            {
                "position": position,
                "size": header.size,
                "baseOffset": header.base_offset,
                "lastOffset": header.last_offset,
                "recordsCount": header.records_count,
                "baseTimestamp": moment(header.base_timestamp),
                "maxTimestamp": moment(header.max_timestamp),
                "timestampType": "CreateTime",
                "producerId": header.producer_id,
                "producerEpoch": header.producer_epoch,
                "baseSequence": header.base_sequence,
                "partitionLeaderEpoch": header.partition_leader_epoch,
                "codec": header.codec.name.lower(),
                "isTransactional": header.is_transactional,
                "isControl": header.is_control,
                "crc": header.crc,
                "isValid": True,
                "problem": None,
            }
        )
        assert not header.attributes & Attributes.LOG_APPEND_TIME
        position += header.size
    return rows


def by_segment(frame: DataFrame) -> dict[str, list[dict[str, Any]]]:
    found: dict[str, list[dict[str, Any]]] = {}
    for row in frame.toArrow().to_pylist():
        found.setdefault(row["segmentId"], []).append(
            {name: value for name, value in row.items() if name not in ("topic", "topicId", "partition", "segmentId")}
        )
    return found


@pytest.mark.spark
def test_batches_of_a_captured_store_are_those_in_its_logs(spark: SparkSession, cluster: Path) -> None:
    store = cluster / REMOTE
    logs = {path.stem[-22:]: path for path in store.rglob("*.log")}

    found = by_segment(read(spark, cluster, store))

    assert len(found) > 30
    assert found == {segment_id: batches_of(logs[segment_id].read_bytes()) for segment_id in found}
    assert len({row["codec"] for rows in found.values() for row in rows}) > 1


@pytest.mark.spark
def test_segments_are_read_as_the_broker_wrote_them(spark: SparkSession, captures: Path) -> None:
    capture = captures / ENCRYPTED
    described = json.loads((capture / "capture.json").read_text())["plaintext"]
    option = {"layout-option.private-key": str(capture / "keys/private.pem")}

    found = by_segment(read(spark, capture, capture / "bucket", **option))

    logs = [log.read_bytes() for segment in described for log in (capture / segment["dir"]).glob("*.log")]
    assert [rows for log in logs if (rows := batches_of(log)) not in found.values()] == []
    assert len(logs) > 3
    assert all(row["isValid"] for rows in found.values() for row in rows)


@pytest.mark.spark
def test_what_cannot_be_read_is_a_row_that_says_so(spark: SparkSession, kafka_4: Path, tmp_path: Path) -> None:
    shutil.copytree(kafka_4 / REMOTE, tmp_path / "remote")
    sound = by_segment(read(spark, kafka_4, tmp_path / "remote"))
    ids = sorted(segment_id for segment_id, rows in sound.items() if len(rows) > 1)
    flipped, gone, cut = (next((tmp_path / "remote").rglob(f"*{segment_id}.log")) for segment_id in ids[:3])
    data = bytearray(flipped.read_bytes())
    first, second = sound[ids[0]][:2]
    data[70] ^= 1
    flipped.write_bytes(data)
    gone.unlink()
    cut.write_bytes(cut.read_bytes()[:-1])

    found = by_segment(read(spark, kafka_4, tmp_path / "remote"))

    assert {segment_id for segment_id, rows in found.items() if rows != sound[segment_id]} == set(ids[:3])
    damage = found[ids[0]][0]
    assert (damage["position"], damage["size"], damage["isValid"]) == (0, first["size"], False)
    assert damage["problem"] == "CRC-32C does not match"
    assert found[ids[0]][1] == second
    ((missing),) = found[ids[1]]
    assert missing["isValid"] is None
    assert missing["problem"] == "the segment has no log"
    assert found[ids[2]][:-1] == sound[ids[2]][:-1]
    assert found[ids[2]][-1]["isValid"] is False


class OnceLyingStore(MemoryStore):
    """Its first answers about a log are altered, or that it is not there; and what is read over new connections is
    as it is."""

    def __init__(self, answer: Callable[[bytes], bytes | None], first: int) -> None:
        super().__init__()
        self._answer, self._first = answer, first

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        return self._told(key, super().read(key, start, end))

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        return (self._told(key, piece) for piece in super().stream(key, start, 1 << 16))

    def reconnected(self) -> Self:
        self._answer = bytes
        return self

    def _told(self, key: str, data: bytes) -> bytes:
        self._first -= key.endswith(".log")
        told = data if self._first >= 0 or not key.endswith(".log") else self._answer(data)
        if told is None:
            raise TieredctlError(ErrorCode.OBJECT_MISSING, key)
        return told


@pytest.mark.parametrize("first", [0, 2])
@pytest.mark.parametrize(
    "answer", [one_bit_flipped, half, zeros, lambda _: None], ids=["one bit flipped", "cut short", "zeros", "denied"]
)
def test_what_one_answer_alters_is_no_problem_of_a_segment(
    kafka_4: Path, answer: Callable[[bytes], bytes | None], first: int
) -> None:
    largest = max(captured(kafka_4).finished(), key=lambda one: one.segment_size_in_bytes)
    layout, store = layout_named("local"), OnceLyingStore(answer, first)
    for key in layout.promised_objects(largest).values():
        store.put(key, (kafka_4 / REMOTE / key).read_bytes())
    log = (kafka_4 / REMOTE / layout.promised_objects(largest)[Part.LOG]).read_bytes()

    found = [row for table in batch_tables(largest, store, layout) for row in table.to_pylist()]

    assert [(row["position"], row["problem"]) for row in found] == [(one["position"], None) for one in batches_of(log)]


@pytest.mark.spark
def test_options_select_segments(spark: SparkSession, kafka_4: Path) -> None:
    store = kafka_4 / REMOTE
    everything = read(spark, kafka_4, store)
    chosen = everything.where("topic = 'orders7' and partition = 1").toArrow().to_pylist()

    found = read(spark, kafka_4, store, topic="orders7", partition="1").toArrow().to_pylist()
    one = read(spark, kafka_4, store, segmentId=chosen[0]["segmentId"]).toArrow().to_pylist()

    assert sorted(map(repr, found)) == sorted(map(repr, chosen))
    assert one == [row for row in chosen if row["segmentId"] == chosen[0]["segmentId"]]
    assert 0 < len(one) < len(found) < everything.count()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"topic": "nothing"}, "The metadata has no event of topic nothing."),
        ({"partition": "x"}, "partition 'x' is not a whole number from 0 on."),
        ({"level": "full"}, "segment_batches has no option 'level'; its options are log-dir, "),
    ],
)
def test_options_that_do_not_fit_are_refused(kafka_4: Path, change: dict[str, str], said: str) -> None:
    given = {"log-dir": str(kafka_4 / "data"), "store": f"file:{kafka_4 / REMOTE}", **change}
    source = SegmentBatches(given)

    with pytest.raises(TieredctlError, match=said):
        source.reader(source.schema()).partitions()
