"""`tieredctl metadata …` from the shell's side: output, exit codes, and what is said of bad input."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

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
    ["segments"],
    ["segments", "--all"],
    ["history", segment_id(1)],
    ["lookup", "t:0", "--epoch", "0", "--offset", "12"],
    ["epochs", "t:0"],
    ["stats"],
    ["format"],
]


def test_json_is_one_document_of_a_fixed_shape_and_every_other_format_holds_the_same_items(
    metadata: Metadata, log_dir: Path
) -> None:
    for words in COMMANDS:
        where = (*words, "--log-dir", log_dir, "-o")
        found = metadata(*where, "json")
        items = found.document["items"]

        assert (found.code, found.err) == (CLEAN, ""), words
        assert list(found.document) == ["kind", "apiVersion", "source", "summary", "items"]
        assert (found.document["apiVersion"], found.document["source"]["kind"]) == ("tieredctl/v1", "log-dir")
        assert found.document["summary"]["items"] == len(items) > 0, words

        assert metadata(*where, "jsonl").out == "".join(json.dumps(item) + "\n" for item in items), words
        assert yaml.safe_load(metadata(*where, "yaml").out)["items"] == items, words
        rows = csv.DictReader(io.StringIO(metadata(*where, "csv").out))
        for row, item in zip(rows, items, strict=True):
            assert row.keys() >= item.keys(), words
            texts = {name: value for name, value in item.items() if isinstance(value, str)}
            assert {name: row[name] for name in texts} == texts, words
        for output in ("table", "wide"):
            table = metadata(*where, output)
            heading, *lines = table.out.splitlines()
            assert (table.code, len(lines)) == (CLEAN, len(items)), words
            assert re.fullmatch(r"[A-Z-]+( +[A-Z-]+)*", heading.strip()), words
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


def test_segments_of_a_selection(metadata: Metadata, log_dir: Path) -> None:
    selections: list[tuple[tuple[str, str], list[int]]] = [
        (("--topic", "t"), [2, 3]),
        (("--topic-id", TOPIC_ID), [2, 3]),
        (("--state", "copy_segment_started"), [3]),
        (("--state", "DELETE_SEGMENT_STARTED"), []),
        (("--state", "DELETE_SEGMENT_FINISHED"), [1]),
        (("--segment-id", segment_id(2)), [2]),
    ]
    for words, expected in selections:
        found = metadata("segments", *words, "--log-dir", log_dir, "-o", "json")
        items = found.document["items"]
        assert (found.code, [one["segmentId"] for one in items]) == (CLEAN, [*map(segment_id, expected)]), words
    every = metadata("segments", "--all", "--log-dir", log_dir, "-o", "json").document["items"]
    assert {item["segmentId"]: item["state"] for item in every}[segment_id(1)] == "DELETE_SEGMENT_FINISHED"
    assert metadata("segments", "--state", "COPYING", "--log-dir", log_dir).code == USAGE


def test_a_lookup_that_finds_none_tells_why(metadata: Metadata, log_dir: Path) -> None:
    lookups: list[tuple[int, int, list[str], str | None]] = [
        (1, 15, [segment_id(2)], None),
        (7, 0, [], "no segment has leader epoch 7"),
        (1, 25, [], "above 19"),
        (0, 5, [], "below 10"),
        (0, 17, [], "above 14"),
    ]
    for epoch, offset, segments, reason in lookups:
        where = ("lookup", "t:0", "--epoch", str(epoch), "--offset", str(offset), "--log-dir", log_dir)
        found = metadata(*where, "-o", "json")

        assert found.code == (FINDINGS if reason else CLEAN), reason
        assert [item["segmentId"] for item in found.document["items"]] == segments, reason
        assert (reason or "None") in str(found.document["summary"]["reason"])
        assert reason is None or reason in metadata(*where).err


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
    for topic_id in (TOPIC_ID, f"-{TOPIC_ID[1:]}"):
        in_two_words = metadata("partition-of", topic_id, "3").out
        assert metadata("partition-of", f"{topic_id}:3").out == in_two_words
        assert metadata("partition-of", topic_id).code == USAGE


def test_partition_of_a_topic_by_name_is_where_its_events_are(captures: Path, metadata: Metadata) -> None:
    data = captures / "kafka-4.3.1" / "data"
    events = metadata("segments", "--topic", "orders7", "--partition", "1", "--log-dir", data, "-o", "json")
    for where in ("orders7:1", "orders7-1"):
        found = metadata("partition-of", where, "--log-dir", data)

        assert {item["metadataPartition"] for item in events.document["items"]} == {int(found.out)}, where
        assert metadata("partition-of", where).code == USAGE


def test_format_in_the_words_of_kip_405(metadata: Metadata, log_dir: Path) -> None:
    words = ("--style", "kip405", "--property", "print.partition=true", "--property", "print.message.offset=true")

    first = metadata("format", "--log-dir", log_dir, *words).out.splitlines()[0]

    assert first.startswith("partition:0,message-offset:0,type:RemoteLogSegmentMetadata,event-value:{remote-log-")


def test_words_that_mean_nothing_are_refused(metadata: Metadata, log_dir: Path) -> None:
    for line in (
        "format --kafka-version four",
        "format --kafka-version 2.8",
        "format --style kip405 --property print.everything=true",
        "format --metadata-partition 9",
        "format --as-of yesterday",
        f"history {segment_id(99)}",
        *(f"epochs {where}" for where in ("u:0", "t:9", "t", "t:x")),
    ):
        found = metadata(*line.split(), "--log-dir", log_dir)
        assert (found.code, found.out) == (USAGE, ""), line


def test_a_topic_that_was_recreated_must_be_chosen_by_id(metadata: Metadata, tmp_path: Path) -> None:
    write_events(tmp_path, *copied(1, 0, 9), *copied(2, 0, 9, partition=RECREATED))
    words = ("epochs", "t:0", "--log-dir", tmp_path)

    refused = metadata(*words)
    chosen = metadata(*words, "--topic-id", RECREATED_ID, "-o", "json")

    assert refused.code == USAGE
    assert TOPIC_ID in refused.err
    assert RECREATED_ID in refused.err
    assert (chosen.code, chosen.document["items"][0]["topicId"]) == (CLEAN, RECREATED_ID)
