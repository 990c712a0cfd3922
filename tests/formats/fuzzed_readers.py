"""The readers that are given damaged input, each with sound input to damage."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from crc32c import crc32c
from tieredctl_aiven.chunk_index import decode_chunk_sizes
from tieredctl_aiven.custom_metadata import read_custom_metadata
from tieredctl_aiven.manifest import read_manifest
from tieredctl_proposals.formats.diskless_records import decode_diskless_record, encode_diskless_record
from tieredctl_proposals.formats.wal_columns import decode_wal_columns
from tieredctl_proposals.formats.wal_objects import combined_object, read_index
from tieredctl_proposals.formats.wal_records import decode_wal_event, encode_wal_event

from tests import diskless_records, sample_events
from tests.faults.aiven_storage_manager import AivenStorageManager, encoded_sizes
from tests.kraft_snapshots import read_kraft_log
from tests.metadata_logs import COPIED
from tests.sample_events import SEGMENT_ID, SNAPSHOT
from tests.wal_histories import combined_started, combined_updated, entry, wal_started, wal_updated
from tieredctl.formats.arriving_snapshot import ArrivingSnapshot
from tieredctl.formats.batch_columns import AsColumns
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint, read_offset_checkpoint
from tieredctl.formats.clean_shutdown import read_clean_shutdown
from tieredctl.formats.committed_offsets import read_committed_offsets
from tieredctl.formats.compression import Codec, compress, decompress
from tieredctl.formats.control_records import decode_control_record, encode_control_record
from tieredctl.formats.file_names import (
    parse_index_cache_file_name,
    parse_kraft_snapshot_name,
    parse_partition_folder_name,
    parse_segment_file_name,
)
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState, StoredEntry, encode_flat_file, read_flat_file
from tieredctl.formats.index_columns import read_offset_index_columns, read_time_index_columns
from tieredctl.formats.indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    encode_offset_index,
    encode_time_index,
    encode_transaction_index,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from tieredctl.formats.java_properties import read_properties
from tieredctl.formats.kraft_json import RecordLines, record_document
from tieredctl.formats.kraft_log import KraftLogRecord, decode_kraft_record, encode_kraft_record
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot, snapshot_times
from tieredctl.formats.log_scan import LogBlock, OneByOne, scan_log
from tieredctl.formats.meta_properties import read_meta_properties
from tieredctl.formats.metadata_columns import decode_columns
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.partition_metadata import read_partition_metadata
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot, read_producer_snapshot
from tieredctl.formats.quorum_state import read_quorum_state
from tieredctl.formats.record_batches import (
    HEADER_BYTES,
    Attributes,
    ControlType,
    Record,
    RecordHeader,
    encode_batch,
    read_batch_header,
    read_records,
)
from tieredctl.formats.record_columns import record_values
from tieredctl.formats.remote_log_snapshot import (
    RemoteLogSnapshot,
    encode_remote_log_snapshot,
    read_remote_log_snapshot,
)
from tieredctl.model.events import (
    RecordForm,
    RemotePartitionDeleteState,
    TaggedField,
)
from tieredctl.ops.inspection.file_kinds import identify
from tieredctl.ports.layout import ORIGINAL_PARTS, Part

LARGEST_SECTION = 1 << 16
"""The limit that decompression is given."""


class Reader(NamedTuple):
    """What is fuzzed: `seal` puts a mutated input's checksums right, so that damage gets behind them."""

    name: str
    seeds: Sequence[bytes]
    read: Callable[[bytes], object]
    seal: Callable[[bytes], bytes] = bytes


