"""The files of a log directory and of the remote log metadata manager, byte for byte: checkpoints, committed offsets,
`partition.metadata`, `meta.properties`, indexes, producer snapshots, `remote_log_snapshot` of 3.1 to 3.5, and KIP-405's
flat file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tests import sample_events
from tests.formats import file_formats
from tieredctl.errors import DecodeError
from tieredctl.formats.checkpoints import CheckpointedOffset, EpochEntry
from tieredctl.formats.committed_offsets import CommittedOffsets, CommittedOffsetsForm
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState
from tieredctl.formats.indexes import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from tieredctl.formats.meta_properties import MetaProperties
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.partition_metadata import PartitionMetadata
from tieredctl.formats.producer_snapshot import ProducerEntry
from tieredctl.formats.remote_log_snapshot import RemoteLogSnapshot
from tieredctl.model.events import RecordForm, RemoteLogSegmentState, RemotePartitionDeleteState

Read = Callable[[bytes], Any]
Encode = Callable[[Any], bytes]
TOPIC_ID = sample_events.PARTITION.topic_id
CLUSTER_ID, DIRECTORY_ID = "preTTRqnQOeby9xOnCMfyA", "SXZo9AiJxEa1pZxDz4Yy3w"
COMMITTED = {0: 2022, 4: 104, 2: 498}
OFFSET_ENTRY, OFFSET_BYTES = OffsetIndexEntry(5, 4096), bytes.fromhex("0000000500001000")
TIME_ENTRY, TIME_BYTES = TimeIndexEntry(1700000000005, 1), bytes.fromhex("0000018bcfe5680500000001")
TRANSACTION_BYTES = bytes.fromhex("00000000000000000005000000000000006400000000000000650000000000000067")
PRODUCER_BYTES = bytes.fromhex(
    "00012cc009d00000000100000000000000050000000000080000000000000065000000010000018bcfe5680500000009ffffffffffffffff"
)
NO_PRODUCER = bytes.fromhex("000148674bc700000000")
SEGMENT = replace(
    sample_events.SNAPSHOT,
    segment_leader_epochs=((0, 0),),
    state=RemoteLogSegmentState.COPY_SEGMENT_FINISHED,
    custom_metadata=None,
    txn_idx_empty=False,
)
SNAPSHOT_BYTES = bytes.fromhex(
    "0000000000310000000000000029000000010000004c0103000102030405060708090a0b0c0d0e0f10000000000000000000000000000000"
    "63000000010000018bcfe568000000018bcfe569f4020000000000000000000000000000100000000100"
)
FLAT_FILE = FlatFile("t", TOPIC_ID, 41, [replace(SEGMENT, author=7, form=RecordForm.KIP_405)])
FLAT_FILE_BYTES = bytes.fromhex(
    "0000017400112233445566778899aabbccddeeff524b00000102030405060708090a0b0c0d0e0f1000000000000000000000000000000063"
    "000000070000018bcfe568000000018bcfe569f4000000010000000000000000000000000010000001"
)
REMOVAL = StoredDeleteState(7, 1700000001000, RemotePartitionDeleteState.DELETE_PARTITION_STARTED)
BEFORE_3_6 = RemoteLogSnapshot(49, 41, [replace(SEGMENT, form=RecordForm.KAFKA_BEFORE_3_6)])

GOLDEN: dict[str, tuple[Read, Encode, Any, bytes]] = {
    "leader-epoch checkpoint": (
        *file_formats.LEADER_EPOCHS,
        [EpochEntry(0, 0), EpochEntry(2, 60)],
        bytes.fromhex("300a320a3020300a322036300a"),
    ),
    "offset checkpoint of a log directory": (
        *file_formats.OFFSET_CHECKPOINT,
        [CheckpointedOffset("orders", 1, 42), CheckpointedOffset("__remote_log_metadata", 0, 7)],
        b"0\n2\norders 1 42\n__remote_log_metadata 0 7\n",
    ),
    "committed offsets": (
        *file_formats.COMMITTED_OFFSETS,
        CommittedOffsets(CommittedOffsetsForm.KAFKA, COMMITTED),
        bytes.fromhex("300a330a3020323032320a34203130340a32203439380a"),
    ),
    "committed offsets as KIP-405 has them, recognized by the first line": (
        *file_formats.COMMITTED_OFFSETS,
        CommittedOffsets(CommittedOffsetsForm.KIP_405, COMMITTED),
        b"0 2022\n4 104\n2 498\n",
    ),
    "partition.metadata": (
        *file_formats.PARTITION_METADATA,
        PartitionMetadata(0, TOPIC_ID),
        bytes.fromhex("76657273696f6e3a20300a746f7069635f69643a20414245694d3052565a6e65496d6171377a4e33755f77"),
    ),
    "offset index": (*file_formats.OFFSET_INDEX, [OFFSET_ENTRY], OFFSET_BYTES),
    "time index": (*file_formats.TIME_INDEX, [TIME_ENTRY], TIME_BYTES),
    "transaction index": (
        *file_formats.TRANSACTION_INDEX,
        [AbortedTransaction(producer_id=5, first_offset=100, last_offset=101, last_stable_offset=103)],
        TRANSACTION_BYTES,
    ),
    "empty offset index": (*file_formats.OFFSET_INDEX, [], b""),
    "empty time index": (*file_formats.TIME_INDEX, [], b""),
    "empty transaction index": (*file_formats.TRANSACTION_INDEX, [], b""),
    "producer snapshot": (
        *file_formats.PRODUCER_SNAPSHOT,
        [ProducerEntry(5, 0, 8, 101, 1, 1700000000005, 9, -1)],
        PRODUCER_BYTES,
    ),
    "producer snapshot of nobody": (*file_formats.PRODUCER_SNAPSHOT, [], NO_PRODUCER),
    "Java properties, with escapes": (
        *file_formats.PROPERTIES,
        {"a b": " =x", "ä": "\n\\\U0001f600"},
        b"a\\ b=\\ \\=x\n\\u00e4=\\n\\\\\\ud83d\\ude00\n",
    ),
    "remote log snapshot in the form since 3.6": (
        *file_formats.REMOTE_LOG_SNAPSHOT,
        RemoteLogSnapshot(49, 41, [SEGMENT]),
        SNAPSHOT_BYTES,
    ),
    "remote log snapshot as 3.1 to 3.5 wrote it, without custom metadata": (
        *file_formats.REMOTE_LOG_SNAPSHOT,
        BEFORE_3_6,
        SNAPSHOT_BYTES[:21] + b"\x4b" + SNAPSHOT_BYTES[22:-7] + bytes.fromhex("001000000100"),
    ),
    "remote log snapshot of a segment of two epochs, which is there twice": (
        *file_formats.REMOTE_LOG_SNAPSHOT,
        RemoteLogSnapshot(49, 41, [SEGMENT, SEGMENT]),
        SNAPSHOT_BYTES[:17] + b"\2" + SNAPSHOT_BYTES[18:] * 2,
    ),
    "flat file of KIP-405": (*file_formats.FLAT_FILE, FLAT_FILE, FLAT_FILE_BYTES),
    "flat file with the removal of its partition": (
        *file_formats.FLAT_FILE,
        FLAT_FILE._replace(entries=[*FLAT_FILE.entries, REMOVAL]),
        FLAT_FILE_BYTES + bytes.fromhex("0f 01 00 00000007 0000018bcfe56be8 01"),
    ),
}


@pytest.mark.parametrize("name", GOLDEN)
def test_golden_bytes_are_read_and_written(name: str) -> None:
    read, encode, value, data = GOLDEN[name]

    assert read(data) == value
    assert encode(value) == data


ALSO_READ: list[tuple[Read, bytes, Any]] = [
    (file_formats.LEADER_EPOCHS.read, b"", []),
    (file_formats.OFFSET_CHECKPOINT.read, b"", []),
    (file_formats.LEADER_EPOCHS.read, b"0\r\n1\r\n3 \t 12 ", [EpochEntry(3, 12)]),  # without the last line's end
    (lambda data: file_formats.COMMITTED_OFFSETS.read(data).offsets, b"", {}),
    (lambda data: file_formats.COMMITTED_OFFSETS.read(data).offsets, b"0\n0\n", {}),
    # A later version is read for the sake of downgrades.
    (
        file_formats.PARTITION_METADATA.read,
        f"version: 7\ntopic_id: {TOPIC_ID}\n".encode(),
        PartitionMetadata(7, TOPIC_ID),
    ),
    (file_formats.OFFSET_INDEX.read, OFFSET_BYTES + bytes(10485760 - 8), [OFFSET_ENTRY]),  # preallocated
    (file_formats.TIME_INDEX.read, TIME_BYTES + bytes(12 * 1000), [TIME_ENTRY]),
    (file_formats.OFFSET_INDEX.read, bytes(10485760), []),
    (file_formats.OFFSET_INDEX.read, bytes(8), [OffsetIndexEntry(0, 0)]),  # zeros are real as the first entry
    (file_formats.OFFSET_INDEX.read, bytes(8) + OFFSET_BYTES, [OffsetIndexEntry(0, 0), OFFSET_ENTRY]),
    (
        file_formats.OFFSET_INDEX.read,
        bytes.fromhex("00000001 00000100 00000002 01000000") + bytes(80),
        [OffsetIndexEntry(1, 256), OffsetIndexEntry(2, 1 << 24)],
    ),
    (
        file_formats.META_PROPERTIES.read,
        f"#\n#Sat Nov 21 09:13:48 UTC 2026\nnode.id=1\ndirectory.id={DIRECTORY_ID}\nversion=1\n"
        f"cluster.id={CLUSTER_ID}\n".encode(),
        MetaProperties(1, CLUSTER_ID, 1, DIRECTORY_ID),
    ),
    (file_formats.META_PROPERTIES.read, b"version=0\nbroker.id=3\n", MetaProperties(0, None, 3, None)),
    (file_formats.META_PROPERTIES.read, b"", MetaProperties(0, None, None, None)),
    (file_formats.PROPERTIES.read, b"key=\xe4", {"key": "\u00e4"}),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, b"", None),
]


def test_what_else_may_be_there_is_read() -> None:
    for read, data, value in ALSO_READ:
        assert read(data) == value, data[:80]


UPDATE = encode_event(replace(sample_events.UPDATE, event_timestamp_ms=0))
REFUSED_AT: list[tuple[Read, bytes, int]] = [
    (file_formats.LEADER_EPOCHS.read, b"1\n0\n", 0),
    (file_formats.LEADER_EPOCHS.read, b"x\n0\n", 0),
    (file_formats.LEADER_EPOCHS.read, b"0\n", 2),
    (file_formats.LEADER_EPOCHS.read, b"0\n2\n0 0\n", 2),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n0 0\n1 5\n", 2),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n0\n", 4),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n0 0 0\n", 4),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n0 9223372036854775808\n", 4),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n2147483648 0\n", 4),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n0 \xff\n", 6),
    (file_formats.LEADER_EPOCHS.read, b"0\n1\n\n", 4),
    (file_formats.OFFSET_INDEX.read, OFFSET_BYTES[:-1], 0),
    (file_formats.OFFSET_INDEX.read, OFFSET_BYTES + b"\0\0\0", 8),
    (file_formats.OFFSET_INDEX.read, OFFSET_BYTES * 2, 8),
    (file_formats.OFFSET_INDEX.read, OFFSET_BYTES + bytes(8) + OFFSET_BYTES, 8),
    (file_formats.OFFSET_INDEX.read, bytes.fromhex("ffffffff00001000"), 0),
    (file_formats.OFFSET_INDEX.read, bytes.fromhex("0000000580001000"), 0),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:17], 0),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, b"\0\1" + SNAPSHOT_BYTES[2:], 0),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:17] + b"\2" + SNAPSHOT_BYTES[18:], 14),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:18] + b"\x7f" + SNAPSHOT_BYTES[19:], 18),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:18] + b"\xff" + SNAPSHOT_BYTES[19:], 18),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:18] + len(UPDATE).to_bytes(4) + UPDATE, 22),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES[:22] + b"\2" + SNAPSHOT_BYTES[23:], 22),
    (file_formats.REMOTE_LOG_SNAPSHOT.read, SNAPSHOT_BYTES + b"\0", 98),
    (file_formats.FLAT_FILE.read, b"\1" + FLAT_FILE_BYTES[1:], 0),
    (file_formats.FLAT_FILE.read, FLAT_FILE_BYTES[:21] + b"\x4c" + FLAT_FILE_BYTES[22:], 21),
    (file_formats.FLAT_FILE.read, FLAT_FILE_BYTES[:22] + b"\2" + FLAT_FILE_BYTES[23:], 22),
    (file_formats.FLAT_FILE.read, FLAT_FILE_BYTES[:23] + b"\1" + FLAT_FILE_BYTES[24:], 22),
    (file_formats.FLAT_FILE.read, FLAT_FILE_BYTES[:-1] + b"\4", 24),
    (file_formats.FLAT_FILE.read, FLAT_FILE_BYTES[:21] + b"\x4a" + FLAT_FILE_BYTES[22:-1], 92),
]
REFUSED: dict[Read, list[bytes]] = {
    file_formats.COMMITTED_OFFSETS.read: [b"0\n2\n1 5\n1 6\n", b"1 5\n1 6\n"],
    file_formats.PARTITION_METADATA.read: [
        b"",
        b"version: 0\n",
        b"topic_id: ABEiM0RVZneImaq7zN3u_w\nversion: 0\n",
        b"version: -1\ntopic_id: ABEiM0RVZneImaq7zN3u_w",
        b"version: 0\ntopic_id: AAAAAAAAAAAAAAAAAAAAAA",
        b"version: 0\ntopic_id: short",
        b"version: 0\ntopic_id: \xc3\xa4BEiM0RVZneImaq7zN3u_w",
    ],
    file_formats.TIME_INDEX.read: [TIME_BYTES * 2, TIME_BYTES[:-1], bytes.fromhex("ffffffffffffffff00000001")],
    file_formats.TRANSACTION_INDEX.read: [
        TRANSACTION_BYTES * 2,
        TRANSACTION_BYTES[:-1],
        b"\0\1" + TRANSACTION_BYTES[2:],
    ],
    file_formats.PRODUCER_SNAPSHOT.read: [
        *(b"", PRODUCER_BYTES[:-1], PRODUCER_BYTES + b"\0", NO_PRODUCER[:9]),
        *(PRODUCER_BYTES[:at] + bytes([byte ^ 1]) + PRODUCER_BYTES[at + 1 :] for at, byte in enumerate(PRODUCER_BYTES)),
    ],
    file_formats.META_PROPERTIES.read: [
        b"version=2\n",
        b"version=one\n",
        b"version=1\nnode.id=1\n",
        b"version=1\ncluster.id=x\n",
        b"version=1\ncluster.id=x\nnode.id=-1\n",
        b"version=1\ncluster.id=x\nnode.id=1\ndirectory.id=short\n",
    ],
    file_formats.PROPERTIES.read: [b"key=\\u12"],
}


def test_what_is_malformed_is_refused_where_it_is_malformed() -> None:
    for read, data, position in REFUSED_AT:
        with pytest.raises(DecodeError) as refused:
            pytest.fail(f"{data!r} was read as {read(data)}")
        assert refused.value.position == position, data


def test_what_is_malformed_is_refused() -> None:
    for read, malformed in REFUSED.items():
        for data in malformed:
            with pytest.raises(DecodeError):
                pytest.fail(f"{data!r} was read as {read(data)}")


PROPERTIES = {
    "key=value": {"key": "value"},
    "key:value": {"key": "value"},
    "key value": {"key": "value"},
    "  key \t = \f value ": {"key": "value "},
    "key": {"key": ""},
    "key==": {"key": "="},
    "# comment\n! comment\n\n   \nkey=value": {"key": "value"},
    "key=one, \\\n    two": {"key": "one, two"},
    "key=one\\\\\nother=2": {"key": "one\\", "other": "2"},
    "host=a\\:1\\=2": {"host": "a:1=2"},
    "a\\ b\\=c=d": {"a b=c": "d"},
    "tab=\\t\\u00e4\\ud83d\\ude00\\z": {"tab": "\t\u00e4\U0001f600z"},
    "twice=1\rtwice=2\r\n": {"twice": "2"},
    "end=here\\": {"end": "here"},
    "half=\\ud83d": {"half": "\ufffd"},
    "\\# not=a comment": {"#": "not=a comment"},
}


def test_java_properties() -> None:
    for text, properties in PROPERTIES.items():
        assert file_formats.PROPERTIES.read(text.encode("latin-1")) == properties, text
