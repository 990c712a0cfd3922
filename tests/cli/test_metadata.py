"""`tieredctl metadata …` from the shell's side: output, exit codes, and what is said of bad input."""

from __future__ import annotations

import csv
import io
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.metadata_command import CLEAN, FINDINGS, NOW, USAGE, Metadata
from tests.metadata_logs import (
    FIRST_TIMESTAMP_MS,
    TOPIC_ID,
    copied,
    segment_id,
    write_events,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text

RECREATED_ID = uuid_text(bytes(range(100, 116)))
RECREATED = TopicIdPartition(RECREATED_ID, "t", 0)


COMMANDS = [
    pytest.param(["segments"], id="segments"),
    pytest.param(["segments", "--all"], id="segments --all"),
    pytest.param(["history", segment_id(1)], id="history"),
    pytest.param(["lookup", "t:0", "--epoch", "0", "--offset", "12"], id="lookup"),
    pytest.param(["epochs", "t:0"], id="epochs"),
    pytest.param(["stats"], id="stats"),
    pytest.param(["format"], id="format"),
]


@pytest.mark.parametrize("words", COMMANDS)
def test_json_is_one_document_of_a_fixed_shape(metadata: Metadata, log_dir: Path, words: list[str]) -> None:
    found = metadata(*words, "--log-dir", log_dir, "-o", "json")

    assert found.code == CLEAN
    assert list(found.document) == ["kind", "apiVersion", "source", "summary", "items"]
    assert found.document["apiVersion"] == "tieredctl/v1"
    assert found.document["source"]["kind"] == "log-dir"
    assert found.document["summary"]["items"] == len(found.document["items"]) > 0
    assert found.err == ""


@pytest.mark.parametrize("words", COMMANDS)
def test_every_other_format_holds_the_same_items(metadata: Metadata, log_dir: Path, words: list[str]) -> None:
    items = metadata(*words, "--log-dir", log_dir, "-o", "json").document["items"]

    lines = metadata(*words, "--log-dir", log_dir, "-o", "jsonl").out
    document = metadata(*words, "--log-dir", log_dir, "-o", "yaml").out
    rows = metadata(*words, "--log-dir", log_dir, "-o", "csv").out

    assert lines == "".join(json.dumps(item) + "\n" for item in items)
    assert yaml.safe_load(document)["items"] == items
    table = list(csv.DictReader(io.StringIO(rows)))
    assert len(table) == len(items)
    for row, item in zip(table, items, strict=True):
        assert row.keys() >= item.keys()
        assert {name: row[name] for name in item if isinstance(item[name], str)} == {
            name: value for name, value in item.items() if isinstance(value, str)
        }


@pytest.mark.parametrize("words", COMMANDS)
@pytest.mark.parametrize("output", ["table", "wide"])
def test_tables_have_a_heading_and_a_line_an_item(
    metadata: Metadata, log_dir: Path, words: list[str], output: str
) -> None:
    count = len(metadata(*words, "--log-dir", log_dir, "-o", "json").document["items"])

    found = metadata(*words, "--log-dir", log_dir, "-o", output)

    assert found.code == CLEAN
    heading, *lines = found.out.splitlines()
    assert re.fullmatch(r"[A-Z-]+( +[A-Z-]+)*", heading.strip())
    assert len(lines) == count


def test_nobody_who_is_quiet_is_told_anything(metadata: Metadata, log_dir: Path) -> None:
    assert metadata("stats", "--log-dir", log_dir, "--quiet").err == ""


def test_segments_in_kafkas_names(metadata: Metadata, log_dir: Path) -> None:
    items = metadata("segments", "--log-dir", log_dir, "-o", "json").document["items"]

    assert items[0] == {
        "topic": "t",
        "topicId": TOPIC_ID,
        "partition": 0,
        "segmentId": segment_id(2),
        "startOffset": 10,
        "endOffset": 19,
        "maxTimestampMs": FIRST_TIMESTAMP_MS,
        "segmentLeaderEpochs": [{"leaderEpoch": 0, "offset": 10}, {"leaderEpoch": 1, "offset": 15}],
        "segmentSizeInBytes": 1000,
        "txnIdxEmpty": False,
        "brokerId": 1,
        "eventTimestampMs": FIRST_TIMESTAMP_MS,
        "state": "COPY_SEGMENT_FINISHED",
        "customMetadata": None,
        "metadataPartition": 0,
        "metadataOffset": 3,
    }
    assert [item["segmentId"] for item in items] == [segment_id(2), segment_id(3)]


def test_segments_that_were_deleted_are_shown_on_request(metadata: Metadata, log_dir: Path) -> None:
    items = metadata("segments", "--all", "--log-dir", log_dir, "-o", "json").document["items"]

    assert {item["segmentId"]: item["state"] for item in items}[segment_id(1)] == "DELETE_SEGMENT_FINISHED"


def test_segments_in_one_state(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("segments", "--state", "copy_segment_started", "--log-dir", log_dir, "-o", "json")

    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(3)]
    assert metadata("segments", "--state", "COPYING", "--log-dir", log_dir).code == USAGE


def test_segments_that_were_deleted_are_shown_where_that_state_is_asked_for(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("segments", "--state", "DELETE_SEGMENT_FINISHED", "--log-dir", log_dir, "-o", "json")

    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(1)]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "t"], 2),
        (["--topic-id", TOPIC_ID], 2),
        (["--state", "DELETE_SEGMENT_STARTED"], 0),
        (["--segment-id", segment_id(2)], 1),
    ],
)
def test_segments_of_a_selection(metadata: Metadata, log_dir: Path, words: list[str], expected: int) -> None:
    found = metadata("segments", *words, "--log-dir", log_dir, "-o", "json")

    assert len(found.document["items"]) == expected
    assert found.code == CLEAN


