"""`tieredctl wal restore`: out of combined objects again, byte for byte, or not at all."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from tieredctl_proposals.ops.wal.contents import read_events
from tieredctl_proposals.ops.wal.event_log import EventLog
from tieredctl_proposals.wal.deletion import deletion_steps
from tieredctl_proposals.wal.sections import queue_item
from tieredctl_proposals.wal.steps import Publish

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import (
    CONFIRMED,
    EVENTS,
    FIRST,
    flip_last,
    logs_in,
    objects,
    restored,
    store_upload,
    upload_words,
)
from tests.metadata_logs import copied, started, updated, write_events
from tests.wal.local_partitions import ORDERS, OTHER, batch, write_partition
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.storage.file import FileStore


def test_what_is_restored_has_the_bytes_of_what_was_uploaded(
    log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    assert restored(tieredctl, uploaded, tmp_path / "to") == 0
    assert restored(tieredctl, uploaded, tmp_path / "one", "--topic", "orders", "--partition", "1") == 0

    assert logs_in(tmp_path / "to") == logs_in(log_dir)
    assert (tmp_path / "to/orders-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 3\n"
    assert (tmp_path / "to/orders-0/partition.metadata").read_text().endswith(ORDERS[0].topic_id)
    assert [path.name for path in (tmp_path / "one").iterdir()] == ["orders-1"]


def test_a_dry_run_reads_all_and_writes_nothing(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    where = ("--store", f"file:{uploaded}", "--to", tmp_path / "deep/to", "--untiered-topic", "other")
    line = ("wal", "restore", *where, "-o", "json")

    rehearsed = tieredctl(*line, "--dry-run")

    assert not (tmp_path / "deep").exists()
    done = tieredctl(*line).document()
    assert rehearsed.document()["items"] == done["items"]
    assert (rehearsed.document()["summary"], rehearsed.exit_code) == (done["summary"] | {"dryRun": True}, 0)
    again = tieredctl(*line, "--dry-run")
    assert again.exit_code == 1


def test_of_a_topic_that_was_made_again_one_is_chosen_by_its_id(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    made_again = TopicIdPartition(OTHER.topic_id, "orders", 0)
    for folder, partition, batches in (("a", ORDERS[0], FIRST[:1]), ("b", made_again, FIRST[:2])):
        write_partition(tmp_path / folder, partition, batches)
        assert tieredctl(*upload_words(tmp_path / folder, store), "--apply").exit_code == 0

    both = restored(tieredctl, store, tmp_path / "to")
    one = restored(tieredctl, store, tmp_path / "to", "--topic-id", OTHER.topic_id)

    assert (both, one) == (2, 0)
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(FIRST[:2])
    inspect = ("wal", "inspect", "--store", f"file:{store}", "-o", "jsonl")
    assert len(tieredctl(*inspect, "--topic-id", ORDERS[0].topic_id).lines()) == 1


def test_a_partition_with_missing_offsets_is_restored_only_when_asked(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    log = write_partition(tmp_path / "logs", ORDERS[0], FIRST[:2]) / f"{0:020d}.log"
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--apply").exit_code == 0
    log.rename(log.with_name(f"{4:020d}.log")).write_bytes(FIRST[4] + FIRST[5])
    making_a_gap = tieredctl(*upload_words(tmp_path / "logs", store), "--apply")
    assert making_a_gap.exit_code == 4

    assert restored(tieredctl, store, tmp_path / "to") == 4
    assert not (tmp_path / "to").exists()
    assert restored(tieredctl, store, tmp_path / "to", "--with-gaps") == 4
    assert (tmp_path / "to/orders-0" / f"{0:020d}.log").read_bytes() == b"".join((*FIRST[:2], *FIRST[4:]))


def test_where_the_events_are_lost_the_objects_alone_are_enough(
    log_dir: Path, uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    for file in (uploaded / EVENTS).iterdir():
        file.unlink()

    assert restored(tieredctl, uploaded, tmp_path / "to") == 2
    assert restored(tieredctl, uploaded, tmp_path / "to", "--without-events") == 0
    assert logs_in(tmp_path / "to") == logs_in(log_dir)


def test_a_damaged_object_restores_nothing(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    flip_last(objects(uploaded)[0])
    for words in ((), ("--dry-run",)):
        assert restored(tieredctl, uploaded, tmp_path / "to", *words) == 4, words
        assert not (tmp_path / "to").exists(), words


@pytest.mark.parametrize("lost", range(3))
def test_what_a_later_leader_cut_fills_no_gap(lost: int, tmp_path: Path, store: Path, tieredctl: Tieredctl) -> None:
    """An object of the new leader's is lost, and so are the events: which of the former leader's records the new one
    has, nothing tells."""
    former, common = [batch(offset) for offset in range(10)], 5
    new = [*former[:common], *(batch(offset, epoch=1, size=50) for offset in range(common, 9))]
    write_partition(tmp_path / "former", ORDERS[0], former)
    write_partition(tmp_path / "new", ORDERS[0], new)
    assert tieredctl(*upload_words(tmp_path / "former", store), "--apply").exit_code == 0
    before = set(objects(store))
    of_new = (*upload_words(tmp_path / "new", store), "--upload-bytes", "200", "--apply", *CONFIRMED)
    assert tieredctl(*of_new).exit_code == 0
    # By the first batch in each: files that are made within a tick of the clock have one time.
    first = {path: [one in path.read_bytes() for one in new].index(True) for path in set(objects(store)) - before}
    uploads = sorted(first, key=lambda path: first[path])
    (store / EVENTS).rename(tmp_path / "lost-events")
    assert restored(tieredctl, store, tmp_path / "whole", "--without-events") == 0
    assert (tmp_path / "whole/orders-0" / f"{0:020d}.log").read_bytes() == b"".join(new)
    assert len(uploads) > 3
    uploads[lost].unlink()

    code = restored(tieredctl, store, tmp_path / "to", "--without-events", "--untiered-topic", "orders")

    assert (code, (tmp_path / "to").exists()) == (4, False)


def test_a_topic_that_may_be_tiered_is_not_restored_from_above_offset_0(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """By the leader epochs of what is restored alone, its leader would delete every earlier remote segment."""
    words = ("wal", "restore", "--store", f"file:{uploaded}", "--to", tmp_path / "to")

    refused = tieredctl(*words)
    of_another = tieredctl(*words, "--untiered-topic", "orders")
    of_the_rest = tieredctl(*words, "--topic", "orders")

    assert (refused.exit_code, of_another.exit_code, of_the_rest.exit_code) == (2, 2, 0)
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1"}


@pytest.mark.parametrize("name", ["../../etc", "a/b", "..", "", "a" * 250])
def test_a_topic_that_no_broker_has_is_not_restored(
    name: str, store: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    """Anybody may have written the events."""
    partition = TopicIdPartition(OTHER.topic_id, name, 0)
    item = queue_item(partition, OTHER.topic_id, FIRST[0], broker_id=1, leader_epoch=0, event_timestamp_ms=1)
    store_upload(store, item)

    assert restored(tieredctl, store, tmp_path / "deep/er/to") == 4
    assert list(tmp_path.glob("deep")) == []


def test_where_everything_was_deleted_nothing_is_restored(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    files = FileStore(str(uploaded))
    known = read_events(files)
    for one in known.combined():
        steps = deletion_steps(known.replayed, one.metadata.combined_segment_id, broker_id=-1, clock_ms=lambda: 1)
        log = EventLog(files, read_events(files).log.end_offsets, lambda: 1)
        log.append([step for step in steps if isinstance(step, Publish)])

    assert restored(tieredctl, uploaded, tmp_path / "to") == 2
    assert not (tmp_path / "to").exists()


def test_what_goes_on_from_remote_storage_is_restored_with_the_epochs_below_it(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(tmp_path / "logs", ORDERS[0], FIRST[4:], base=4)
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--apply").exit_code == 0
    events = [*copied(1, 0, 2, {0: 0}, partition=ORDERS[0]), *copied(2, 3, 4, {1: 3}, partition=ORDERS[0])]
    write_events(tmp_path / "broker", *events)
    line = ("wal", "restore", "--store", f"file:{store}", "--to", tmp_path / "to")

    alone, both = tieredctl(*line), tieredctl(*line, "--log-dir", tmp_path / "broker")

    assert (alone.exit_code, both.exit_code) == (2, 0), both.err
    assert (tmp_path / "to/orders-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 3\n"
    assert [file.name for file in tmp_path.glob("to/*/*.log")] == [f"{4:020d}.log"]


def test_a_partition_is_not_left_to_begin_at_0_where_remote_storage_has_its_records(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(tmp_path / "logs", ORDERS[0], FIRST[:2])
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--apply").exit_code == 0
    tiered_further, tiered_whole = (
        copied(1, 0, 7, {0: 0}, partition=ORDERS[0]),
        copied(2, 0, 9, {0: 0, 3: 5}, partition=ORDERS[1]),
    )
    write_events(tmp_path / "broker", *tiered_further, *tiered_whole)
    line = ("wal", "restore", "--store", f"file:{store}", "--to", tmp_path / "to", "--log-dir", tmp_path / "broker")

    refused = tieredctl(*line)
    nothing_written = not (tmp_path / "to").exists()
    forced = tieredctl(*line, "--with-gaps")

    assert (refused.exit_code, nothing_written, forced.exit_code) == (4, True, 4)
    assert sorted(file.relative_to(tmp_path / "to").as_posix() for file in tmp_path.glob("to/*/*.log")) == [
        f"orders-0/{8:020d}.log",
        f"orders-1/{10:020d}.log",
    ]
    assert (tmp_path / "to/orders-1/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 5\n"


def deleted(
    number: int, first: int, last: int, epochs: dict[int, int], partition: TopicIdPartition
) -> list[MetadataEvent]:
    """As retention leaves a segment."""
    return [*copied(number, first, last, epochs, partition=partition), *gone(number, partition)]


def gone(number: int, partition: TopicIdPartition) -> list[MetadataEvent]:
    states = (RemoteLogSegmentState.DELETE_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED)
    return [updated(number, state, partition=partition) for state in states]


def test_what_retention_deleted_from_remote_storage_still_tells_where_logs_begin(
    tmp_path: Path, store: Path, tieredctl: Tieredctl
) -> None:
    write_partition(tmp_path / "logs", ORDERS[0], FIRST[4:], base=4)
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--apply").exit_code == 0
    begun, whole = (
        deleted(1, 0, 3, {0: 0, 1: 3}, ORDERS[0]),
        deleted(2, 0, 9, {0: 0, 3: 5}, ORDERS[1]),
    )
    made_again = [
        *deleted(3, 0, 99, {0: 0}, OTHER),
        *copied(4, 0, 9, {0: 0}, partition=replace(OTHER, topic_id="A" * 22)),
    ]
    failed = [started(5, 10, 19, {3: 10}, partition=ORDERS[1]), *gone(5, ORDERS[1])]
    write_events(tmp_path / "broker", *begun, *whole, *failed, *made_again)
    line = ("wal", "restore", "--store", f"file:{store}", "--to", tmp_path / "to", "--log-dir", tmp_path / "broker")

    outcome = tieredctl(*line, "--topic", "orders")

    assert outcome.exit_code == 0, outcome.err
    assert sorted(file.relative_to(tmp_path / "to").as_posix() for file in tmp_path.glob("to/*/*.log")) == [
        f"orders-0/{4:020d}.log",
        f"orders-1/{10:020d}.log",
    ]
    assert (tmp_path / "to/orders-0/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n1 3\n"
    assert (tmp_path / "to/orders-1/leader-epoch-checkpoint").read_text() == "0\n2\n0 0\n3 5\n"
    assert tieredctl(*line, "--topic", "other", "--dry-run", "--with-gaps").exit_code == 4, "of two ids, one is deleted"
