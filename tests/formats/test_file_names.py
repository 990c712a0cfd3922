"""Names of files and folders in a log directory and in remote storage (LogFileUtils, Snapshots, RemoteIndexCache)."""

from __future__ import annotations

from tieredctl.formats.file_names import (
    FolderFate,
    KraftSnapshotName,
    PartitionFolderName,
    SegmentFileName,
    SegmentPart,
    Transition,
    index_cache_file_name,
    kraft_snapshot_name,
    parse_index_cache_file_name,
    parse_kraft_snapshot_name,
    parse_partition_folder_name,
    parse_segment_file_name,
    partition_folder_name,
    segment_file_name,
    without_transition,
)

SEGMENT_ID = "AQIDBAUGBwgJCgsMDQ4PEA"


SEGMENT_FILES: dict[str, SegmentFileName | None] = {
    "00000000000000000042.log": SegmentFileName(42, SegmentPart.LOG),
    "00000000000000000042.timeindex": SegmentFileName(42, SegmentPart.TIME_INDEX),
    "00000000000000000042.txnindex.deleted": SegmentFileName(
        42, SegmentPart.TRANSACTION_INDEX, None, Transition.DELETED
    ),
    "00000000000000000042.log.swap": SegmentFileName(42, SegmentPart.LOG, None, Transition.SWAP),
    "00000000000000000042.index.cleaned": SegmentFileName(42, SegmentPart.OFFSET_INDEX, None, Transition.CLEANED),
    f"00000000000000000000-{SEGMENT_ID}.leader_epoch_checkpoint": SegmentFileName(
        0, SegmentPart.LEADER_EPOCH_CHECKPOINT, SEGMENT_ID
    ),
    "00000000000000000009--_-_BAUGBwgJCgsMDQ4PEA.snapshot": SegmentFileName(
        9, SegmentPart.PRODUCER_SNAPSHOT, "-_-_BAUGBwgJCgsMDQ4PEA"
    ),
    "42.log": None,
    "99999999999999999999.log": None,
    "00000000000000000042.txt": None,
    "00000000000000000042.log.old": None,
    "00000000000000000042-short.log": None,
    "00000000000000000042-AQIDBAUGBwgJCgsMDQ4PEB.log": None,
    "\u0660" * 20 + ".log": None,
}


def test_segment_files() -> None:
    assert {name: parse_segment_file_name(name) for name in SEGMENT_FILES} == SEGMENT_FILES


CACHE_FILES: dict[str, SegmentFileName | None] = {
    f"0_{SEGMENT_ID}.index": SegmentFileName(0, SegmentPart.OFFSET_INDEX, SEGMENT_ID),
    "7__-_-BAUGBwgJCgsMDQ4PEA.timeindex": SegmentFileName(7, SegmentPart.TIME_INDEX, "_-_-BAUGBwgJCgsMDQ4PEA"),
    f"42_{SEGMENT_ID}.txnindex.tmp": SegmentFileName(
        42, SegmentPart.TRANSACTION_INDEX, SEGMENT_ID, Transition.TEMPORARY
    ),
    f"42_{SEGMENT_ID}.index.deleted": SegmentFileName(42, SegmentPart.OFFSET_INDEX, SEGMENT_ID, Transition.DELETED),
    f"_{SEGMENT_ID}.index": None,
    "00000000000000000042.index": None,
}


def test_files_of_the_remote_log_index_cache() -> None:
    assert {name: parse_index_cache_file_name(name) for name in CACHE_FILES} == CACHE_FILES


FOLDERS: dict[str, PartitionFolderName | None] = {
    "orders-0": PartitionFolderName("orders", 0),
    "a-topic-with-1-dash-12": PartitionFolderName("a-topic-with-1-dash", 12),
    "__remote_log_metadata-3": PartitionFolderName("__remote_log_metadata", 3),
    f"orders-0.{'0a' * 16}-delete": PartitionFolderName("orders", 0, FolderFate.DELETE),
    f"orders-0.{'0a' * 16}-stray": PartitionFolderName("orders", 0, FolderFate.STRAY),
    f"or.ders-0.{'0a' * 16}-future": PartitionFolderName("or.ders", 0, FolderFate.FUTURE),
    "orders": None,
    "orders-": None,
    "-0": None,
    "orders-2147483648": None,
    f"orders-0.{'0a' * 16}-gone": None,
    "remote-log-index-cache": None,
}


def test_partition_folders() -> None:
    assert {name: parse_partition_folder_name(name) for name in FOLDERS} == FOLDERS


SNAPSHOTS: dict[str, KraftSnapshotName | None] = {
    "00000000000000000100-0000000002.checkpoint": KraftSnapshotName(100, 2),
    "00000000000000000100-0000000002.checkpoint.deleted": KraftSnapshotName(100, 2, Transition.DELETED),
    "00000000000000000100-0000000002-8412345.checkpoint.part": KraftSnapshotName(100, 2, Transition.PARTIAL),
    "00000000000000000100-0000000002-8412345.checkpoint": None,
    "00000000000000000100-0000000002-8412345.checkpoint.deleted": None,
    "00000000000000000100-00000000000000000002.checkpoint": None,
    "bootstrap.checkpoint": None,
}


def test_kraft_snapshots_pad_the_epoch_to_10_digits_unlike_kip_630() -> None:
    assert {name: parse_kraft_snapshot_name(name) for name in SNAPSHOTS} == SNAPSHOTS


def test_names_are_written_as_they_are_read() -> None:
    assert segment_file_name(42, SegmentPart.LOG) == "00000000000000000042.log"
    assert index_cache_file_name(0, SEGMENT_ID, SegmentPart.OFFSET_INDEX) == f"0_{SEGMENT_ID}.index"
    assert kraft_snapshot_name(100, 2) == "00000000000000000100-0000000002.checkpoint"
    assert partition_folder_name("a-topic", 12) == "a-topic-12"


def test_a_transition_is_not_part_of_a_file_s_own_name() -> None:
    assert without_transition("leader-epoch-checkpoint.tmp") == "leader-epoch-checkpoint"
    assert without_transition("meta.properties") == "meta.properties"