def test_a_lookup_that_finds_the_segment(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("lookup", "t:0", "--epoch", "1", "--offset", "15", "--log-dir", log_dir, "-o", "json")

    assert found.code == CLEAN
    assert [item["segmentId"] for item in found.document["items"]] == [segment_id(2)]
    assert found.document["summary"]["reason"] is None


@pytest.mark.parametrize(
    ("epoch", "offset", "reason"),
    [
        (7, 0, "no segment has leader epoch 7"),
        (1, 25, "above 19"),
        (0, 5, "below 10"),
        (0, 17, "above 14"),
    ],
)
def test_a_lookup_that_finds_none_tells_why(
    metadata: Metadata, log_dir: Path, epoch: int, offset: int, reason: str
) -> None:
    where = ("lookup", "t:0", "--epoch", epoch, "--offset", offset, "--log-dir", log_dir)

    found = metadata(*map(str, where), "-o", "json")
    told = metadata(*map(str, where))

    assert found.code == told.code == FINDINGS
    assert found.document["items"] == []
    assert reason in found.document["summary"]["reason"]
    assert reason in told.err


def test_epochs_show_gaps_and_overlaps(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 20, 29), *copied(3, 25, 27))

    (item,) = metadata("epochs", "t:0", "--log-dir", tmp_path, "-o", "json").document["items"]

    assert item["gaps"] == [[10, 19]]
    assert item["overlaps"] == [[25, 27]]
    assert item["highestOffsetForEpoch"] == 29


def test_what_is_stuck_needs_attention(metadata: Metadata, log_dir: Path, tmp_path: Path) -> None:
    metrics = tmp_path / "metrics.prom"

    found = metadata("stuck", "--log-dir", log_dir, *NOW, "-o", "json", "--metrics-file", metrics)

    assert found.code == FINDINGS
    (item,) = found.document["items"]
    assert (item["code"], item["evidence"]["segmentId"]) == ("copy-stuck", segment_id(3))
    assert item["evidence"]["ageMs"] == 2 * 3_600_000
    assert re.fullmatch(r"copy started 2h ago by broker \d+ and never ended", item["message"])
    assert 'tieredctl_findings{code="copy-stuck",command="metadata stuck",severity="warning"} 1' in metrics.read_text()
    assert 'tieredctl_exit_code{command="metadata stuck"} 3' in metrics.read_text()


