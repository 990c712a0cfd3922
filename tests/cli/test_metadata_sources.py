"""Where `tieredctl metadata …` reads: log directories, replicas, points in the past and exports, sound and damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.cli.metadata_command import CLEAN, CORRUPTION, FAILURE, FINDINGS, INCOMPLETE, USAGE, Metadata
from tests.metadata_logs import (
    COPIED,
    DELETING,
    FIRST_TIMESTAMP_MS,
    TOPIC_ID,
    copied,
    metadata_batches,
    segment_id,
    started,
    updated,
    write_events,
    write_log,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text

RECREATED_ID = uuid_text(bytes(range(100, 116)))
RECREATED = TopicIdPartition(RECREATED_ID, "t", 0)
OF_METADATA_PARTITION_0 = TopicIdPartition(TOPIC_ID, "t", 2)
"""By Kafka's partitioner, of two; t-0 is of the other one."""


@pytest.mark.parametrize("where", ["u:0", "t:9", "t", "t:x"])
def test_a_partition_that_is_not_there(metadata: Metadata, log_dir: Path, where: str) -> None:
    found = metadata("epochs", where, "--log-dir", log_dir)

    assert (found.code, found.out) == (USAGE, "")


def test_no_source_and_two(metadata: Metadata, log_dir: Path) -> None:
    none = metadata("segments")
    two = metadata("segments", "--log-dir", log_dir, "--export", "x.jsonl")

    assert none.code == two.code == USAGE
    assert "--log-dir" in none.err
    assert "exclude" in two.err


def test_a_log_directory_that_is_not_there(metadata: Metadata, tmp_path: Path) -> None:
    found = metadata("segments", "--log-dir", tmp_path / "absent")

    assert found.code == USAGE
    assert f"There is no {tmp_path / 'absent'}" in found.err


def test_a_file_is_not_a_log_directory(metadata: Metadata, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    found = metadata("segments", "--log-dir", file)

    assert found.code == USAGE
    assert "is a file" in found.err


def test_a_folder_without_metadata_partitions_is_not_a_log_directory(metadata: Metadata, tmp_path: Path) -> None:
    found = metadata("segments", "--log-dir", tmp_path)

    assert found.code == USAGE
    assert "__remote_log_metadata" in found.err


def test_a_link_that_leads_nowhere(metadata: Metadata, tmp_path: Path) -> None:
    (tmp_path / "__remote_log_metadata-0").symlink_to(tmp_path / "gone")

    found = metadata("segments", "--log-dir", tmp_path)

    assert found.code == USAGE
    assert "__remote_log_metadata-0" in found.err
    assert "Traceback" not in found.err


def test_an_empty_metadata_partition_is_an_answer(metadata: Metadata, tmp_path: Path) -> None:
    write_log(tmp_path, 0, [])

    for words in (["segments"], ["format"], ["stats"], ["stuck"]):
        assert metadata(*words, "--log-dir", tmp_path).code == CLEAN


def test_a_file_that_is_not_a_log_is_corruption(metadata: Metadata, tmp_path: Path) -> None:
    write_log(tmp_path, 0, [b"no log at all " * 100])
    write_log(tmp_path, 0, metadata_batches(copied(1, 0, 9), first_offset=7), first_offset=7)

    found = metadata("segments", "--log-dir", tmp_path, "-o", "json")

    assert found.code == CORRUPTION
    assert found.codes == ["batch-corrupt"]
    assert len(found.document["items"]) == 1


@pytest.mark.parametrize("point", ["time", "offsets"])
def test_the_state_at_an_earlier_point(metadata: Metadata, log_dir: Path, tmp_path: Path, point: str) -> None:
    """Both after the fourth event: record 3 was written three seconds after the first."""
    offsets = tmp_path / "offsets"
    offsets.write_text("0\n1\n0 3\n")
    as_of = str(offsets) if point == "offsets" else str(FIRST_TIMESTAMP_MS + 3_000)

    found = metadata("segments", "--log-dir", log_dir, "--as-of", as_of, "-o", "json")

    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(1), segment_id(2)]
    assert {item["state"] for item in found.document["items"]} == {"COPY_SEGMENT_FINISHED"}