UUID = bytes(range(16))
PARTITION = replace(sample_events.PARTITION, topic="a-topic")
SEGMENT = replace(
    sample_events.SEGMENT,
    topic_id_partition=PARTITION,
    tagged_fields=(TaggedField("RemoteLogSegmentId", 3, b"x"), TaggedField("SegmentLeaderEpochs[1]", 200, b"y")),
)
UPDATE = replace(sample_events.UPDATE, topic_id_partition=replace(PARTITION, topic="t" * 200))
REMOVAL = replace(sample_events.PARTITION_DELETE, topic_id_partition=PARTITION)
EVENTS = [
    encode_event(replace(event, form=form, tagged_fields=() if form is RecordForm.KIP_405 else event.tagged_fields))
    for event in (SEGMENT, UPDATE, REMOVAL)
    for form in RecordForm
]
KAFKA_BEFORE_3_6 = replace(SNAPSHOT, form=RecordForm.KAFKA_BEFORE_3_6)
KIP_405_ENTRIES: list[StoredEntry] = [
    replace(SNAPSHOT, form=RecordForm.KIP_405),
    StoredDeleteState(7, 1700000001000, RemotePartitionDeleteState.DELETE_PARTITION_STARTED),
]

RECORDS = [
    Record(100, 1700000000000, b"k", b"v1", (RecordHeader("h", b"x"), RecordHeader("n", None))),
    Record(101, 1700000000005, None, b"v2" * 40),
    Record(105, 1700000000001, b"", None),
]
SECTIONS = [b"", b"hi", b"a" * 3000, bytes(range(256)) * 3]
BATCHES = {codec: encode_batch(RECORDS, codec=codec, producer_id=5) for codec in Codec}
VOTER = {"VoterId": 1, "VoterDirectoryId": UUID}
VOTER_SET = {
    **VOTER,
    "Endpoints": [{"Name": "C", "Host": "h", "Port": 9093}],
    "KRaftVersionFeature": {"MinSupportedVersion": 0, "MaxSupportedVersion": 1},
}
CONTROL_VALUES: list[tuple[ControlType, dict[str, Any]]] = [
    (ControlType.SNAPSHOT_HEADER, {"Version": 0, "LastContainedLogTimestamp": 5}),
    (ControlType.ABORT, {"Version": 0, "CoordinatorEpoch": 9}),
    (ControlType.LEADER_CHANGE, {"Version": 0, "LeaderId": 1, "Voters": [{"VoterId": 1}], "GrantingVoters": []}),
    (ControlType.LEADER_CHANGE, {"Version": 1, "LeaderId": 1, "Voters": [VOTER], "GrantingVoters": [VOTER]}),
    (ControlType.KRAFT_VERSION, {"Version": 0, "KRaftVersion": 1}),
    (ControlType.KRAFT_VOTERS, {"Version": 0, "Voters": [VOTER_SET]}),
    (ControlType.SNAPSHOT_FOOTER, {"Version": 0}),
]
CONTROLS = [encode_control_record(kind, fields, offset=0, timestamp=0) for kind, fields in CONTROL_VALUES]
UUID_LIST, BROKER_LIST = [UUID], [1, 2]
PARTITION_RECORD = {
    "PartitionId": 0,
    "TopicId": UUID,
    **dict.fromkeys(("Replicas", "Isr", "RemovingReplicas", "AddingReplicas", "LastKnownElr"), BROKER_LIST),
    **dict.fromkeys(("Leader", "LeaderRecoveryState", "LeaderEpoch", "PartitionEpoch"), 1),
    "Directories": UUID_LIST,
    "EligibleLeaderReplicas": BROKER_LIST,
}
KRAFT_RECORDS = [
    encode_kraft_record(2, 0, {"Name": "a-topic", "TopicId": UUID}),
    encode_kraft_record(3, 2, PARTITION_RECORD),
    encode_kraft_record(4, 0, {"ResourceType": 2, "ResourceName": "a-topic", "Name": "n", "Value": None}),
]


def control_batch(offset: int, *controls: Record) -> bytes:
    records = [control._replace(offset=offset + index) for index, control in enumerate(controls)]
    return encode_batch(records, attributes=Attributes.CONTROL)


