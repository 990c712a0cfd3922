"""How many partitions the metadata topic has, by the controllers' log: what that leaves open is unknown."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from tests.kraft_snapshots import remove_topic_record, topic_record
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.kafka.log_directory import metadata_topic_partition_count
from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.model.ids import uuid_bytes
from tieredctl.ports.metadata_source import METADATA_TOPIC

TOPIC_ID, OTHER_ID = "AAAAAAAAQAAAAAAAAAAAAQ", "AAAAAAAAQAAAAAAAAAAAAg"
Break = Callable[[MetadataFolder], object]


def partitions(numbers: Iterable[int]) -> list[bytes]:
    lists = {name: [1] for name in ("Replicas", "Isr", "RemovingReplicas", "AddingReplicas")}
    numbered = dict.fromkeys(("Leader", "LeaderEpoch", "PartitionEpoch", "LeaderRecoveryState"), 0)
    fields = {"TopicId": uuid_bytes(TOPIC_ID), **lists, **numbered}
    return [encode_kraft_record(KraftRecordType.PARTITION, 0, {**fields, "PartitionId": one}) for one in numbers]


def transaction(end: KraftRecordType | None) -> Break:
    """Two more partitions, in a transaction."""
    begin = encode_kraft_record(KraftRecordType.BEGIN_TRANSACTION, 0, {"Name": None})
    ended = [] if end is None else [encode_kraft_record(end, 0, {"Reason": None})]
    return lambda folder: folder.append(begin, *partitions([4, 5]), *ended)


def renamed(folder: MetadataFolder) -> None:
    """The log before the new name's end, with two more partitions, would be passed over."""
    folder.append(*partitions([4]))
    folder.append(*partitions([5]), timestamp=2)
    snapshot = next(folder.path.glob("*.checkpoint"))
    snapshot.rename(folder.path / kraft_snapshot_name(folder.end_offset, 1))


def epoch_back(folder: MetadataFolder) -> None:
    folder.epoch = 0
    folder.append()


CASES: dict[str, tuple[Break, int | None]] = {
    "nothing more": (lambda folder: folder, 4),
    "more partitions": (lambda folder: folder.append(*partitions([4, 5])), 6),
    "a committed transaction": (transaction(KraftRecordType.END_TRANSACTION), 6),
    "an aborted transaction": (transaction(KraftRecordType.ABORT_TRANSACTION), 4),
    "an open transaction": (transaction(None), None),
    "a removed topic": (lambda folder: folder.append(remove_topic_record(TOPIC_ID)), None),
    "a partition that is missing": (lambda folder: folder.append(*partitions([5])), None),
    "a record of a later release": (lambda folder: folder.append(b"\x01\x63\x00\x01"), None),
    "a record that does not fit": (lambda folder: folder.append(remove_topic_record(OTHER_ID)), None),
    "a snapshot with another name": (renamed, None),
    "an epoch that goes back": (epoch_back, None),
}


@pytest.mark.parametrize(("change", "count"), CASES.values(), ids=CASES.keys())
def test_the_count_is_that_of_the_replayed_log(tmp_path: Path, change: Break, count: int | None) -> None:
    folder = MetadataFolder(tmp_path / "__cluster_metadata-0")
    records = [topic_record(TOPIC_ID, METADATA_TOPIC), *partitions(range(4))]
    folder.append(*records)
    folder.snapshot(values=records)
    folder.append()

    change(folder)

    assert metadata_topic_partition_count([tmp_path]) == count


def test_of_several_replicas_the_most_recent_is_believed(tmp_path: Path) -> None:
    for name, count in (("older", 2), ("newer", 3)):
        folder = MetadataFolder(tmp_path / name / "__cluster_metadata-0")
        folder.append(topic_record(TOPIC_ID, METADATA_TOPIC), *partitions(range(count)))

    assert metadata_topic_partition_count([tmp_path / "newer", tmp_path / "older", tmp_path]) == 3


def test_files_that_stay_are_replayed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = MetadataFolder(tmp_path / "__cluster_metadata-0")
    folder.append(topic_record(TOPIC_ID, METADATA_TOPIC), *partitions(range(2)))
    opened: list[Path] = []
    really_opened = MetadataLog.opened

    def counted(path: Path) -> MetadataLog:
        opened.append(path)
        return really_opened(path)

    monkeypatch.setattr(MetadataLog, "opened", counted)

    counts = [metadata_topic_partition_count([tmp_path]) for _ in range(3)]
    folder.append(*partitions([2]))

    assert (counts, len(opened)) == ([2, 2, 2], 1)
    assert (metadata_topic_partition_count([tmp_path]), len(opened)) == (3, 2)
