"""`diskless offsets`, `batches` and `files`: questions to KIP-1164's coordinators, answered by their logs."""

from __future__ import annotations

import resource
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tieredctl_proposals.model.diskless_records import RecordsDeleted

from tests.cli.command_line import Outcome, Tieredctl, environment
from tests.diskless.coordinator_logs import NOON_MS, committed, created, key, write_log, write_pruned_log
from tests.diskless.scanned_coordinators import DEAD, KNOWN_TO_THE_OTHER, LIVE, UNKNOWN, Cluster
from tests.diskless.test_doubtful_coordinator_logs import INCOMPLETE
from tests.diskless.test_pruned_coordinator_logs import DOUBTS, EARLY
from tests.diskless_records import COMMITTED_MS, TOPIC_ID

ASKED = (("offsets",), ("batches", "t:0"), ("batches", "t:1"), ("files", LIVE, KNOWN_TO_THE_OTHER, DEAD, UNKNOWN))


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def ask(cluster: Cluster, tieredctl: Tieredctl, *words: str, coordinators: int | None = 2) -> Outcome:
    count = () if coordinators is None else ("--coordinators", str(coordinators))
    output = () if "-o" in words else ("-o", "json")
    return tieredctl("diskless", *words, "--log-dir", cluster.logs, *count, *output)


def test_offsets_are_log_starts_and_high_watermarks(cluster: Cluster, tieredctl: Tieredctl) -> None:
    outcome = ask(cluster, tieredctl, "offsets", "--time", str(COMMITTED_MS - 5))

    first, second = outcome.document()["items"]
    assert outcome.exit_code == 0
    assert first == {
        "topic": "t",
        "topicId": TOPIC_ID,
        "partition": 0,
        "metadataPartition": 0,
        "earliest": 10,
        "earliestLocal": 10,
        "latestTiered": None,
        "latest": 20,
        "maxTimestampOffset": 19,
        "offsetAtTime": 10,
        "timestampAtTime": COMMITTED_MS - 5,
        "errors": {},
    }
    assert (second["partition"], second["metadataPartition"], second["earliest"], second["latest"]) == (1, 1, 0, 5)
    late = ask(cluster, tieredctl, "offsets", "--time", "2040-01-01T00:00Z").document()["items"]
    assert {row["offsetAtTime"] for row in late} == {None}


def test_a_partition_of_which_nothing_is_left_has_a_log_start_and_no_newest_batch(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    gone = RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=20)
    write_log(cluster.logs, 0, [(NOON_MS + 2, gone)])

    (row,) = ask(cluster, tieredctl, "offsets", "--partition", "0").document()["items"]
    batches = ask(cluster, tieredctl, "batches", "t:0")

    assert (row["earliest"], row["latest"], row["maxTimestampOffset"], row["errors"]) == (20, 20, None, {})
    assert (batches.exit_code, batches.document()["items"]) == (0, [])


def test_batches_begin_with_the_one_that_has_the_offset(cluster: Cluster, tieredctl: Tieredctl) -> None:
    write_log(cluster.logs, 0, [(NOON_MS + 2, committed(7, 20, 29)), (NOON_MS + 3, committed(8, 30, 39))])

    def bases(*words: str) -> list[int]:
        outcome = ask(cluster, tieredctl, "batches", *words)
        assert outcome.exit_code == 0, words
        return [batch["baseOffset"] for batch in outcome.document()["items"]]

    assert bases("t:0") == [10, 20, 30]
    assert bases("t:0@25") == [20, 30]
    assert bases("t:0@40") == []
    assert bases("t:0", "--max-batches", "2") == [10, 20]
    assert bases("t:0", "--max-bytes", "168") == [10, 20]
    assert bases("t:0@21", "--max-bytes", "1") == [20]
    summary = ask(cluster, tieredctl, "batches", "t:0@25").document()["summary"]
    assert (summary["logStartOffset"], summary["highWatermark"], summary["bytes"]) == (10, 40, 168)


