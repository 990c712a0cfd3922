"""Records are those that Kafka's own classes read, byte for byte, and those that its consumers get."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.records.captured_topics import WITH_STORE, captured_records, captured_topics
from tests.records.kafka_records import KafkaRecord, committed, read_by_kafka, rows_of, uncommitted
from tests.records.one_segment import of_log
from tests.rigs.driven_brokers import jars_of
from tests.rigs.java_program import run_java_program
from tieredctl.ports.layout import Part
from tieredctl.records.request import Isolation, RecordRequest

pytestmark = pytest.mark.integration


@pytest.mark.parametrize("name", WITH_STORE)
def test_captured_records_are_those_that_kafka_reads(name: str, captures: Path, tmp_path: Path) -> None:
    read: dict[Isolation, list[list[tuple[Any, ...]]]] = {isolation: [] for isolation in Isolation}
    logs: list[Path] = []
    ends: list[int] = []
    for topic in captured_topics(captures / name):
        with captured_records(captures / name, topic) as opened:
            for partition in opened.partitions:
                for isolation, rows in read.items():
                    records = opened.read(partition, RecordRequest(isolation=isolation))
                    rows.append(rows_of(records))
                    assert (records.findings, records.lost_offsets) == ([], 0)
                for span in partition.spans:
                    logs.append(tmp_path / f"{len(logs)}.log")
                    logs[-1].write_bytes(opened.layout.open_segment(opened.store, span.segment).read(Part.LOG))
                ends.append(len(logs))

    by_log = read_by_kafka(jars_of("4.3.1"), logs, tmp_path)

    for number, end in enumerate(ends):
        expected = _each_once([one for log in by_log[ends[number - 1] if number else 0 : end] for one in log])
        assert read[Isolation.READ_UNCOMMITTED][number] == [one.as_row() for one in uncommitted(expected)]
        assert read[Isolation.READ_COMMITTED][number] == [one.as_row() for one in committed(expected)]
    assert sum(map(len, read[Isolation.READ_UNCOMMITTED])) > 500


@pytest.mark.parametrize("isolation", Isolation)
def test_the_disk_continues_where_remote_storage_ends(isolation: Isolation, captures: Path, tmp_path: Path) -> None:
    capture = captures / "kafka-4.3.1"
    local = sorted((capture / "data" / "slow7-0").glob("*.log"))
    expected = _each_once([one for log in read_by_kafka(jars_of("4.3.1"), local, tmp_path) for one in log])

    with captured_records(capture, "slow7", with_local=True) as opened:
        (partition,) = opened.partitions
        rows = rows_of(opened.read(partition, RecordRequest(isolation=isolation)))
        middle = rows_of(opened.read(partition, RecordRequest(start=260, end=270, isolation=isolation)))

    assert [row[0] for row in rows] == list(range(287))
    assert [row for row in rows if row[0] >= expected[0].offset] == [one.as_row() for one in uncommitted(expected)]
    assert middle == rows[260:270]


def _each_once(records: list[KafkaRecord]) -> list[KafkaRecord]:
    """Of segments that overlap, on one line of leaders, the first has an offset."""
    return list({one.offset: one for one in reversed(records)}.values())[::-1]


@pytest.mark.parametrize(("magics", "seed"), [("2", 1), ("2", 2), ("012", 3), ("01", 4)])
def test_random_logs_that_kafka_wrote(magics: str, seed: int, tmp_path: Path) -> None:
    log, jars = tmp_path / "00.log", jars_of("4.3.1")
    written = run_java_program(jars, "RecordsOracle", "generate", str(seed), "25000", magics, str(log))
    (records,) = read_by_kafka(jars, [log], tmp_path)
    assert written["records"] >= 25_000 * 0.99

    segment = of_log(log.read_bytes(), records[0].offset, records[-1].offset)

    expected = [one.as_row() for one in uncommitted(records)]
    assert rows_of(segment.read()) == expected
    assert {one[2] for one in expected} == _TIMESTAMP_TYPES[magics]


_TIMESTAMP_TYPES = {
    "2": {"CreateTime", "LogAppendTime"},
    "012": {"NoTimestampType", "CreateTime", "LogAppendTime"},
    "01": {"NoTimestampType", "CreateTime", "LogAppendTime"},
}