KRAFT_SNAPSHOT = (
    control_batch(0, CONTROLS[0], CONTROLS[4], CONTROLS[5])
    + encode_batch([Record(3 + index, 1, None, value) for index, value in enumerate(KRAFT_RECORDS)])
    + control_batch(6, CONTROLS[-1])
)


def sealed_batches(data: bytes) -> bytes:
    """Record batches with the CRCs that they now have."""
    sealed = bytearray(data)
    position = 0
    while position + HEADER_BYTES <= len(data):
        end = position + 12 + max(struct.unpack_from(">i", data, position + 8)[0], 49)
        if end > len(data):
            break
        struct.pack_into(">I", sealed, position + 17, crc32c(memoryview(sealed)[position + 21 : end]))
        position = end
    return bytes(sealed)


def sealed_producer_snapshot(data: bytes) -> bytes:
    return data[:2] + crc32c(data[6:]).to_bytes(4) + data[6:]


EVENT_LOGS = [
    b"".join(encode_batch([Record(offset, 0, None, event)], codec=codec) for offset, event in enumerate(EVENTS))
    for codec in Codec
]


def read_batch(data: bytes) -> object:
    header = read_batch_header(data, 0, len(data))
    return list(read_records(data, 0, header)) if header.size <= len(data) else header


def read_log(data: bytes) -> object:
    return list(scan_log([data], len(data), OneByOne()))


def read_log_columns(data: bytes) -> object:
    parts = list(scan_log([data], len(data), AsColumns()))
    blocks = [part for part in parts if isinstance(part, LogBlock)]
    return [list(record_values(block.buffer, block.positions, block.headers)) for block in blocks]


def read_event_columns(data: bytes) -> object:
    return decode_columns(np.frombuffer(data, np.uint8), np.array([0]), np.array([len(data)]))


def read_metadata_log(data: bytes) -> object:
    return list(read_kraft_log([data], len(data)))


def read_metadata_lines(data: bytes) -> object:
    """Straight to text; the same must come from values."""
    lines = RecordLines(lambda _: True)
    blocks = [part for part in scan_log([data], len(data), AsColumns()) if isinstance(part, LogBlock)]
    parts = [part for block in blocks for part in lines.of_block(block)]
    records = [part for part in read_kraft_log([data], len(data)) if isinstance(part, KraftLogRecord)]
    text = "".join(part for part in parts if isinstance(part, str))
    assert text.splitlines() == [json.dumps(record_document(record.content)) for record in records]
    return parts


def read_snapshot(data: bytes) -> object:
    return list(read_kraft_snapshot([data], len(data)))


def read_arriving_snapshot(data: bytes) -> object:
    arriving = ArrivingSnapshot(len(data))
    middle = len(data) // 2
    found = [batch for piece in (data[:middle], data[middle:]) for batch in arriving.add(piece)]
    arriving.demand_whole()
    return found


def read_control_record(data: bytes) -> object:
    return decode_control_record(Record(0, 0, data[:4], data[4:]))


def read_names(data: bytes) -> object:
    name = data.decode("utf-8", "replace")
    parsers = (
        parse_segment_file_name,
        parse_index_cache_file_name,
        parse_kraft_snapshot_name,
        parse_partition_folder_name,
    )
    return [parse(name) for parse in parsers]


PRODUCERS = [ProducerEntry(5, 0, 8, 101, 1, 1700000000005, 9, -1), ProducerEntry(6, 1, 9, 200, 1, 1700000000006, 9, 7)]
PROPERTIES = b"#Sat Nov 21 09:13:48 UTC 2026\nnode.id=1\nversion=1\ncluster.id=a\\:b\\u00e4 \\\n  c\n"
NAMES = [
    f"00000000000000000042-{SEGMENT_ID}.log",
    f"0_{SEGMENT_ID}.index.deleted",
    "00000000000000000100-0000000002.checkpoint",
    f"a-topic-0.{'0a' * 16}-delete",
]

