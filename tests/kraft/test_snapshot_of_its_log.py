"""A snapshot that is not of the log beside it is refused: between its true end and its name's, topics would be lost."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kraft_snapshots import snapshot_bytes, topic_record
from tests.metadata_quorum_files import MetadataFolder
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.formats.file_names import kraft_snapshot_name
from tieredctl.formats.kraft_log import KraftRecordType, encode_kraft_record
from tieredctl.kraft.replica import LastBatch, SnapshotId, disagreements
from tieredctl.model.finding_codes import FindingCode
from tieredctl.ops.snapshots.record_files import record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

FIRST, SECOND = "AAAAAAAAQAAAAAAAAAAAAQ", "AAAAAAAAQAAAAAAAAAAAAg"
END, EPOCH = 2, 1
Break = Callable[[MetadataFolder], object]


@pytest.fixture
def node(tmp_path: Path) -> MetadataFolder:
    """Its snapshot, 2-1, has one topic; the log after it adds another at offset 3."""
    folder = MetadataFolder(tmp_path / "__cluster_metadata-0")
    folder.append(timestamp=1000)
    folder.append(topic_record(FIRST, "first"), timestamp=2000)
    folder.snapshot(2000, [topic_record(FIRST, "first")])
    folder.append(timestamp=3000)
    folder.append(topic_record(SECOND, "second"), timestamp=4000)
    folder.append(*[bytes([1, 20, 0, 0])] * 3, timestamp=5000)
    return folder


def renamed(end_offset: int, epoch: int = EPOCH) -> Break:
    def change(folder: MetadataFolder) -> None:
        snapshot = folder.path / kraft_snapshot_name(END, EPOCH)
        snapshot.rename(folder.path / kraft_snapshot_name(end_offset, epoch))

    return change


def foreign(as_of_ms: int) -> Break:
    content = snapshot_bytes(as_of_ms, topic_record(FIRST, "first"))
    return lambda folder: (folder.path / kraft_snapshot_name(END, EPOCH)).write_bytes(content)


def epoch_goes_back(folder: MetadataFolder) -> None:
    folder.epoch = 0
    folder.append()


def log_of_another_history(folder: MetadataFolder) -> None:
    log = MetadataFolder(folder.path, epoch=2)
    next(folder.path.glob("*.log")).unlink()
    for time in (1000, 2000, 3000):
        log.append(timestamp=time)


LIES: dict[str, tuple[Break, str, FindingCode]] = {
    "a later end": (renamed(4), "its header says 2000 ms", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "an earlier end": (renamed(1), "its header says 2000 ms", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "an end within a batch": (renamed(5), "not the last of its batch", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "another epoch": (renamed(2, 7), "records of epoch 1", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "another history": (foreign(2001), "its header says 2001 ms", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "a log of another epoch": (log_of_another_history, "of epoch 2 in the log", FindingCode.KRAFT_SNAPSHOT_MISNAMED),
    "an end after the log": (renamed(50), "the log ends before", FindingCode.KRAFT_LOG_BEFORE_SNAPSHOT),
    "an epoch that goes back": (epoch_goes_back, "epoch 0 follows epoch 1", FindingCode.KRAFT_LOG_DAMAGED),
}


@pytest.mark.parametrize(("change", "reason", "code"), LIES.values(), ids=LIES.keys())
def test_a_snapshot_that_is_not_of_its_log_makes_no_cluster_and_is_found(
    node: MetadataFolder, change: Break, reason: str, code: FindingCode
) -> None:
    change(node)

    with pytest.raises(TieredctlError, match=reason) as refused:
        OfflineClusterPlace(node.path).read()
    found = SnapshotCheck()
    found.read_node(node.path, record_files([node.path]), [])

    assert refused.value.exit_code is ExitCode.CORRUPTION
    assert code in {finding.code for finding in found.findings}


def test_a_snapshot_of_its_log_is_the_log_so_far(node: MetadataFolder) -> None:
    assert OfflineClusterPlace(node.path).read().topic_ids == {FIRST, SECOND}


def test_a_snapshot_named_on_its_own_answers_where_the_log_ends_before_it(node: MetadataFolder) -> None:
    renamed(50)(node)

    assert OfflineClusterPlace(node.path / kraft_snapshot_name(50, EPOCH)).read().topic_ids == {FIRST}


def test_a_snapshot_of_another_epoch_than_its_name_is_refused_on_its_own(node: MetadataFolder) -> None:
    renamed(2, 7)(node)

    with pytest.raises(TieredctlError, match="records of epoch 1"):
        OfflineClusterPlace(node.path / kraft_snapshot_name(2, 7)).read()


def test_offset_epoch_and_time_must_all_agree() -> None:
    cases: list[tuple[LastBatch, int]] = [
        (LastBatch(4, 1, 900), 0),
        (LastBatch(5, 1, 900), 1),
        (LastBatch(4, 2, 900), 1),
        (LastBatch(4, 1, 901), 1),
        (LastBatch(5, 2, 901), 3),
    ]
    for last, said in cases:
        assert len(list(disagreements(SnapshotId(1, 5), 900, last))) == said, (last, said)


def test_a_record_of_the_log_that_cannot_be_decoded_is_named_by_the_byte_of_its_batch(node: MetadataFolder) -> None:
    (log,) = node.path.glob("*.log")
    position = log.stat().st_size
    node.append(topic_record(FIRST, "t")[:-1])

    with pytest.raises(TieredctlError, match=f"in a record of the batch at byte {position}[.]"):
        OfflineClusterPlace(node.path).read()


def test_a_transaction_without_an_end_is_told_and_not_applied(node: MetadataFolder) -> None:
    assert OfflineClusterPlace(node.path).read().describe()["openTransaction"] is False
    node.append(encode_kraft_record(KraftRecordType.BEGIN_TRANSACTION, 0, {"Name": None}), timestamp=6000)
    node.append(topic_record("AAAAAAAAQAAAAAAAAAAAAw", "third"), timestamp=7000)

    cluster = OfflineClusterPlace(node.path).read()

    assert cluster.describe()["openTransaction"] is True
    assert {topic.name for topic in cluster.image.topics.values()} == {"first", "second"}
