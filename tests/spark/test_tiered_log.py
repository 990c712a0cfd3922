"""The DataFrame of a topic's records holds what the library reads, which is what Kafka's own consumers get."""

from __future__ import annotations

import shutil
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from tieredctl_spark.record_ends import readable
from tieredctl_spark.record_shares import record_shares
from tieredctl_spark.tiered_log import TieredLog

from tests.faults.cluster import LAYOUT, made_of, update
from tests.records.captured_topics import WITH_STORE, captured_records, captured_topics
from tests.records.test_damage import SEGMENTS, with_a_bit_flipped
from tests.records.test_lineage import remote_partition, segment
from tests.shares import divided
from tests.spark.damage import REMOTE
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ports.layout import Part
from tieredctl.records.lost_records import LostRecords
from tieredctl.records.partition_records import PartitionRecords
from tieredctl.records.request import Isolation, KnownLine, Moment, OnDamage, RecordRequest

ENCRYPTED = "aiven-zstd-encrypted-4.3.1"
Row = dict[str, Any]


def rows_of(records: PartitionRecords) -> list[Row]:
    return [row for batch in records for row in batch.to_pylist()]


def read_by_library(capture: Path, topic: str, request: RecordRequest) -> list[Row]:
    with captured_records(capture, topic) as opened:
        return [row for partition in opened.partitions for row in rows_of(opened.read(partition, request))]


def frame(spark: SparkSession, capture: Path, topic: str, **options: str) -> DataFrame:
    key, remote = capture / "keys/private.pem", capture / REMOTE
    given = {
        "log-dir": str(capture / "data"),
        "store": f"file:{remote if remote.exists() else capture / 'bucket'}",
        "topic": topic,
        **({"layout-option.private-key": str(key)} if key.exists() else {}),
        **options,
    }
    return spark.read.format("tiered_log").options(**given).load()