WAL_ENTRIES = [entry(1), entry(2)]
WAL_OBJECT = combined_object(combined_started(WAL_ENTRIES), [BATCHES[Codec.NONE]] * 2, 1).data
WAL_EVENTS = [
    encode_wal_event(event)
    for event in (
        wal_started(1, 0, 9, segment_leader_epochs=((0, 0), (3, 5))),
        wal_updated(1, COPIED, custom_metadata=b"x"),
        combined_started(WAL_ENTRIES),
        combined_updated([entry(1, 0, 9), entry(2, 10, 10)], COPIED),
    )
]
DISKLESS_RECORDS = [encode_diskless_record(record) for record in diskless_records.ONE_OF_EACH]


def read_wal_columns(data: bytes) -> object:
    count = 10  # fewer are left to the reader of single events
    starts = np.arange(count, dtype=np.int64) * len(data)
    return decode_wal_columns(np.frombuffer(data * count, np.uint8), starts, starts + len(data))


OFFSETS = [OffsetIndexEntry(5, 4096), OffsetIndexEntry(9, 8200)]
TIMES = [TimeIndexEntry(1700000000005, 1), TimeIndexEntry(1700000000006, 7)]
ABORTED = [AbortedTransaction(5, 1, 2, 3), AbortedTransaction(5, 4, 5, 6)]
OFFSET_INDEX, TIME_INDEX = encode_offset_index(OFFSETS) + bytes(16), encode_time_index(TIMES) + bytes(24)
REMOTE_LOG_SNAPSHOT = encode_remote_log_snapshot(RemoteLogSnapshot(49, 41, [SNAPSHOT, KAFKA_BEFORE_3_6]))
FLAT_FILE = encode_flat_file(FlatFile("a-topic", SEGMENT_ID, 41, KIP_405_ENTRIES))
CONTROL_RECORDS = [(each.key or b"") + (each.value or b"") for each in CONTROLS]
COMMITTED_OFFSETS = [b"0\n3\n0 2022\n4 104\n2 498\n", b"0 2022\n4 104\n2 498\n"]
PARTITION_METADATA = b"version: 0\ntopic_id: ABEiM0RVZneImaq7zN3u_w"
QUORUM_STATES = [
    b'{"clusterId":"","leaderId":1,"leaderEpoch":2,"votedId":-1,"appliedOffset":0,"currentVoters":[],"data_version":0}',
    b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"H4WOGzBRXfXJ6D401Fk6oA","data_version":1}',
]
CLEAN_SHUTDOWN = b'{"version":0,"brokerEpoch":79}'
OF_ANY_KIND = [
    *QUORUM_STATES,
    CLEAN_SHUTDOWN,
    *BATCHES.values(),
    KRAFT_SNAPSHOT,
    REMOTE_LOG_SNAPSHOT,
    FLAT_FILE,
    PROPERTIES,
    PARTITION_METADATA,
]


def section_reader(codec: Codec) -> Reader:
    seeds = [compress(codec, section) for section in SECTIONS]
    return Reader(f"{codec.name} section", seeds, partial(decompress, codec, limit=LARGEST_SECTION))


AIVEN_LOG = bytes(range(256)) * 40
AIVEN_SEGMENT = dict.fromkeys(ORIGINAL_PARTS, OFFSET_INDEX) | {Part.LOG: AIVEN_LOG}
AIVEN_MANIFESTS = [
    AivenStorageManager(256).objects(AIVEN_SEGMENT)[Part.MANIFEST],
    AivenStorageManager(256, compression=True).objects(AIVEN_SEGMENT)[Part.MANIFEST],
    (
        b'{"version":"1","chunkIndex":{"type":"fixed","originalChunkSize":256,"originalFileSize":600,'
        b'"transformedChunkSize":284,"finalTransformedChunkSize":116},"segmentIndexes":{"offset":{"position":0,"size":0},'
        b'"timestamp":{"position":0,"size":40},"producerSnapshot":{"position":40,"size":38},"leaderEpoch":{"position":78,'
        b'"size":36},"transaction":null},"compression":false,"encryption":{"dataKey":"key1:AAECAwQF","aad":"AAEC"}}'
    ),
]
AIVEN_CHUNK_SIZES = [encoded_sizes([1_000_000, 1_000_000 + spread, 1_000_020, 7]) for spread in (10, 300, 70_000)]
AIVEN_CUSTOM_METADATA = [bytes.fromhex("020002c801020404666f6f"), bytes.fromhex("03000164010303702f020303612f")]

