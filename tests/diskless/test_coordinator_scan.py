"""`diskless orphans scan --log-dir`: KIP-1164's search for orphan files, by the logs of all coordinators."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_proposals.formats.diskless_records import encode_diskless_record
from tieredctl_proposals.model.diskless_records import (
    DISKLESS_METADATA_TOPIC,
    CommittedBatch,
    DisklessRecord,
    FileCommitted,
    RecordsDeleted,
    TopicDeleted,
)
from tieredctl_proposals.ops.diskless.coordinator_files import read_files
from tieredctl_proposals.ops.diskless.coordinator_logs import CoordinatorLogs
from tieredctl_proposals.ops.diskless.coordinator_scan import CoordinatorScan

from tests.cli.command_line import Tieredctl
from tests.conftest import examples
from tests.diskless.coordinator_logs import HOUR_MS, NOON_MS, batch, committed, created, key, put, write_log
from tests.diskless.scanned_coordinators import (
    DEAD,
    KNOWN_TO_THE_OTHER,
    LIVE,
    LONG_AGO,
    UNKNOWN,
    YOUNG,
    Cluster,
    statuses,
)
from tests.diskless_records import TOPIC_ID, committed_batch, file_committed
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.ops.orphans.live_listing import live_listing
from tieredctl.storage.registry import open_store


@pytest.fixture
def cluster(tmp_path: Path) -> Cluster:
    return Cluster(tmp_path)


def test_orphan_files_are_older_than_the_threshold_and_unknown_to_all(cluster: Cluster, tieredctl: Tieredctl) -> None:
    outcome = cluster.scan(tieredctl)

    assert statuses(outcome) == {
        LIVE: "owned",
        KNOWN_TO_THE_OTHER: "owned",
        DEAD: "in-progress",
        UNKNOWN: "orphan",
        YOUNG: "in-progress",
    }
    assert outcome.exit_code == 3
    (orphan,) = (item for item in outcome.lines() if item["status"] == "orphan")
    assert (orphan["cause"], orphan["size"]) == ("no-metadata", 84)
    assert orphan["evidence"] == {
        "file": None,
        "threshold": "2025-11-21T12:00:00.000Z",
        "oldestLiveFileAt": "2025-11-22T12:00:00.000Z",
    }


def test_what_is_not_older_than_the_threshold_is_counted(cluster: Cluster, tieredctl: Tieredctl) -> None:
    outcome = cluster.scan(tieredctl, "-o", "json")

    assert outcome.document()["summary"]["younger"] == {"objects": 1, "bytes": 84}
    said = "1 object that is not owned, 84 B, is not older than the oldest needed object by --min-age 24h."
    assert said in cluster.scan(tieredctl, "-o", "table").err.replace("\n", " ")


def test_the_threshold_lies_before_the_oldest_live_file_of_all_coordinators(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    threshold_ms = NOON_MS - 24 * HOUR_MS
    put(cluster.bucket, key(8), threshold_ms - 1000)
    put(cluster.bucket, key(9), threshold_ms)

    found = statuses(cluster.scan(tieredctl))

    assert (found[key(8)], found[key(9)]) == ("orphan", "in-progress")


def test_adding_the_grace_period_as_the_proposal_has_it_would_take_an_upload_for_an_orphan(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    just_uploaded = NOON_MS + 3 * HOUR_MS  # after all commits, and before the oldest live file and a day
    put(cluster.bucket, key(8), just_uploaded)

    assert statuses(cluster.scan(tieredctl))[key(8)] == "in-progress"


@pytest.mark.parametrize("is_live", [True, False])
def test_coordinators_whose_clocks_are_days_ahead_make_no_upload_look_old(
    is_live: bool, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    ahead_ms = NOON_MS + 72 * HOUR_MS
    gone = RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=10)
    records = [created(), committed(1, 0, 9), *(() if is_live else (gone,))]
    write_log(tmp_path / "logs", 0, [(ahead_ms, record) for record in records])
    put(tmp_path / "bucket", LIVE, NOON_MS - HOUR_MS)
    put(tmp_path / "bucket", YOUNG, NOON_MS)
    places = ("--log-dir", tmp_path / "logs", "--store", f"file:{tmp_path / 'bucket'}", "--coordinators", "1")

    outcome = tieredctl("diskless", "orphans", "scan", *places, "-o", "jsonl")

    assert statuses(outcome)[YOUNG] == "in-progress"


def test_a_live_files_upload_counts_where_its_commit_is_later(cluster: Cluster, tieredctl: Tieredctl) -> None:
    put(cluster.bucket, LIVE, LONG_AGO + 23 * HOUR_MS)

    assert statuses(cluster.scan(tieredctl))[UNKNOWN] == "in-progress"


def test_a_coordinator_without_live_files_holds_the_threshold_at_its_newest_record(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    write_log(cluster.logs, 2, [(LONG_AGO, created(2))])

    assert statuses(cluster.scan(tieredctl, coordinators=3))[UNKNOWN] == "in-progress"


@pytest.mark.parametrize("coordinator", [0, 1])
def test_what_is_older_than_a_coordinators_log_may_have_been_in_one_that_was_lost(
    coordinator: int, cluster: Cluster, tieredctl: Tieredctl
) -> None:
    """As where the topic was created again, or one of its partitions came back empty: what is left looks whole."""
    shutil.rmtree(cluster.logs / f"__diskless_metadata-{coordinator}")
    partition, owners = coordinator, (coordinator,)
    begins_ms = NOON_MS - 27 * HOUR_MS
    records = [(begins_ms, created(partition)), (NOON_MS, committed(1 + coordinator, 0, 4, partition, owners=owners))]
    write_log(cluster.logs, coordinator, records)
    put(cluster.bucket, key(8), begins_ms + 4 * 60_000)  # as far as clocks may differ
    put(cluster.bucket, key(9), begins_ms + 6 * 60_000)

    outcome = cluster.scan(tieredctl)

    found = {item["key"]: item for item in outcome.lines()}
    assert [found[name]["status"] for name in (UNKNOWN, key(8), key(9))] == ["unknown", "unknown", "orphan"]
    assert found[UNKNOWN]["evidence"] == {
        "file": None,
        "logsBeginAt": "2025-11-21T09:00:00.000Z",
        "why": "it may be older than a coordinator's log: one that was lost may have had its file",
    }


def test_a_log_whose_first_record_has_no_time_leaves_nothing_orphaned(cluster: Cluster, tieredctl: Tieredctl) -> None:
    write_log(cluster.logs, 2, [(-1, created(2)), (NOON_MS, committed(7, 0, 9, 2, owners=(2,)))])
    put(cluster.bucket, key(7), NOON_MS)

    found = statuses(cluster.scan(tieredctl, coordinators=3))

    assert "orphan" not in found.values()


def test_what_brokers_would_not_write_or_is_elsewhere_is_not_orphaned(cluster: Cluster, tieredctl: Tieredctl) -> None:
    put(cluster.bucket, "diskless/README", LONG_AGO)
    put(cluster.bucket, "other/" + key(9).rpartition("/")[2], LONG_AGO)

    found = statuses(cluster.scan(tieredctl))

    assert found["diskless/README"] == "unknown"
    assert found["other/" + key(9).rpartition("/")[2]] == "foreign"


def test_a_deleted_topics_files_are_known(cluster: Cluster, tieredctl: Tieredctl) -> None:
    write_log(cluster.logs, 1, [(NOON_MS + 3 * HOUR_MS, TopicDeleted(topic_id=TOPIC_ID))])

    assert statuses(cluster.scan(tieredctl))[KNOWN_TO_THE_OTHER] == "in-progress"


def test_a_file_of_both_is_needed_as_long_as_one_of_them_has_live_batches(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    later = NOON_MS + 3 * HOUR_MS
    write_log(cluster.logs, 0, [(later, committed(7, 20, 29, owners=(0, 1)))])
    write_log(cluster.logs, 1, [(later, committed(7, 5, 9, 1, owners=(0, 1)))])
    put(cluster.bucket, key(7), later)
    gone = RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=30)
    write_log(cluster.logs, 0, [(later + 1, gone)])

    by_one = statuses(cluster.scan(tieredctl))[key(7)]
    write_log(cluster.logs, 1, [(later + 2, TopicDeleted(topic_id=TOPIC_ID))])
    by_none = statuses(cluster.scan(tieredctl))[key(7)]

    assert (by_one, by_none) == ("owned", "in-progress")


def test_a_topic_that_is_created_again_under_its_id_has_none_of_its_files(
    cluster: Cluster, tieredctl: Tieredctl
) -> None:
    later = NOON_MS + 3 * HOUR_MS
    again: list[DisklessRecord] = [TopicDeleted(topic_id=TOPIC_ID), created(1), committed(6, 0, 9, 1, owners=(1,))]
    write_log(cluster.logs, 1, [(later, record) for record in again])
    put(cluster.bucket, key(6), later)

    found = statuses(cluster.scan(tieredctl))

    assert (found[KNOWN_TO_THE_OTHER], found[key(6)]) == ("in-progress", "owned")


def test_what_a_coordinator_promises_and_the_bucket_lacks_is_lost(cluster: Cluster, tieredctl: Tieredctl) -> None:
    (cluster.bucket / LIVE).unlink()

    outcome = cluster.scan(tieredctl, "-o", "json")

    assert outcome.exit_code == 4
    (missing,) = (one for one in outcome.document()["summary"]["findings"] if one["code"] == "object-missing")
    assert missing["subject"] == LIVE


def test_what_a_coordinator_deletes_meanwhile_is_not_lost(cluster: Cluster) -> None:
    (cluster.bucket / LIVE).unlink()
    store = open_store(f"file:{cluster.bucket}", {})
    source = LogDirectories([cluster.logs], DISKLESS_METADATA_TOPIC)
    with live_listing(store) as listing:
        scan = CoordinatorScan(store, listing, source, [cluster.logs], 2, 24 * HOUR_MS)
        deleted = RecordsDeleted(topic_id=TOPIC_ID, partition=0, log_start_offset=20)

        write_log(cluster.logs, 0, [(NOON_MS + 2, deleted)])
        scan.run()

    assert "object-missing" not in {finding.code for finding in scan.findings}


def test_another_bucket_is_refused(cluster: Cluster, tieredctl: Tieredctl, tmp_path: Path) -> None:
    put(tmp_path / "other", UNKNOWN, LONG_AGO)
    places = ("--log-dir", str(cluster.logs), "--store", f"file:{tmp_path / 'other'}", "--coordinators", "2")

    outcome = tieredctl("diskless", "orphans", "scan", *places)

    assert outcome.exit_code == 2
    assert "none of the 2 objects that the coordinators promise" in outcome.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--log-dir", "{logs}", "--control-plane", "service=x"), "exclude each other"),
        (("--coordinators", "2"), "--coordinators is for --log-dir"),
        (("--log-dir", "{bucket}"), "no __diskless_metadata partition"),
        (("--log-dir", "{logs}/none"), "There is no"),
        (("--log-dir", "{logs}", "--coordinators", "0"), "Give a whole number from 1 to 10000"),
    ],
)
def test_wrong_places_are_refused(words: tuple[str, ...], message: str, cluster: Cluster, tieredctl: Tieredctl) -> None:
    given_words = [word.format(logs=cluster.logs, bucket=cluster.bucket) for word in words]

    outcome = tieredctl("diskless", "orphans", "scan", *given_words, "--store", f"file:{cluster.bucket}")

    assert outcome.exit_code == 2
    assert message in outcome.err


def test_nothing_is_planned_or_removed_by_logs(cluster: Cluster, tieredctl: Tieredctl) -> None:
    """They cannot be asked again just before a removal."""
    before = sorted(cluster.bucket.rglob("*"))
    plan = cluster.logs.parent / "plan"
    places = ("--log-dir", cluster.logs, "--store", f"file:{cluster.bucket}", "--cluster-id", "A" * 22)
    for words in (("plan", "--to", plan), ("apply", plan, "--yes"), ("purge", "--older-than", "14d", "--yes")):
        outcome = tieredctl("diskless", "orphans", *words, *places)

        assert outcome.exit_code == 2, words
        assert "no option --log-dir" in outcome.err, words
        assert not plan.exists(), words
        assert sorted(cluster.bucket.rglob("*")) == before, words


@pytest.mark.parametrize("output", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_every_output_has_the_same_verdicts(output: str, cluster: Cluster, tieredctl: Tieredctl) -> None:
    outcome = cluster.scan(tieredctl, "-o", output)

    assert outcome.exit_code == 3
    assert "orphan" in outcome.out
    assert "1 orphaned object, 84 B" in outcome.out + outcome.err


def test_a_key_that_a_coordinator_promises_cannot_write_to_a_terminal(tmp_path: Path, tieredctl: Tieredctl) -> None:
    hostile = file_committed("diskless/\x1b]0;x\x07\n", committed_batch(0, 0, 9))
    write_log(tmp_path / "logs", 0, [(NOON_MS, created()), (NOON_MS, committed(1, 0, 9)), (NOON_MS, hostile)])
    put(tmp_path / "bucket", LIVE, NOON_MS)
    places = ("--log-dir", tmp_path / "logs", "--store", f"file:{tmp_path / 'bucket'}", "--coordinators", "1")

    outcome = tieredctl("diskless", "orphans", "scan", *places)

    assert outcome.exit_code == 5  # its offsets are not the next ones, either
    assert "\x1b" not in outcome.out + outcome.err


def one_by_one(records: list[DisklessRecord]) -> dict[str, list[CommittedBatch]]:
    """What a state machine with a row for each batch has in the end: the live batches of each file."""
    files: dict[str, list[CommittedBatch]] = {}
    for record in records:
        if isinstance(record, FileCommitted):
            files[record.object_key] = list(record.batches)
        elif isinstance(record, RecordsDeleted):
            for batches in files.values():
                gone = (record.topic_id, record.partition)
                start = record.log_start_offset
                batches[:] = [one for one in batches if (one[:2]) != gone or one.last_offset >= start]
        elif isinstance(record, TopicDeleted):
            for batches in files.values():
                batches[:] = [one for one in batches if one.topic_id != record.topic_id]
    return files


@st.composite
def histories(draw: st.DrawFn) -> list[DisklessRecord]:
    """Records of one coordinator, none of which contradicts another."""
    records: list[DisklessRecord] = [created(0), created(1)]
    ends, starts = [0, 0], [0, 0]
    for number in range(draw(st.integers(0, 12))):
        if draw(st.booleans()):
            batches = []
            for partition in draw(st.lists(st.sampled_from([0, 1]), max_size=2, unique=True)):
                for count in draw(st.lists(st.integers(1, 9), min_size=1, max_size=2)):
                    first, ends[partition] = ends[partition], ends[partition] + count
                    batches.append(committed_batch(partition, first, ends[partition] - 1))
            records.append(
                file_committed(key(number), *batches) if batches else file_committed(key(number), batches=())
            )
        else:
            partition = draw(st.sampled_from([0, 1]))
            starts[partition] = draw(st.integers(starts[partition], ends[partition]))
            records.append(RecordsDeleted(topic_id=TOPIC_ID, partition=partition, log_start_offset=starts[partition]))
    return [*records, TopicDeleted(topic_id=TOPIC_ID)] if draw(st.integers(0, 4)) == 0 else records


@settings(max_examples=examples(30))
@given(history=histories())
def test_files_are_live_exactly_as_by_replaying_every_batch(
    history: list[DisklessRecord], tmp_path_factory: pytest.TempPathFactory
) -> None:
    log_dir = tmp_path_factory.mktemp("logs")
    folder = log_dir / "__diskless_metadata-0"
    folder.mkdir()
    values = [encode_diskless_record(record) for record in history]
    (folder / f"{0:020d}.log").write_bytes(batch(*values, offset=0))
    logs = CoordinatorLogs(LogDirectories([log_dir], DISKLESS_METADATA_TOPIC), 1)

    files = read_files(logs)

    found: dict[str, Any] = {files.keys[number]: bool(files.live[number]) for number in range(len(files.keys))}
    assert not logs.findings
    assert found == {name: bool(batches) for name, batches in one_by_one(history).items()}