def test_a_time_may_be_written_for_people(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("format", "--log-dir", log_dir, "--as-of", "2023-11-14T22:13:20Z")

    assert found.out.startswith("partition: 0, offset: 0, ")
    assert found.out.count("\n") == 1


def test_a_file_that_holds_no_offsets(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "offsets").write_text("these are no offsets\n")

    assert metadata("segments", "--log-dir", log_dir, "--as-of", tmp_path / "offsets").code == USAGE


def test_replicas_in_several_log_directories_are_one_log(metadata: Metadata, tmp_path: Path) -> None:
    events = [*copied(1, 0, 9), *copied(2, 10, 19)]
    batches = metadata_batches(events)
    write_log(tmp_path / "a", 1, batches[:3])
    write_log(tmp_path / "b", 1, batches)
    write_log(tmp_path / "b", 0, metadata_batches(copied(3, 0, 9, partition=OF_METADATA_PARTITION_0)))

    found = metadata("segments", "--log-dir", tmp_path / "a", "--log-dir", tmp_path / "b", "-o", "json")

    assert found.code == CLEAN
    assert len(found.document["items"]) == 3
    assert found.document["source"]["endOffsets"] == {"0": 2, "1": 4}


def test_replicas_that_contradict_each_other_are_critical(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path / "a", *copied(1, 0, 9))
    write_events(tmp_path / "b", started(1, 0, 9), updated(1, DELETING))

    found = metadata("segments", "--log-dir", tmp_path / "a", "--log-dir", tmp_path / "b", "-o", "json")

    assert found.code == CORRUPTION
    (finding,) = found.document["summary"]["findings"]
    assert finding["code"] == "metadata-conflict"
    assert finding["evidence"]["metadataOffset"] == 1
    assert found.document["items"][0]["state"] == "COPY_SEGMENT_FINISHED"


@pytest.mark.parametrize("kind", ["future", "stray", "delete"])
def test_folders_that_are_on_their_way_out_are_passed_over(metadata: Metadata, log_dir: Path, kind: str) -> None:
    passing = log_dir / f"__remote_log_metadata-0.{'0' * 32}-{kind}"
    shutil.copytree(log_dir / "__remote_log_metadata-0", passing)
    (log_dir / "__remote_log_metadata-0" / f"{5:020d}.log.deleted").write_bytes(b"gone")

    found = metadata("segments", "--log-dir", log_dir, "-o", "json")

    assert found.code == CLEAN
    assert found.codes == ["folder-passed-over"] * 2
    assert {finding["severity"] for finding in found.document["summary"]["findings"]} == {"info"}
    assert len(found.document["items"]) == 2


def test_a_log_that_lost_its_beginning_makes_every_answer_incomplete(metadata: Metadata, tmp_path: Path) -> None:
    write_log(tmp_path, 0, metadata_batches(copied(1, 0, 9), first_offset=40), first_offset=40)

    for words in (["segments"], ["segments", "--all"], ["stats"], ["format"]):
        found = metadata(*words, "--log-dir", tmp_path, "-o", "json")
        assert found.code == INCOMPLETE
        assert found.codes == ["metadata-truncated"]
    assert metadata("lookup", "t:0", "--epoch", "0", "--offset", "1", "--log-dir", tmp_path).code == INCOMPLETE


def test_the_brokers_checkpoint_tells_a_beginning_that_no_file_name_does(metadata: Metadata, log_dir: Path) -> None:
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\n__remote_log_metadata 0 2\n")

    found = metadata("format", "--log-dir", log_dir, "-o", "json")

    assert found.code == INCOMPLETE
    assert found.document["items"][0]["metadataOffset"] == 2


@pytest.mark.parametrize("large", [False, True], ids=["small log", "large log"])
def test_an_altered_byte_is_told_with_its_place_and_the_rest_is_read(
    metadata: Metadata, tmp_path: Path, large: bool
) -> None:
    count = 3_500 if large else 50
    batches = metadata_batches([event for number in range(1, count) for event in copied(number, number, number)])
    middle = len(batches) // 2
    batches[middle] = batches[middle][:-2] + bytes((batches[middle][-2] ^ 1,)) + batches[middle][-1:]
    path = write_log(tmp_path, 0, batches)

    found = metadata("format", "--log-dir", tmp_path, "-o", "json")

    assert found.code == CORRUPTION
    (finding,) = found.document["summary"]["findings"]
    assert finding["code"] == "batch-corrupt"
    assert finding["evidence"] == {
        "metadataPartition": 0,
        "file": str(path),
        "position": sum(map(len, batches[:middle])),
        "offsets": [middle, middle],
    }
    assert len(found.document["items"]) == len(batches) - 1


def test_a_torn_tail_is_normal_while_a_broker_writes(metadata: Metadata, tmp_path: Path) -> None:
    batches = metadata_batches([*copied(1, 0, 9), *copied(2, 10, 19)])
    write_log(tmp_path, 0, [*batches[:-1], batches[-1][:-7]])

    found = metadata("segments", "--log-dir", tmp_path, "-o", "json")

    assert (found.code, found.codes) == (CLEAN, [])
    assert [item["state"] for item in found.document["items"]] == ["COPY_SEGMENT_FINISHED", "COPY_SEGMENT_STARTED"]


def test_a_torn_tail_in_a_file_that_was_closed_is_damage(metadata: Metadata, tmp_path: Path) -> None:
    batches = metadata_batches(copied(1, 0, 9))
    write_log(tmp_path, 0, [batches[0], batches[1][:-7]])
    write_log(tmp_path, 0, metadata_batches(copied(2, 10, 19), first_offset=2), first_offset=2)

    found = metadata("segments", "--log-dir", tmp_path, "-o", "json")

    assert (found.code, found.codes) == (CORRUPTION, ["batch-corrupt"])


def test_an_event_that_cannot_be_read_is_reported_and_the_rest_is_read(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), b"\x01\x07\x00", None, *copied(2, 10, 19))

    found = metadata("segments", "--log-dir", tmp_path, "-o", "json")

    assert (found.code, found.codes) == (FINDINGS, ["event-undecodable"] * 2)
    assert found.document["summary"]["findings"][0]["evidence"]["metadataOffset"] == 2
    assert len(found.document["items"]) == 2


