"""Checkpoint files, committed offsets and `partition.metadata`: Kafka's small text files."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import (
    CheckpointedOffset,
    EpochEntry,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tieredctl.formats.committed_offsets import (
    CommittedOffsets,
    CommittedOffsetsForm,
    encode_committed_offsets,
    read_committed_offsets,
)
from tieredctl.formats.partition_metadata import (
    PartitionMetadata,
    encode_partition_metadata,
    read_partition_metadata,
)

LEADER_EPOCHS = bytes.fromhex("300a320a3020300a322036300a")
COMMITTED = bytes.fromhex("300a330a3020323032320a34203130340a32203439380a")
COMMITTED_OFFSETS = {0: 2022, 4: 104, 2: 498}
PARTITION_METADATA = bytes.fromhex(
    "76657273696f6e3a20300a746f7069635f69643a20414245694d3052565a6e65496d6171377a4e33755f77"
)


def test_leader_epoch_checkpoint() -> None:
    entries = [EpochEntry(0, 0), EpochEntry(2, 60)]

    assert read_leader_epoch_checkpoint(LEADER_EPOCHS) == entries
    assert encode_leader_epoch_checkpoint(entries) == LEADER_EPOCHS


def test_offset_checkpoint_of_a_log_directory() -> None:
    data = b"0\n2\norders 1 42\n__remote_log_metadata 0 7\n"
    entries = [CheckpointedOffset("orders", 1, 42), CheckpointedOffset("__remote_log_metadata", 0, 7)]

    assert read_offset_checkpoint(data) == entries
    assert encode_offset_checkpoint(entries) == data


@pytest.mark.parametrize("read", [read_leader_epoch_checkpoint, read_offset_checkpoint])
def test_an_empty_file_holds_no_entries(read: Callable[[bytes], list[object]]) -> None:
    assert read(b"") == []


def test_the_last_line_end_may_be_missing_and_columns_may_stand_apart() -> None:
    assert read_leader_epoch_checkpoint(b"0\r\n1\r\n3 \t 12 ") == [EpochEntry(3, 12)]


@pytest.mark.parametrize(
    ("data", "position"),
    [
        (b"1\n0\n", 0),
        (b"x\n0\n", 0),
        (b"0\n", 2),
        (b"0\n2\n0 0\n", 2),
        (b"0\n1\n0 0\n1 5\n", 2),
        (b"0\n1\n0\n", 4),
        (b"0\n1\n0 0 0\n", 4),
        (b"0\n1\n0 9223372036854775808\n", 4),
        (b"0\n1\n2147483648 0\n", 4),
        (b"0\n1\n0 \xff\n", 6),
        (b"0\n1\n\n", 4),
    ],
)
def test_a_malformed_checkpoint_is_refused_where_it_is_malformed(data: bytes, position: int) -> None:
    with pytest.raises(DecodeError) as refused:
        read_leader_epoch_checkpoint(data)
    assert refused.value.position == position


def test_committed_offsets_as_kafka_writes_them() -> None:
    committed = CommittedOffsets(CommittedOffsetsForm.KAFKA, COMMITTED_OFFSETS)

    assert read_committed_offsets(COMMITTED) == committed
    assert encode_committed_offsets(committed) == COMMITTED


def test_committed_offsets_as_kip_405_has_them_are_recognized_by_the_first_line() -> None:
    committed = CommittedOffsets(CommittedOffsetsForm.KIP_405, COMMITTED_OFFSETS)

    assert read_committed_offsets(b"0 2022\n4 104\n2 498\n") == committed
    assert encode_committed_offsets(committed) == b"0 2022\n4 104\n2 498\n"


def test_no_committed_offsets() -> None:
    assert read_committed_offsets(b"").offsets == read_committed_offsets(b"0\n0\n").offsets == {}


@pytest.mark.parametrize("data", [b"0\n2\n1 5\n1 6\n", b"1 5\n1 6\n"])
def test_a_metadata_partition_with_two_committed_offsets_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_committed_offsets(data)


def test_partition_metadata() -> None:
    metadata = PartitionMetadata(0, "ABEiM0RVZneImaq7zN3u_w")

    assert read_partition_metadata(PARTITION_METADATA) == metadata
    assert encode_partition_metadata(metadata) == PARTITION_METADATA


def test_partition_metadata_of_a_later_version_is_read_for_the_sake_of_downgrades() -> None:
    assert read_partition_metadata(b"version: 7\ntopic_id: ABEiM0RVZneImaq7zN3u_w\n").version == 7


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"version: 0\n",
        b"topic_id: ABEiM0RVZneImaq7zN3u_w\nversion: 0\n",
        b"version: -1\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: \xc3\xa4BEiM0RVZneImaq7zN3u_w",
    ],
)
def test_malformed_partition_metadata_is_refused(data: bytes) -> None:
    with pytest.raises(DecodeError):
        read_partition_metadata(data)