def test_what_is_young_is_not_stuck(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("stuck", "--log-dir", log_dir, *NOW, "--older-than", "3h", "-o", "json")

    assert (found.code, found.document["items"]) == (CLEAN, [])


def test_partition_of_needs_no_metadata(metadata: Metadata) -> None:
    assert metadata("partition-of", TOPIC_ID, "3").out == "49\n"
    assert metadata("partition-of", TOPIC_ID, "3", "--metadata-partitions", "5").out == "4\n"
    assert metadata("partition-of", "orders", "3").code == USAGE


@pytest.mark.parametrize("topic_id", [TOPIC_ID, f"-{TOPIC_ID[1:]}"])
def test_partition_of_takes_a_partition_as_other_commands_do(topic_id: str, metadata: Metadata) -> None:
    in_two_words = metadata("partition-of", topic_id, "3").out

    assert metadata("partition-of", f"{topic_id}:3").out == in_two_words
    assert metadata("partition-of", topic_id).err.startswith("tieredctl: No PARTITION was given.")


@pytest.mark.parametrize("where", ["orders7:1", "orders7-1"])
def test_partition_of_a_topic_by_name_is_where_its_events_are(where: str, captures: Path, metadata: Metadata) -> None:
    data = captures / "kafka-4.3.1" / "data"
    events = metadata("segments", "--topic", "orders7", "--partition", "1", "--log-dir", data, "-o", "json")

    found = metadata("partition-of", where, "--log-dir", data)

    assert {item["metadataPartition"] for item in events.document["items"]} == {int(found.out)}
    assert metadata("partition-of", where).err.startswith("tieredctl: The id of topic orders7 is looked up in the ")


def test_history_of_an_unknown_segment(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("history", segment_id(99), "--log-dir", log_dir)

    assert found.code == USAGE
    assert segment_id(99) in found.err


def test_format_in_the_words_of_kip_405(metadata: Metadata, log_dir: Path) -> None:
    words = ("--style", "kip405", "--property", "print.partition=true", "--property", "print.message.offset=true")

    first = metadata("format", "--log-dir", log_dir, *words).out.splitlines()[0]

    assert first.startswith("partition:0,message-offset:0,type:RemoteLogSegmentMetadata,event-value:{remote-log-")


@pytest.mark.parametrize(
    "words",
    [
        ["--kafka-version", "four"],
        ["--kafka-version", "2.8"],
        ["--style", "kip405", "--property", "print.everything=true"],
        ["--metadata-partition", "9"],
        ["--as-of", "yesterday"],
    ],
)
def test_format_with_words_that_mean_nothing(metadata: Metadata, log_dir: Path, words: list[str]) -> None:
    found = metadata("format", "--log-dir", log_dir, *words)

    assert (found.code, found.out) == (USAGE, "")


def test_a_topic_that_was_recreated_must_be_chosen_by_id(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 0, 9, partition=RECREATED))
    words = ("epochs", "t:0", "--log-dir", tmp_path)

    refused = metadata(*words)
    chosen = metadata(*words, "--topic-id", RECREATED_ID, "-o", "json")

    assert refused.code == USAGE
    assert TOPIC_ID in refused.err
    assert RECREATED_ID in refused.err
    assert "--topic-id" in refused.err
    assert (chosen.code, chosen.document["items"][0]["topicId"]) == (CLEAN, RECREATED_ID)


def test_statistics_are_reported_in_a_sentence_next_to_the_table(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("stats", "--log-dir", log_dir)

    assert found.err.startswith("7 events, 4 of them dead, 2 live segments; ")


def test_a_reader_that_goes_away_is_not_a_failure(log_dir: Path) -> None:
    command = f"{sys.executable} -m tieredctl metadata format --log-dir {log_dir} | head -n 1; exit ${{PIPESTATUS[0]}}"

    completed = subprocess.run(["bash", "-c", command], capture_output=True, check=False)

    assert (completed.returncode, completed.stderr) == (0, b"")
    assert completed.stdout.count(b"\n") == 1


def test_the_process_says_its_exit_code_and_what_to_do(tmp_path: Path) -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tieredctl", "metadata", "segments", "--log-dir", str(tmp_path / "absent")],
        capture_output=True,
        text=True,
        check=False,
    )

    assert completed.returncode == USAGE
    assert completed.stdout == ""
    said, hint = completed.stderr.splitlines()
    assert said.startswith("tieredctl: There is no ")
    assert hint.startswith("  ")
