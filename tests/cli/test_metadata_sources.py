"""Where `tieredctl metadata …` reads: log directories, replicas, points in the past and exports, sound and damaged."""

from __future__ import annotations

import os
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
from tieredctl.model.ids import TopicIdPartition

OF_METADATA_PARTITION_0 = TopicIdPartition(TOPIC_ID, "t", 2)
"""By Kafka's partitioner, of two; t-0 is of the other one."""


def test_what_is_no_log_directory_is_refused(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    empty, leading_nowhere, file = tmp_path / "empty", tmp_path / "link", tmp_path / "file"
    for folder in (empty, leading_nowhere):
        folder.mkdir()
    file.touch()
    (leading_nowhere / "__remote_log_metadata-0").symlink_to(tmp_path / "gone")

    for place in (tmp_path / "absent", file, empty, leading_nowhere):
        found = metadata("segments", "--log-dir", place)
        assert (found.code, found.out, "Traceback" in found.err) == (USAGE, "", False), place
    assert metadata("segments").code == metadata("segments", "--log-dir", log_dir, "--export", "x.jsonl").code == USAGE


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


def test_the_state_at_an_earlier_point(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    """Both after the fourth event: record 3 was written three seconds after the first."""
    (tmp_path / "offsets").write_text("0\n1\n0 3\n")
    for as_of in (tmp_path / "offsets", str(FIRST_TIMESTAMP_MS + 3_000)):
        found = metadata("segments", "--log-dir", log_dir, "--as-of", as_of, "-o", "json")

        assert [item["segmentId"] for item in found.document["items"]] == [segment_id(1), segment_id(2)]
        assert {item["state"] for item in found.document["items"]} == {"COPY_SEGMENT_FINISHED"}


def test_a_point_is_a_time_written_for_people_or_a_file_of_offsets(
    metadata: Metadata, log_dir: Path, tmp_path: Path
) -> None:
    found = metadata("format", "--log-dir", log_dir, "--as-of", "2023-11-14T22:13:20Z")
    (tmp_path / "offsets").write_text("these are no offsets\n")

    assert found.out.startswith("partition: 0, offset: 0, ")
    assert found.out.count("\n") == 1
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


def test_folders_that_are_on_their_way_out_are_passed_over(metadata: Metadata, log_dir: Path) -> None:
    (log_dir / "__remote_log_metadata-0" / f"{5:020d}.log.deleted").write_bytes(b"gone")
    for kind in ("future", "stray", "delete"):
        passing = log_dir / f"__remote_log_metadata-0.{'0' * 32}-{kind}"
        shutil.copytree(log_dir / "__remote_log_metadata-0", passing)

        found = metadata("segments", "--log-dir", log_dir, "-o", "json")

        assert (found.code, found.codes) == (CLEAN, ["folder-passed-over"] * 2), kind
        assert {finding["severity"] for finding in found.document["summary"]["findings"]} == {"info"}, kind
        assert len(found.document["items"]) == 2, kind
        shutil.rmtree(passing)


def test_a_log_that_lost_its_beginning_makes_every_answer_incomplete(metadata: Metadata, tmp_path: Path) -> None:
    write_log(tmp_path, 0, metadata_batches(copied(1, 0, 9), first_offset=40), first_offset=40)

    for words in (["segments"], ["segments", "--all"], ["stats"], ["format"]):
        found = metadata(*words, "--log-dir", tmp_path, "-o", "json")
        assert found.code == INCOMPLETE
        assert found.codes == ["metadata-truncated"]
    file = tmp_path / "export.parquet"
    assert metadata("export", file, "--log-dir", tmp_path).code == INCOMPLETE
    exported = metadata("segments", "--export", file, "-o", "json")
    assert (exported.code, exported.codes) == (INCOMPLETE, ["metadata-truncated"])
    assert metadata("lookup", "t:0", "--epoch", "0", "--offset", "1", "--log-dir", tmp_path).code == INCOMPLETE


def test_the_brokers_checkpoint_tells_a_beginning_that_no_file_name_does(metadata: Metadata, log_dir: Path) -> None:
    (log_dir / "log-start-offset-checkpoint").write_text("0\n1\n__remote_log_metadata 0 2\n")

    found = metadata("format", "--log-dir", log_dir, "-o", "json")

    assert found.code == INCOMPLETE
    assert found.document["items"][0]["metadataOffset"] == 2


def test_an_altered_byte_is_told_with_its_place_and_the_rest_is_read(metadata: Metadata, tmp_path: Path) -> None:
    for count in (50, 3_500):  # a small log and a large one
        batches = metadata_batches([event for number in range(1, count) for event in copied(number, number, number)])
        middle = len(batches) // 2
        batches[middle] = batches[middle][:-2] + bytes((batches[middle][-2] ^ 1,)) + batches[middle][-1:]
        path = write_log(tmp_path / str(count), 0, batches)

        found = metadata("format", "--log-dir", tmp_path / str(count), "-o", "json")

        (finding,) = found.document["summary"]["findings"]
        assert (found.code, finding["code"]) == (CORRUPTION, "batch-corrupt")
        assert finding["evidence"] == {
            "metadataPartition": 0,
            "file": str(path),
            "position": sum(map(len, batches[:middle])),
            "offsets": [middle, middle],
        }
        assert len(found.document["items"]) == len(batches) - 1


def test_a_torn_tail_is_normal_while_a_broker_writes_and_damage_in_a_file_that_was_closed(
    metadata: Metadata, tmp_path: Path
) -> None:
    batches = metadata_batches([*copied(1, 0, 9), *copied(2, 10, 19)])
    write_log(tmp_path, 0, [*batches[:-1], batches[-1][:-7]])

    found = metadata("segments", "--log-dir", tmp_path, "-o", "json")
    write_log(tmp_path, 0, metadata_batches(copied(3, 20, 29), first_offset=4), first_offset=4)
    closed = metadata("segments", "--log-dir", tmp_path, "-o", "json")

    assert (found.code, found.codes) == (CLEAN, [])
    assert [item["state"] for item in found.document["items"]] == ["COPY_SEGMENT_FINISHED", "COPY_SEGMENT_STARTED"]
    assert (closed.code, closed.codes) == (CORRUPTION, ["batch-corrupt"])


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


def test_an_export_that_is_damaged(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    metadata("export", tmp_path / "export.jsonl", "--log-dir", log_dir)
    os.truncate(tmp_path / "export.jsonl", (tmp_path / "export.jsonl").stat().st_size - 20)

    assert metadata("segments", "--export", tmp_path / "export.jsonl").code == FAILURE
