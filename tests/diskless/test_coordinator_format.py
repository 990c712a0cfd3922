"""`diskless format`: what stands in the logs of KIP-1164's coordinators."""

from __future__ import annotations

from pathlib import Path

import pytest
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import PartitionCreated

from tests.cli.command_line import Tieredctl
from tests.cli.openmetrics import read_metrics
from tests.diskless.coordinator_logs import NOON_MS, batch, write_log
from tests.diskless_records import ONE_OF_EACH, TOPIC_ID

NAMES = [
    "DisklessPartitionCreatedRecord",
    "DisklessTopicDeletedRecord",
    "DisklessFileCommittedRecord",
    "DisklessRecordsDeletedRecord",
]


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """The log of coordinator 0, with a record of each kind."""
    folder = write_log(tmp_path, 0, [(NOON_MS + at, record) for at, record in enumerate(ONE_OF_EACH)])
    (file,) = folder.glob("*.log")
    return file


def test_every_record_has_the_fields_of_its_definition(log: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1], "-o", "jsonl")

    assert outcome.exit_code == 0
    assert [(line["metadataPartition"], line["metadataOffset"], line["type"]) for line in outcome.lines()] == [
        (0, offset, name) for offset, name in enumerate(NAMES)
    ]
    created, deleted, committed, records_deleted = (line["fields"] for line in outcome.lines())
    assert created == {"topicId": TOPIC_ID, "name": "t", "partitionIndex": 3}
    assert deleted == {"topicId": TOPIC_ID}
    assert records_deleted == {"topicId": TOPIC_ID, "partitionIndex": 3, "newLogStartOffset": 60}
    (topic,) = committed.pop("topics")
    assert committed == {
        "objectKey": "obj1",
        "objectFormat": 1,
        "fileSize": 84,
        "uploaderBrokerId": 1,
        "ownerIds": [0],
    }
    assert topic["partitions"][0]["batches"][0].items() >= {"assignedBaseOffset": 100, "lastSequence": 8}.items()


def test_the_table_says_what_each_record_is_about(log: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1])

    said = [" ".join(line.split()) for line in outcome.out.splitlines()[1:]]
    assert [line.split(f"{NOON_MS + at} ")[1] for at, line in enumerate(said)] == [
        f"PartitionCreated t {TOPIC_ID}:3",
        f"TopicDeleted {TOPIC_ID}",
        f"FileCommitted obj1, 84 B: {TOPIC_ID}:3@100..101",
        f"RecordsDeleted {TOPIC_ID}:3, log start 60",
    ]


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_every_output_has_every_record(output: str, log: Path, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1], "-o", output)

    assert outcome.exit_code == 0
    assert outcome.out.count("obj1") == 1
    assert len([name for name in NAMES if name.removeprefix("Diskless").removesuffix("Record") in outcome.out]) == 4


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        (b"\x01\x68\x00", "unknown apiKey 104"),
        (b"\x01\x64\x01", "unknown version 1 of apiKey 100"),
        (b"\x00", "frame version 0 is not 1"),
        (encode_diskless_record(ONE_OF_EACH[0])[:-1], "1 record cannot be decoded"),
        (None, "no value"),
    ],
)
def test_a_record_that_is_not_known_is_a_finding_and_the_others_are_shown(
    value: bytes | None, reason: str, log: Path, tieredctl: Tieredctl
) -> None:
    later = PartitionCreated(topic_id=TOPIC_ID, topic="later", partition=9)
    log.write_bytes(log.read_bytes() + batch(value, encode_diskless_record(later), offset=4))

    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1], "-o", "json")

    document = outcome.document()
    assert outcome.exit_code == 5
    assert [item["metadataOffset"] for item in document["items"]] == [0, 1, 2, 3, 5]
    (finding,) = document["summary"]["findings"]
    assert (finding["code"], finding["evidence"]["metadataOffset"]) == ("coordinator-log-incomplete", 4)
    assert reason in finding["message"]


def test_of_many_unknown_records_one_finding_tells_the_number(log: Path, tieredctl: Tieredctl) -> None:
    log.write_bytes(log.read_bytes() + batch(*[b"\x01\x68\x00"] * 5000, offset=4))

    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1], "-o", "json")

    (finding,) = outcome.document()["summary"]["findings"]
    assert finding["evidence"]["records"] == 5000


@pytest.mark.parametrize("position", range(0, 420, 60))
def test_damage_is_a_finding_wherever_it_is(position: int, log: Path, tieredctl: Tieredctl) -> None:
    data = bytearray(log.read_bytes())
    assert len(data) > 420
    data[position] ^= 0x10
    log.write_bytes(bytes(data))

    outcome = tieredctl("diskless", "format", "--log-dir", log.parents[1])

    assert outcome.exit_code == 5
    assert "coordinator-log-incomplete" in outcome.err


def test_one_coordinators_log_alone(log: Path, tieredctl: Tieredctl) -> None:
    write_log(log.parents[1], 2, [(NOON_MS, ONE_OF_EACH[0])])

    one = tieredctl("diskless", "format", "--log-dir", log.parents[1], "--metadata-partition", "2", "-o", "jsonl")
    all_here = tieredctl("diskless", "format", "--log-dir", log.parents[1], "-o", "jsonl")

    assert (one.exit_code, [line["metadataPartition"] for line in one.lines()]) == (0, [2])
    assert all_here.exit_code == 5
    assert "1 coordinator without a log here: 1" in all_here.err


def test_its_metrics_count_the_records(log: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    metrics = tmp_path / "metrics.prom"

    tieredctl("diskless", "format", "--log-dir", log.parents[1], "--metrics-file", metrics, "-q")

    assert [sample.value for sample in read_metrics(metrics.read_text()) if sample.family == "tieredctl_records"] == [4]
