"""What is read past the brokers is what their consumers get."""

from __future__ import annotations

import json
from base64 import b64decode
from contextlib import closing
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import TopicPartition

from tests.records.consumed_records import SECONDS, Row, consumed, consumer_of
from tests.records.kafka_records import rows_of
from tests.rigs import stopped_process
from tests.rigs.driven_brokers import DrivenBroker
from tests.rigs.stopped_process import INT, pasted, run_until
from tests.shares import divided
from tieredctl.errors import ExitCode
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import Isolation, Moment, RecordRequest
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records

pytestmark = pytest.mark.integration
WHOLE, IN_PART = ("orders", "payments", "clicks.eu-west_1"), "ledger"


def places(driven: DrivenBroker) -> tuple[MetadataPlace, StorePlace]:
    store = StorePlace(f"file:{driven.broker.remote_dir}")
    return MetadataPlace(cluster=ClusterPlace(driven.broker.bootstrap_server)), store


def read(driven: DrivenBroker, topic: str, request: RecordRequest) -> dict[TopicIdPartition, tuple[list[Row], int]]:
    """The records of a topic, and where its remote storage ends, by partition."""
    found = {}
    with topic_records(*places(driven), Selection.of(topic)) as opened:
        for partition in opened.partitions:
            records = opened.read(partition, request)
            rows = [row[:7] for row in rows_of(records)]
            assert records.findings == []
            found[partition.partition] = rows, records.next_offset or 0
    return found


@pytest.mark.parametrize("isolation", Isolation)
def test_as_a_consumer_reads_them_from_the_earliest_offset(driven: DrivenBroker, isolation: Isolation) -> None:
    for topic in WHOLE:
        for partition, (rows, _) in read(driven, topic, RecordRequest(isolation=isolation)).items():
            assert rows == consumed(driven.broker.bootstrap_server, topic, partition.partition, isolation), partition


def test_up_to_where_remote_storage_ends(driven: DrivenBroker) -> None:
    ((rows, end),) = read(driven, IN_PART, RecordRequest()).values()

    whole = consumed(driven.broker.bootstrap_server, IN_PART, 0, Isolation.READ_UNCOMMITTED)
    assert rows == [row for row in whole if isinstance(row[0], int) and row[0] < end]
    assert 0 < len(rows) < len(whole)


@pytest.mark.parametrize("isolation", Isolation)
def test_with_a_disk_or_the_leaders_up_to_the_end_of_the_log(driven: DrivenBroker, isolation: Isolation) -> None:
    live, store = places(driven)
    for topic, metadata in product((*WHOLE, IN_PART), (MetadataPlace(log_dirs=(driven.broker.log_dir,)), live)):
        with topic_records(metadata, store, Selection.of(topic), with_local=True) as opened:
            for partition in opened.partitions:
                rows = [row[:7] for row in rows_of(opened.read(partition, RecordRequest(isolation=isolation)))]
                assert rows == consumed(
                    driven.broker.bootstrap_server, topic, partition.partition.partition, isolation
                ), partition.partition


def test_a_time_means_the_offset_that_the_broker_looks_up(driven: DrivenBroker) -> None:
    whole = {topic: read(driven, topic, RecordRequest()) for topic in (*WHOLE, IN_PART)}
    with closing(consumer_of(driven.broker.bootstrap_server, Isolation.READ_UNCOMMITTED)) as consumer:
        for topic, partitions in whole.items():
            times = sorted({row[1] for rows, _ in partitions.values() for row in rows})
            for moment in (times[0], times[len(times) // 3], times[-1], times[len(times) // 2] + 1):
                selected = read(driven, topic, RecordRequest(start=Moment(moment)))
                for partition, (rows, end) in selected.items():
                    asked = TopicPartition(topic, partition.partition, moment)
                    (answer,) = consumer.offsets_for_times([asked], SECONDS)
                    if answer.offset < 0 or answer.offset >= end:
                        assert rows == []
                        continue
                    assert rows == [row for row in partitions[partition][0] if row[0] >= answer.offset], moment


def test_files_that_ctrl_c_stopped_at_get_the_rows_of_a_consumer_when_resumed(
    driven: DrivenBroker, tmp_path: Path
) -> None:
    server, topic = driven.broker.bootstrap_server, WHOLE[0]
    live = ("--bootstrap-server", server, "--store", f"file:{driven.broker.remote_dir}")
    for number in divided(range(2, 7)):  # the first file is the manifest; then come a part and the manifest each time
        folder = tmp_path / str(number)
        words = ("remote", "records", topic, *live, "-o", "jsonl", "--output-dir", folder)

        stopped = run_until(stopped_process.Moment("^open ", number), INT, folder, words)
        seen = lines_of(folder)
        resumed = pasted(stopped)

        assert (stopped.exit_code, resumed.exit_code) == (ExitCode.INTERRUPTED, ExitCode.CLEAN), resumed.err
        found = lines_of(folder)
        assert found[: len(seen)] == seen
        assert len(seen) < len(found)
        assert [*map(row_of, found)] == [
            (partition, *row)
            for partition in range(driven.cluster.topics[topic].partitions)
            for row in consumed(server, topic, partition, Isolation.READ_UNCOMMITTED)
        ]


def lines_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for file in sorted(folder.glob("*.jsonl")) for line in file.read_bytes().splitlines()]


def row_of(line: dict[str, Any]) -> Row:
    """A line as a consumer has it, after its partition."""
    key, value = (None if line[name] is None else b64decode(line[name]) for name in ("key", "value"))
    headers = tuple((one["key"], None if one["value"] is None else b64decode(one["value"])) for one in line["headers"])
    place = (line[name] for name in ("partition", "offset", "timestamp", "timestampType"))
    return *place, key, value, headers, line["leaderEpoch"]


@pytest.mark.exhaustive
def test_all_of_this_holds_of_the_newest_release(kafka_4_4: DrivenBroker) -> None:
    for isolation in Isolation:
        test_as_a_consumer_reads_them_from_the_earliest_offset(kafka_4_4, isolation)
        test_with_a_disk_or_the_leaders_up_to_the_end_of_the_log(kafka_4_4, isolation)
    test_up_to_where_remote_storage_ends(kafka_4_4)
    test_a_time_means_the_offset_that_the_broker_looks_up(kafka_4_4)