def as_library_has_it(table: pa.Table) -> list[Row]:
    """In the order of partition and offset, times in milliseconds."""
    times = table.column("timestamp").cast(pa.timestamp("us")).cast(pa.int64())
    milliseconds = pa.array([time.as_py() // 1_000 for time in times])
    at = table.schema.get_field_index("timestamp")
    rows = table.set_column(at, "timestamp", milliseconds).sort_by(
        [("partition", "ascending"), ("offset", "ascending")]
    )
    found: list[Row] = rows.drop_columns(["damage"]).to_pylist()
    return found


@pytest.mark.spark
@pytest.mark.parametrize(("name", "isolation"), [("kafka-4.3.1", "read_committed"), (ENCRYPTED, "read_uncommitted")])
def test_records_are_those_that_the_library_reads(
    name: str, isolation: str, spark: SparkSession, captures: Path
) -> None:
    topics = captured_topics(captures / name)
    expected = {
        topic: read_by_library(captures / name, topic, RecordRequest(isolation=Isolation(isolation)))
        for topic in topics
    }

    topic = max(topics, key=lambda one: (any(row["isTransactional"] for row in expected[one]), len(expected[one])))
    found = frame(spark, captures / name, topic, isolation=isolation).toArrow()

    assert as_library_has_it(found) == expected[topic]
    assert len(found) > 50
    assert found.column("damage").null_count == len(found)


@pytest.mark.parametrize(
    ("name", "task_bytes", "isolation"), divided([*product(WITH_STORE, (2_000, 50_000), Isolation)])
)
def test_shares_of_any_size_give_each_record_once(
    name: str, task_bytes: int, isolation: Isolation, captures: Path
) -> None:
    most, request = 0, RecordRequest(isolation=isolation)
    for topic in captured_topics(captures / name):
        with captured_records(captures / name, topic) as opened:
            for partition in opened.partitions:
                expected = rows_of(opened.read(partition, request))

                shares = record_shares(partition, opened.store, opened.layout, request, task_bytes=task_bytes)

                found = [row for one in shares for row in rows_of(opened.read(one.remote, one.request))]
                assert found == expected, partition
                most = max(most, len(shares))
    assert most > 5


def test_shares_begin_and_end_where_the_request_does(kafka_4: Path) -> None:
    with captured_records(kafka_4, "orders7") as opened:
        partition = opened.partitions[0]
        rows = rows_of(opened.read(partition))
        time, within = rows[40]["timestamp"], (rows[3]["offset"], rows[30]["offset"])
        for request in (RecordRequest(*within), RecordRequest(Moment(time)), RecordRequest(None, Moment(time))):
            shares = record_shares(partition, opened.store, opened.layout, request, task_bytes=500)
            found = [row for one in shares for row in rows_of(opened.read(one.remote, one.request))]

            assert found == rows_of(opened.read(partition, request)) != []
        assert record_shares(partition, opened.store, opened.layout, RecordRequest(1 << 40)) == []


@pytest.fixture
def damaged(kafka_4: Path, tmp_path: Path) -> tuple[Path, str]:
    """A cluster of which a segment's log is gone from the middle of a partition, and that segment's id."""
    for part in ("data", "remote"):
        shutil.copytree(kafka_4 / part, tmp_path / part)
    with captured_records(kafka_4, "orders7") as opened:
        segment = opened.partitions[0].spans[1].segment
        key = opened.layout.promised_objects(segment)[Part.LOG]
    (tmp_path / REMOTE / key).unlink()
    return tmp_path, segment.segment_id


def test_what_cannot_be_read_is_told_once_by_one_share(damaged: tuple[Path, str]) -> None:
    cluster, segment_id = damaged
    request = RecordRequest(on_damage=OnDamage.ROW)
    with captured_records(cluster, "orders7") as opened:
        partition = opened.partitions[0]
        expected = rows_of(opened.read(partition, request))

        shares = record_shares(partition, opened.store, opened.layout, request, task_bytes=1 << 30)
        found = [row for one in shares for row in rows_of(opened.read(one.remote, one.request))]

    assert found == expected
    assert [row["segmentId"] for row in found if row["damage"] is not None] == [segment_id]


def test_offsets_that_no_segment_holds_are_told_by_the_share_before_them(kafka_4: Path) -> None:
    request = RecordRequest(on_damage=OnDamage.ROW)
    with captured_records(kafka_4, "orders7") as opened:
        whole = opened.partitions[0]
        spans = whole.spans
        lacking = type(whole)(whole.partition, [spans[0], *spans[2:]], whole.log_start_offset, whole.deleted)

        shares = record_shares(lacking, opened.store, opened.layout, request, task_bytes=1)
        found = [row for one in shares for row in rows_of(opened.read(one.remote, one.request))]

    damage = [row for row in found if row["damage"] is not None]
    assert [row["offset"] for row in damage] == [spans[0].last + 1]


def test_each_offset_that_no_segment_holds_is_gone_or_lost_to_one_share() -> None:
    early, first, middle, last = (segment(*two, 0) for two in ((0, 20), (30, 100), (120, 130), (150, 200)))
    whole = made_of([early, first, middle, last])
    for leader in (None, KnownLine([(0, 0)], 0), KnownLine([(0, 0)], 25)):
        for deleted in ([], [early], [middle], [early, middle]):
            cluster = whole.with_events(
                *(update(one.metadata, RemoteLogSegmentState.DELETE_SEGMENT_STARTED) for one in deleted)
            )
            remote, store = remote_partition(cluster, leader), cluster.store()
            for isolation in Isolation:
                known = readable(remote, store, LAYOUT, isolation)
                for begin, end in ((0, 200), (10, 200), (25, 200), (100, 200), (110, 115), (125, 200), (140, 200)):
                    request = RecordRequest(begin, end, isolation, OnDamage.SKIP)

                    shares = record_shares(remote, store, LAYOUT, request, task_bytes=1_000)

                    accounted = [offset for one in known.gone(begin, end) for offset in range(one[0], one[1] + 1)]
                    for share in shares:
                        records = PartitionRecords(share.remote, store, LAYOUT, share.request)
                        accounted += [row["offset"] for row in rows_of(records)]
                        for finding in records.findings:
                            lost = finding.evidence["offsets"]
                            assert isinstance(lost, list)
                            accounted += range(lost[0], lost[1] + 1)
                    assert sorted(accounted) == [*range(begin, end)], (leader, deleted, request)


def test_what_is_damaged_before_the_time_at_which_reading_ends_is_reported_and_the_rest_is_read() -> None:
    damaged = with_a_bit_flipped(SEGMENTS["indexed_by_batch"])
    whole = damaged.read(RecordRequest(on_damage=OnDamage.SKIP))
    rows = rows_of(whole)
    remote, store = whole._remote, whole._store
    for place in (Moment(rows[-1]["timestamp"]), Moment(rows[len(rows) // 3]["timestamp"])):
        request = RecordRequest(end=place, on_damage=OnDamage.SKIP)
        by_library = damaged.read(request)

        shares = record_shares(remote, store, LAYOUT, request, task_bytes=1 << 30)

        by_shares = [PartitionRecords(one.remote, store, LAYOUT, one.request) for one in shares]
        assert [row for one in by_shares for row in rows_of(one)] == rows_of(by_library)
        found = [finding for one in by_shares for finding in one.findings]
        assert found == by_library.findings


@pytest.mark.spark
def test_damage_ends_the_read_or_is_a_row(spark: SparkSession, damaged: tuple[Path, str]) -> None:
    cluster, segment_id = damaged

    rows = frame(spark, cluster, "orders7", partition="0", damage="row").toArrow().to_pylist()

    assert [row["segmentId"] for row in rows if row["damage"] is not None] == [segment_id]
    with pytest.raises(PySparkException, match="object-missing"):
        frame(spark, cluster, "orders7", partition="0").collect()


def test_doubtful_metadata_ends_the_read_or_is_told_by_the_first_share(kafka_4: Path) -> None:
    codes = FindingCode.METADATA_TRUNCATED, FindingCode.BATCH_CORRUPT
    findings = [Finding(code, "__remote_log_metadata-0", "events are lost") for code in codes]
    with captured_records(kafka_4, "orders7") as opened:
        partition = opened.partitions[0]
        place = partition, opened.store, opened.layout

        told = record_shares(*place, RecordRequest(on_damage=OnDamage.ROW), findings, task_bytes=1)

        assert [list(one.findings) for one in told] == [findings, *([] for _ in told[1:])]
        with pytest.raises(LostRecords):
            record_shares(*place, RecordRequest(), findings)


@pytest.mark.spark
def test_a_schema_names_the_columns_that_are_made(spark: SparkSession, kafka_4: Path) -> None:
    whole = frame(spark, kafka_4, "orders7", partition="0").select("offset", "value").toArrow()
    options = {"log-dir": str(kafka_4 / "data"), "store": f"file:{kafka_4 / REMOTE}", "topic": "orders7"}
    named = spark.read.format("tiered_log").schema("offset long, value binary").options(partition="0", **options)

    assert named.load().toArrow().sort_by("offset").to_pylist() == whole.sort_by("offset").to_pylist()


def test_a_batch_unfolds_no_further_than_is_allowed(kafka_4: Path) -> None:
    given = {"log-dir": str(kafka_4 / "data"), "store": f"file:{kafka_4 / REMOTE}", "topic": "orders7"}

    def damage(**options: str) -> set[str | None]:
        source = TieredLog(given | {"damage": "row"} | options)
        reader: Any = source.reader(source.schema())
        batches = (batch for partition in reader.partitions() for batch in reader.read(partition))
        return {row["damage"] and row["damage"].partition(":")[0] for batch in batches for row in batch.to_pylist()}

    assert damage() == damage(maxBatchBytes="64MiB") == {None}
    assert damage(maxBatchBytes="1") == {None, "unreadable"}


def test_options_that_do_not_fit_are_refused(kafka_4: Path) -> None:
    given = {"log-dir": str(kafka_4 / "data"), "store": f"file:{kafka_4 / REMOTE}", "topic": "orders7"}
    for change, code in (
        ({"topic": "nothing"}, ErrorCode.UNKNOWN_TOPIC),
        ({"isolation": "serializable"}, ErrorCode.USAGE),
        ({"damage": "skip"}, ErrorCode.USAGE),
        ({"from": "yesterday"}, ErrorCode.USAGE),
        ({"max-batch-bytes": "0"}, ErrorCode.USAGE),
        ({"segment-id": "x"}, ErrorCode.USAGE),
    ):
        source = TieredLog(given | change)
        with pytest.raises(TieredctlError) as refused:
            source.reader(source.schema()).partitions()
        assert refused.value.code is code, change
    source = TieredLog({name: value for name, value in given.items() if name != "topic"})
    with pytest.raises(TieredctlError) as refused:
        source.reader(source.schema())
    assert refused.value.code is ErrorCode.USAGE