def test_an_event_that_kafka_drops_is_told_on_stderr_of_a_table(metadata: Metadata, log_dir: Path) -> None:
    write_events(log_dir, *copied(1, 0, 9), updated(9, COPIED))

    found = metadata("segments", "--log-dir", log_dir)

    assert found.code == FINDINGS
    assert found.err.startswith("warning: event-illegal: ")


@pytest.mark.parametrize("suffix", [".parquet", ".jsonl"])
def test_an_export_answers_as_its_source(metadata: Metadata, captures: Path, tmp_path: Path, suffix: str) -> None:
    log_dir, file = captures / "kafka-4.3.1" / "data", tmp_path / f"export{suffix}"

    written = metadata("export", file, "--log-dir", log_dir, "-o", "json")

    assert written.code == CLEAN
    assert written.document["summary"] | {"bytes": 0} == {
        "items": 4,
        "file": str(file),
        "records": 680,
        "bytes": 0,
        "dryRun": False,
        "findings": [],
    }
    assert metadata("format", "--export", file).out == metadata("format", "--log-dir", log_dir).out
    for words in (["segments", "--all"], ["stats"], ["epochs", "orders7:0"]):
        by_export = metadata(*words, "--export", file, "-o", "json").document
        by_log_dir = metadata(*words, "--log-dir", log_dir, "-o", "json").document
        assert by_export | {"source": None} == by_log_dir | {"source": None}


def test_an_export_is_not_replaced_unasked(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    words = ("export", tmp_path / "export.jsonl", "--log-dir", log_dir)

    assert [metadata(*words).code, metadata(*words).code, metadata(*words, "--force").code] == [CLEAN, FAILURE, CLEAN]


def test_an_export_of_a_topic_that_lost_its_beginning_says_so_for_ever(metadata: Metadata, tmp_path: Path) -> None:
    write_log(tmp_path, 0, metadata_batches(copied(1, 0, 9), first_offset=40), first_offset=40)
    file = tmp_path / "export.parquet"

    written = metadata("export", file, "--log-dir", tmp_path)
    found = metadata("segments", "--export", file, "-o", "json")

    assert written.code == found.code == INCOMPLETE
    assert found.codes == ["metadata-truncated"]


def test_an_export_that_is_damaged(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "export.jsonl"
    metadata("export", file, "--log-dir", log_dir)
    file.write_bytes(file.read_bytes()[:-20])

    found = metadata("segments", "--export", file)

    assert found.code == FAILURE
    assert found.err.startswith(f"tieredctl: {file} cannot be read as an export: ")
