"""`tieredctl metadata …` from the shell's side: output, exit codes, and what is said of bad input."""

from __future__ import annotations

import csv
import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.metadata_logs import (
    COPIED,
    DELETED,
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
from tieredctl.cli.main import run
from tieredctl.model.ids import TopicIdPartition, uuid_text

CLEAN, FAILURE, USAGE, FINDINGS, CORRUPTION, INCOMPLETE = 0, 1, 2, 3, 4, 5
NOW = ("--now", str(FIRST_TIMESTAMP_MS + 2 * 3_600_000))
RECREATED_ID = uuid_text(bytes(range(100, 116)))
RECREATED = TopicIdPartition(RECREATED_ID, "t", 0)


@dataclass(frozen=True)
class Outcome:
    """What a command left: its exit code, and what it wrote."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.out)
        return found

    @property
    def codes(self) -> list[str]:
        """The codes of the findings in the document."""
        return [finding["code"] for finding in self.document["summary"]["findings"]]


@pytest.fixture
def metadata(capfdbinary: pytest.CaptureFixture[bytes]) -> Callable[..., Outcome]:
    """Runs `tieredctl metadata` with these words."""

    def metadata(*words: str | Path) -> Outcome:
        code = run(["metadata", *map(str, words)])
        out, err = capfdbinary.readouterr()
        return Outcome(code, out.decode(), err.decode())

    return metadata


Metadata = Callable[..., Outcome]


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    """A log directory with three segments, one of them deleted."""
    write_events(
        tmp_path,
        *copied(1, 0, 9),
        *copied(2, 10, 19, {0: 10, 1: 15}),
        updated(1, DELETING),
        updated(1, DELETED),
        started(3, 20, 29, {1: 20}),
    )
    return tmp_path


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

    assert [json.loads(line) for line in lines.splitlines()] == items
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


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--topic", "t"], 2),
        (["--topic", "u"], 0),
        (["--topic-id", TOPIC_ID], 2),
        (["--partition", "1"], 0),
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
    assert 'tieredctl_findings{command="StuckSegments",code="copy-stuck",severity="warning"} 1' in metrics.read_text()
    assert 'tieredctl_exit_code{command="StuckSegments"} 3' in metrics.read_text()


def test_what_is_young_is_not_stuck(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("stuck", "--log-dir", log_dir, *NOW, "--older-than", "3h", "-o", "json")

    assert (found.code, found.document["items"]) == (CLEAN, [])


def test_partition_of_needs_no_metadata(metadata: Metadata) -> None:
    assert metadata("partition-of", TOPIC_ID, "3").out == "49\n"
    assert metadata("partition-of", TOPIC_ID, "3", "--metadata-partitions", "5").out == "4\n"
    assert metadata("partition-of", "orders", "3").code == USAGE


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


def test_a_file_is_no_log_directory(metadata: Metadata, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()

    found = metadata("segments", "--log-dir", file)

    assert found.code == USAGE
    assert "is a file" in found.err


def test_a_folder_without_metadata_partitions_is_no_log_directory(metadata: Metadata, tmp_path: Path) -> None:
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


def test_a_file_that_is_no_log_is_corruption(metadata: Metadata, tmp_path: Path) -> None:
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
    write_log(tmp_path / "a", 0, batches[:3])
    write_log(tmp_path / "b", 0, batches)
    write_log(tmp_path / "b", 1, metadata_batches(copied(3, 0, 9, partition=RECREATED)))

    found = metadata("segments", "--log-dir", tmp_path / "a", "--log-dir", tmp_path / "b", "-o", "json")

    assert found.code == CLEAN
    assert len(found.document["items"]) == 3
    assert found.document["source"]["endOffsets"] == {"0": 4, "1": 2}


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

    for words in COMMANDS[:2] + COMMANDS[-2:]:
        found = metadata(*words.values[0], "--log-dir", tmp_path, "-o", "json")  # type: ignore[misc]
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


def test_an_event_that_cannot_be_read_is_told_and_the_rest_is_read(metadata: Metadata, tmp_path: Path) -> None:
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


def test_statistics_are_said_in_a_sentence_beside_the_table(metadata: Metadata, log_dir: Path) -> None:
    found = metadata("stats", "--log-dir", log_dir)

    assert found.err.startswith("7 events, 4 of them dead, 2 live segments; ")


def test_a_reader_that_goes_away_is_no_failure(log_dir: Path) -> None:
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