def test_an_offset_that_was_deleted_is_not_found_and_one_to_come_is_unknown(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    deleted, to_come = (ask(cluster, tieredctl, "batches", where) for where in ("t:0@9", "t:0@21"))

    assert (deleted.exit_code, deleted.document()["summary"]["error"]) == (3, "OFFSET_OUT_OF_RANGE")
    assert (to_come.exit_code, to_come.document()["summary"]["error"]) == (5, "OFFSET_NOT_AVAILABLE")
    assert deleted.document()["items"] == to_come.document()["items"] == []


def test_a_file_is_live_while_any_coordinator_has_batches_of_it(cluster: Cluster, tieredctl: Tieredctl) -> None:
    later = [(NOON_MS + 4, committed(9, 20, 29, owners=(0, 1)))]
    write_log(cluster.logs, 0, later)
    write_log(cluster.logs, 1, [(NOON_MS + 4, committed(9, 5, 9, 1, owners=(0, 1)))])
    gone = RecordsDeleted(topic_id=TOPIC_ID, partition=1, log_start_offset=10)
    write_log(cluster.logs, 1, [(NOON_MS + 5, gone)])

    outcome = ask(cluster, tieredctl, "files", LIVE, DEAD, key(9), key(3), UNKNOWN)

    rows = {row["objectKey"]: row for row in outcome.document()["items"]}
    told = {name: (row["hasLiveBatches"], row["error"], row["liveAt"], row["releasedAt"]) for name, row in rows.items()}
    assert outcome.exit_code == 3
    assert told == {
        LIVE: (True, None, [0], []),
        DEAD: (False, None, [], [0]),
        key(9): (True, None, [0], [1]),
        UNKNOWN: (None, "RESOURCE_NOT_FOUND", [], []),
    }
    assert ask(cluster, tieredctl, "files", LIVE, DEAD).exit_code == 0


def test_one_coordinator_is_asked_alone(cluster: Cluster, tieredctl: Tieredctl) -> None:
    rows = ask(cluster, tieredctl, "offsets", "--metadata-partition", "1", coordinators=None)
    files = ask(cluster, tieredctl, "files", LIVE, "--metadata-partition", "1", coordinators=None)
    batches = ask(cluster, tieredctl, "batches", "t:0", "--metadata-partition", "1", coordinators=None)

    assert (rows.exit_code, [row["partition"] for row in rows.document()["items"]]) == (0, [1])
    assert (files.exit_code, files.document()["items"][0]["error"]) == (3, "RESOURCE_NOT_FOUND")
    assert (batches.exit_code, "Coordinator 1's log does not have" in batches.err) == (2, True)


def test_what_no_coordinator_has_is_refused_with_the_nearest_name(cluster: Cluster, tieredctl: Tieredctl) -> None:
    other = ("--topic-id", "A" * 22)
    unlike = (("batches", "T:0"), ("offsets", "--topic", "T"), ("offsets", "--topic", "t", "--topic", "T"))
    for words in unlike:
        outcome = ask(cluster, tieredctl, *words)
        assert (outcome.exit_code, outcome.out) == (2, ""), words
        assert "Did you mean t?" in outcome.err, words
    unknown = (("batches", "t:7"), ("offsets", "--partition", "7"), ("offsets", *other), ("batches", "t:0", *other))
    for question in unknown:
        assert ask(cluster, tieredctl, *question).exit_code == 2, question


def test_pruned_logs_answer_as_whole_ones(cluster: Cluster, tieredctl: Tieredctl) -> None:
    folder = cluster.logs / "__diskless_metadata-0"
    shutil.rmtree(folder)
    write_log(cluster.logs, 0, EARLY)
    expected = [ask(cluster, tieredctl, *words) for words in ASKED]

    for snapshots_after in ((2, 3), (2, 4), (3, 4)):
        shutil.rmtree(folder)
        write_pruned_log(cluster.logs, 0, EARLY, snapshots_after)
        before = {file.name: file.stat().st_mtime_ns for file in folder.iterdir()}
        found = [ask(cluster, tieredctl, *words) for words in ASKED]

        assert [one.exit_code for one in found] == [one.exit_code for one in expected] == [0, 0, 0, 3], snapshots_after
        assert [one.document() for one in found] == [one.document() for one in expected], snapshots_after
        assert {file.name: file.stat().st_mtime_ns for file in folder.iterdir()} == before, "nothing beside the logs"


def _demand_unknown(cluster: Cluster, tieredctl: Tieredctl, broken: int, fault: str) -> None:
    """Of a coordinator whose log is not whole nothing is answered, and what only it may know is unknown."""
    offsets, *batches, files = (ask(cluster, tieredctl, *words) for words in ASKED)

    assert {one.exit_code for one in (offsets, batches[broken], files)} == {5}, fault
    document = offsets.document()
    whole = {one["metadataPartition"] for one in document["summary"]["coordinators"] if one["complete"]}
    assert whole == {1 - broken}, fault
    for row in document["items"]:
        unknown = {"earliest", "earliestLocal", "latestTiered", "latest", "maxTimestampOffset"}
        if row["metadataPartition"] == broken:
            assert row["errors"].keys() == unknown, fault
            assert {row[name] for name in unknown} == {None}, fault
        else:
            assert (row["partition"], row["errors"]) == (1 - broken, {}), fault
    assert batches[broken].document()["items"] == [], fault
    assert len(batches[1 - broken].document()["items"]) == 1, fault
    live = (LIVE, KNOWN_TO_THE_OTHER)[1 - broken]
    for row in files.document()["items"]:
        known = (True, None) if row["objectKey"] == live else (None, "COORDINATOR_NOT_AVAILABLE")
        assert (row["hasLiveBatches"], row["error"]) == known, (fault, row)


def test_by_a_log_that_is_not_whole_nothing_is_answered(tmp_path: Path, tieredctl: Tieredctl) -> None:
    for fault, (break_it, _) in INCOMPLETE.items():
        cluster = Cluster(tmp_path / fault)
        break_it(cluster)
        _demand_unknown(cluster, tieredctl, 0 if fault == "damaged" else 1, fault)


def test_by_a_snapshot_that_does_not_lead_to_the_log_nothing_is_answered(tmp_path: Path, tieredctl: Tieredctl) -> None:
    for fault, (break_it, _) in DOUBTS.items():
        cluster = Cluster(tmp_path / fault)
        shutil.rmtree(cluster.logs / "__diskless_metadata-0")
        write_pruned_log(cluster.logs, 0, EARLY, (2, 3))
        break_it(cluster)
        _demand_unknown(cluster, tieredctl, 0, fault)


def test_without_the_number_of_coordinators_answers_are_incomplete(cluster: Cluster, tieredctl: Tieredctl) -> None:
    for words in ASKED:
        assert ask(cluster, tieredctl, *words, coordinators=None).exit_code == 5, words
    (row,) = ask(cluster, tieredctl, "files", UNKNOWN, coordinators=None).document()["items"]
    assert row["error"] == "COORDINATOR_NOT_AVAILABLE"


def test_which_of_two_coordinators_has_a_partition_is_not_guessed(cluster: Cluster, tieredctl: Tieredctl) -> None:
    write_log(cluster.logs, 1, [(NOON_MS, created(0)), (NOON_MS, committed(6, 0, 99, owners=(1,)))])

    offsets, batches = ask(cluster, tieredctl, "offsets"), ask(cluster, tieredctl, "batches", "t:0")
    chosen = ask(cluster, tieredctl, "batches", "t:0", "--metadata-partition", "1")

    assert offsets.exit_code == 5
    assert [row["latest"] for row in offsets.document()["items"] if row["partition"] == 0] == [20, 100]
    assert (batches.exit_code, "--metadata-partition" in batches.err) == (2, True)
    assert (chosen.exit_code, chosen.document()["summary"]["highWatermark"]) == (0, 100)


def test_every_output_has_the_answers(cluster: Cluster, tieredctl: Tieredctl) -> None:
    for output in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        offsets, batches, _, files = (ask(cluster, tieredctl, *words, "-o", output) for words in ASKED)
        assert TOPIC_ID in offsets.out or output == "table", output
        assert LIVE in batches.out, output
        assert all(name in files.out for name in (LIVE, DEAD, UNKNOWN)), output


def test_wrong_places_and_words_are_refused(cluster: Cluster, tieredctl: Tieredctl) -> None:
    logs = ("--log-dir", cluster.logs)
    for words in (
        *(words for words in ASKED),
        ("offsets", *logs, "--metadata-partition", "7"),
        ("offsets", *logs, "--time", "yesterday"),
        ("offsets", *logs, "--time=-1"),
        ("batches", "t", *logs),
        ("batches", "t:0@x", *logs),
        ("batches", "t:0", *logs, "--max-bytes", "0"),
        ("files", *logs),
        ("offsets", "--log-dir", cluster.bucket),
        ("format",),
        ("format", *logs, "--metadata-partition", "7"),
    ):
        outcome = tieredctl("diskless", *words)
        assert (outcome.exit_code, outcome.out) == (2, ""), words


def test_states_are_made_in_the_temporary_folder_and_removed(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "temporary"
    folder.mkdir()
    words = ["diskless", "offsets", "--log-dir", str(cluster.logs), "--coordinators", "2"]

    def run(most_bytes: int) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "tieredctl", *words],
            env=environment(TMPDIR=str(folder)),
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (most_bytes, most_bytes)),
            capture_output=True,
            text=True,
            check=False,
        )

    for most_bytes, code in ((10_000_000, 0), (20_000, 1)):
        done = run(most_bytes)
        assert done.returncode == code, done.stderr
        assert [*folder.iterdir()] == []
    assert f"cannot be written to {folder}" in done.stderr
