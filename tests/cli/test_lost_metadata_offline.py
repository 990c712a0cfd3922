"""Metadata of a topic that was lost and came back: whatever names objects, none that it lost goes, offline either."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import (
    AFTER_IT_RAN,
    AGED,
    CLUSTER_ID,
    CrashedClusterOnDisk,
    metadata_of,
    planned_keys,
    without_own,
)
from tests.cli.test_forged_plans import TRUSTED, Line, named, rewrite
from tests.metadata_logs import copied, write_records
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.record_batches import Record
from tieredctl.model.events import (
    EventRecord,
    MetadataEvent,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.ports.metadata_source import NO_BROKER
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.wiring.places import MetadataPlace

METADATA_PARTITIONS = 4
RECREATED_MS = AFTER_IT_RAN * 1_000
LAST_MS = RECREATED_MS + 6 * 3_600_000
EVERYTHING = (*AGED, "--max-percent", "100")
FINISHED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED
NEW = 1 << 64
"""The first number of segments that were copied after the topic was recreated."""


def records_of(log_dir: Path) -> list[EventRecord]:
    with MetadataPlace((log_dir,)).open() as stream:
        return list(stream.records())


def write_again(log_dir: Path, events: Iterable[MetadataEvent]) -> None:
    """In logs that begin with them, with records from when the topic was recreated."""
    logs: dict[int, list[MetadataEvent]] = {number: [] for number in range(METADATA_PARTITIONS)}
    for event in events:
        assert isinstance(event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate)
        owner = event.topic_id_partition
        logs[metadata_partition(owner.topic_id, owner.partition, METADATA_PARTITIONS)].append(event)
    for number, some in logs.items():
        shutil.rmtree(log_dir / f"__remote_log_metadata-{number}", ignore_errors=True)
        step_ms = (LAST_MS - RECREATED_MS) // max(len(some) - 1, 1)
        records = [
            Record(offset, RECREATED_MS + offset * step_ms, None, encode_event(one)) for offset, one in enumerate(some)
        ]
        write_records(log_dir, *records, metadata_partition=number)


def recreated(log_dir: Path) -> None:
    """Every partition that was tiered copied one more segment."""
    owners = dict.fromkeys(
        one.event.topic_id_partition for one in records_of(log_dir) if isinstance(one.event, RemoteLogSegmentMetadata)
    )
    write_again(
        log_dir, [event for number, one in enumerate(owners, NEW) for event in copied(number, 900, 909, partition=one)]
    )


def half_recovered(log_dir: Path) -> None:
    """The events of every second segment were written again, as they were."""
    records = records_of(log_dir)
    starts = [one.event for one in records if isinstance(one.event, RemoteLogSegmentMetadata)]
    some = {one.segment_id for one in starts[::2]} & _finished(records)
    write_again(log_dir, _with_ends([one for one in starts if one.segment_id in some]))


def _finished(records: Iterable[EventRecord]) -> set[str]:
    """The segments that an event says are copied."""
    return {
        one.event.segment_id
        for one in records
        if isinstance(one.event, RemoteLogSegmentMetadataUpdate) and one.event.state is FINISHED
    }


def _with_ends(starts: Iterable[RemoteLogSegmentMetadata]) -> Iterator[MetadataEvent]:
    for one in starts:
        yield one
        yield RemoteLogSegmentMetadataUpdate(
            topic_id_partition=one.topic_id_partition,
            segment_id=one.segment_id,
            author=NO_BROKER,
            event_timestamp_ms=one.event_timestamp_ms,
            state=FINISHED,
        )


def one_partition_recreated(log_dir: Path) -> None:
    """The only replica of one metadata partition lost its disk; the other partitions have all of their events."""
    whole = log_dir.with_name("whole")
    shutil.copytree(log_dir, whole)
    recreated(log_dir)
    for number in range(1, METADATA_PARTITIONS):
        folder = f"__remote_log_metadata-{number}"
        shutil.rmtree(log_dir / folder)
        shutil.copytree(whole / folder, log_dir / folder)


def emptied(log_dir: Path) -> None:
    write_again(log_dir, [])


def lost_from_the_middle(log_dir: Path) -> None:
    """An old backup of the topic was put back, and brokers went on where they were: no event is left of every third
    segment whose first offset no other has."""
    records = records_of(log_dir)
    finished = _finished(records)
    starts = [one.event for one in records if isinstance(one.event, RemoteLogSegmentMetadata)]
    copies = [one for one in starts if one.segment_id in finished]
    alone = [one for one in copies if all(one is other or not _holds(other, one) for other in copies)]
    lost = {one.segment_id for one in alone[::3]}
    logs: dict[int, list[Record]] = {number: [] for number in range(METADATA_PARTITIONS)}
    for record in records:
        assert isinstance(record.event, RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate)
        if record.event.segment_id not in lost:
            log = logs[record.metadata_partition]
            log.append(Record(len(log), record.timestamp_ms, None, encode_event(record.event)))
    ends = {one.topic_id_partition: 0 for one in starts}
    for one in starts:
        ends[one.topic_id_partition] = max(ends[one.topic_id_partition], one.end_offset + 1)
    for number, (owner, end) in enumerate(ends.items(), NEW):
        log = logs[metadata_partition(owner.topic_id, owner.partition, METADATA_PARTITIONS)]
        for event in copied(number, end, end + 9, partition=owner, event_timestamp_ms=LAST_MS):
            log.append(Record(len(log), LAST_MS, None, encode_event(event)))
    for number, left in logs.items():
        shutil.rmtree(log_dir / f"__remote_log_metadata-{number}")
        write_records(log_dir, *left, metadata_partition=number)


def _holds(copy: RemoteLogSegmentMetadata, other: RemoteLogSegmentMetadata) -> bool:
    """Whether one has the first offset of another."""
    is_same_log = copy.topic_id_partition == other.topic_id_partition
    return is_same_log and copy.start_offset <= other.start_offset <= copy.end_offset


LOSSES = [recreated, half_recovered, one_partition_recreated, emptied, lost_from_the_middle]
OF_DELETIONS = (one_partition_recreated, lost_from_the_middle)
"""After these some orphans are left, beside objects that are promised again, and missing: their deletions were lost."""
Lose = Callable[[Path], None]


def after(cluster: CrashedClusterOnDisk, lose: Lose, folder: Path) -> CrashedClusterOnDisk:
    """The cluster, read by what was left of its metadata."""
    log_dir = metadata_of(cluster, folder / "lost" / "data")
    lose(log_dir)
    return replace(cluster, log_dir=log_dir)


@pytest.mark.parametrize("lose", LOSSES)
def test_no_object_becomes_an_orphan_by_what_was_lost_nor_goes_by_any_plan(
    cluster: CrashedClusterOnDisk, tmp_path: Path, lose: Lose
) -> None:
    before, objects = statuses(cluster.scan("-o", "jsonl")), without_own(cluster.objects())
    were_orphans = {key for key, status in before.items() if status == "orphan"}
    lost, is_said_complete = after(cluster, lose, tmp_path), lose is not emptied

    scanned = lost.scan("-o", "jsonl")
    left = statuses(scanned)
    orphans = [one for one in scanned.lines() if one["status"] == "orphan"]
    is_complete = is_said_complete and lose not in OF_DELETIONS
    assert (scanned.exit_code, left.keys()) == (3 if is_complete else 5, before.keys())
    assert {one["key"] for one in orphans} <= were_orphans
    assert not [one for one in orphans if one["cause"] == "no-metadata"]

    export = tmp_path / "export.jsonl"
    assert lost.tieredctl("metadata", "export", export, "--log-dir", lost.log_dir).exit_code == (
        0 if is_said_complete else 5
    )
    for source in (("--log-dir", lost.log_dir), ("--export", export)):
        plan = tmp_path / f"plan{source[0]}"
        where = (*lost.store, "--layout", "aiven", "--to", plan, "--cluster-id", CLUSTER_ID)
        outcome = lost.tieredctl("orphans", "plan", *where, *source, *EVERYTHING)

        assert (planned_keys(plan) if plan.exists() else set()) <= were_orphans, source
        # What was deleted, and by its lost events was not, is promised and missing.
        expected = {
            0: "tieredctl recover metadata --bootstrap-server",
            2: "",
            5: "promised" if is_said_complete else "metadata",
        }
        assert expected[outcome.exit_code] in outcome.err, source

    assert cluster.plan(*EVERYTHING).exit_code == 0
    assert lost.apply(*TRUSTED).exit_code in (2, 5)
    assert without_own(cluster.objects()) == objects
    owned = next(key for key, status in before.items() if status == "owned" and left[key] == "unknown")

    def change(lines: list[Line]) -> None:
        """As if the metadata had ended before what was left of it, so that nothing else stops the plan."""
        lines[0] |= {"metadataEndOffsets": {}}
        lines[1:-1] = [named(cluster, owned, "orphan", cause="no-metadata")]

    rewrite(cluster.plan_file, change)
    assert lost.apply(*TRUSTED).exit_code in (2, 5)
    assert without_own(cluster.objects()) == objects


def statuses(scanned: Outcome) -> dict[str, str]:
    return {one["key"]: one["status"] for one in scanned.lines()}