READERS = [
    Reader("metadata event", EVENTS, decode_event),
    *(section_reader(codec) for codec in Codec if codec is not Codec.NONE),
    Reader("record batch", list(BATCHES.values()), read_batch),
    Reader("log", [BATCHES[Codec.NONE] * 3, KRAFT_SNAPSHOT], read_log),
    Reader("log as columns", EVENT_LOGS, read_log_columns),
    Reader("metadata event as columns", EVENTS, read_event_columns),
    Reader("WAL event", WAL_EVENTS, decode_wal_event),
    Reader("WAL event as columns", WAL_EVENTS, read_wal_columns),
    Reader("diskless coordinator's record", DISKLESS_RECORDS, decode_diskless_record),
    Reader("index of a combined object", [WAL_OBJECT], read_index, sealed_batches),
    Reader("offset index as columns", [OFFSET_INDEX], read_offset_index_columns),
    Reader("time index as columns", [TIME_INDEX], read_time_index_columns),
    Reader("control record", CONTROL_RECORDS, read_control_record),
    Reader("cluster metadata record", KRAFT_RECORDS, decode_kraft_record),
    Reader("KRaft log", [KRAFT_SNAPSHOT], read_metadata_log, sealed_batches),
    Reader("KRaft log as lines", [KRAFT_SNAPSHOT], read_metadata_lines, sealed_batches),
    Reader("KRaft snapshot", [KRAFT_SNAPSHOT], read_snapshot, sealed_batches),
    Reader("offset index", [OFFSET_INDEX], read_offset_index),
    Reader("time index", [TIME_INDEX], read_time_index),
    Reader("transaction index", [encode_transaction_index(ABORTED)], read_transaction_index),
    Reader(
        "producer snapshot", [encode_producer_snapshot(PRODUCERS)], read_producer_snapshot, sealed_producer_snapshot
    ),
    Reader("remote log snapshot", [REMOTE_LOG_SNAPSHOT], read_remote_log_snapshot),
    Reader("flat file", [FLAT_FILE], read_flat_file),
    Reader("leader-epoch checkpoint", [b"0\n2\n0 0\n2 60\n"], read_leader_epoch_checkpoint),
    Reader("offset checkpoint", [b"0\n2\na-topic 0 42\nb 1 7\n"], read_offset_checkpoint),
    Reader("committed offsets", COMMITTED_OFFSETS, read_committed_offsets),
    Reader("Java properties", [PROPERTIES], read_properties),
    Reader("meta.properties", [PROPERTIES], read_meta_properties),
    Reader("partition.metadata", [PARTITION_METADATA], read_partition_metadata),
    Reader("quorum-state", QUORUM_STATES, read_quorum_state),
    Reader("arriving snapshot", [KRAFT_SNAPSHOT], read_arriving_snapshot, sealed_batches),
    Reader("a snapshot's times", [KRAFT_SNAPSHOT], snapshot_times, sealed_batches),
    Reader("clean shutdown", [CLEAN_SHUTDOWN], read_clean_shutdown),
    Reader("file names", [name.encode() for name in NAMES], read_names),
    Reader("file kind", OF_ANY_KIND, partial(identify, "a file")),
    Reader("Aiven's manifest", AIVEN_MANIFESTS, read_manifest),
    Reader("Aiven's chunk sizes", AIVEN_CHUNK_SIZES, partial(decode_chunk_sizes, count=4)),
    Reader("Aiven's custom metadata", AIVEN_CUSTOM_METADATA, read_custom_metadata),
]
"""All that is fuzzed, a line a reader."""
