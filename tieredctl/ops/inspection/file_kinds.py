"""Recognizes Kafka's files, by name and, where that is not enough, by the first bytes."""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum

from tieredctl.errors import DecodeError
from tieredctl.formats.clean_shutdown import CLEAN_SHUTDOWN_FILE
from tieredctl.formats.diskless_objects import begins_as_object, is_object_name
from tieredctl.formats.file_names import (
    BOOTSTRAP_CHECKPOINT,
    COMMITTED_OFFSETS,
    LEADER_EPOCH_CHECKPOINT,
    LOCK_FILE,
    OFFSET_CHECKPOINTS,
    REMOTE_LOG_SNAPSHOT,
    SegmentPart,
    parse_kraft_snapshot_name,
    without_transition,
)
from tieredctl.formats.flat_file import FLAT_FILE_MAGIC, TOPIC
from tieredctl.formats.kraft_snapshot import begins_as_snapshot
from tieredctl.formats.meta_properties import META_PROPERTIES_FILE
from tieredctl.formats.partition_metadata import PARTITION_METADATA_FILE
from tieredctl.formats.producer_snapshot import read_producer_snapshot
from tieredctl.formats.quorum_state import QUORUM_STATE_FILE
from tieredctl.formats.record_batches import read_batch_header
from tieredctl.formats.remote_log_snapshot import REMOTE_LOG_SNAPSHOT_HEADER
from tieredctl.formats.wire import reader


class FileKind(Enum):
    """The kinds of files in `store inspect`, by their names there."""

    COMMITTED_OFFSETS = "committed-offsets"
    REMOTE_LOG_SNAPSHOT = "remote-log-snapshot"
    FLAT_FILE = "flat-file"
    LOG = "log"
    DISKLESS_OBJECT = "diskless-object"
    OFFSET_INDEX = "offset-index"
    TIME_INDEX = "time-index"
    TRANSACTION_INDEX = "transaction-index"
    PRODUCER_SNAPSHOT = "producer-snapshot"
    LEADER_EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
    CHECKPOINT = "checkpoint"
    KRAFT_SNAPSHOT = "kraft-snapshot"
    META_PROPERTIES = "meta-properties"
    PARTITION_METADATA = "partition-metadata"
    QUORUM_STATE = "quorum-state"
    CLEAN_SHUTDOWN = "clean-shutdown"
    LOCK = "lock"


_BY_NAME = {
    META_PROPERTIES_FILE: FileKind.META_PROPERTIES,
    PARTITION_METADATA_FILE: FileKind.PARTITION_METADATA,
    LEADER_EPOCH_CHECKPOINT: FileKind.LEADER_EPOCH_CHECKPOINT,
    COMMITTED_OFFSETS: FileKind.COMMITTED_OFFSETS,
    REMOTE_LOG_SNAPSHOT: FileKind.REMOTE_LOG_SNAPSHOT,
    BOOTSTRAP_CHECKPOINT: FileKind.KRAFT_SNAPSHOT,
    QUORUM_STATE_FILE: FileKind.QUORUM_STATE,
    CLEAN_SHUTDOWN_FILE: FileKind.CLEAN_SHUTDOWN,
    LOCK_FILE: FileKind.LOCK,
    **dict.fromkeys(OFFSET_CHECKPOINTS, FileKind.CHECKPOINT),
}
_BY_PART = {
    SegmentPart.LOG: FileKind.LOG,
    SegmentPart.OFFSET_INDEX: FileKind.OFFSET_INDEX,
    SegmentPart.TIME_INDEX: FileKind.TIME_INDEX,
    SegmentPart.TRANSACTION_INDEX: FileKind.TRANSACTION_INDEX,
    SegmentPart.PRODUCER_SNAPSHOT: FileKind.PRODUCER_SNAPSHOT,
    SegmentPart.LEADER_EPOCH_CHECKPOINT: FileKind.LEADER_EPOCH_CHECKPOINT,
}

_PARTITION_METADATA = re.compile(rb"version:\s*[0-9]+\s*topic_id:")
_META_PROPERTIES = re.compile(rb"^cluster\.id\s*[=:]", re.MULTILINE)
_QUORUM_STATE = re.compile(rb'\{[^{}]*"leaderEpoch"\s*:.*"data_version"\s*:', re.DOTALL)
_CLEAN_SHUTDOWN = re.compile(rb'\{"version":[0-9]+,"brokerEpoch":')
_OFFSET_CHECKPOINT = re.compile(rb"0\r?\n[0-9]+\r?\n[A-Za-z0-9._-]+ [0-9]+ [0-9]+\r?\n")
_BARE_COMMITTED_OFFSETS = re.compile(rb"[0-9]+ [0-9]+(\r?\n|\Z)")
_TOPIC_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_SNAPSHOT_ENTRY = b"\x01\x03\x00"
_SNAPSHOT_ENTRY_AT = 22


def identify(name: str, head: bytes) -> FileKind | None:
    """The kind of a file called `name` that begins with `head`; None where neither shows it.

    A name decides where it is Kafka's own, or has the suffix of one of Kafka's. A checkpoint of two columns under
    another name may be a leader-epoch checkpoint or committed offsets, so its kind is unknown. An object of diskless
    topics is told by both: without its name it looks like a log.
    """
    own_name = without_transition(name)
    if own_name in _BY_NAME:
        return _BY_NAME[own_name]
    for part, kind in _BY_PART.items():
        if own_name.endswith(part.value):
            return kind
    if parse_kraft_snapshot_name(name) is not None:
        return FileKind.KRAFT_SNAPSHOT
    if is_object_name(name) and begins_as_object(head) and not begins_as_snapshot(head):
        return FileKind.DISKLESS_OBJECT
    return next((kind for kind, begins_so in _BY_CONTENT.items() if begins_so(head)), None)


def _begins_as_log(head: bytes) -> bool:
    try:
        return read_batch_header(head, 0, len(head)).base_offset >= 0
    except DecodeError:
        return False


def _is_producer_snapshot(head: bytes) -> bool:
    try:
        read_producer_snapshot(head)
    except DecodeError:
        return False
    return True


def _begins_as_remote_log_snapshot(head: bytes) -> bool:
    entry = head[_SNAPSHOT_ENTRY_AT : _SNAPSHOT_ENTRY_AT + len(_SNAPSHOT_ENTRY)]
    try:
        header, _ = reader(REMOTE_LOG_SNAPSHOT_HEADER)(head, 0, len(head))
    except DecodeError:
        return False
    return header["version"] == 0 and entry == _SNAPSHOT_ENTRY


def _begins_as_flat_file(head: bytes) -> bool:
    try:
        topic, _ = reader(TOPIC)(head, 1, len(head))
    except DecodeError:
        return False
    return head[0] == FLAT_FILE_MAGIC and _TOPIC_NAME.fullmatch(topic["topic-name"]) is not None


# From the most to the least certain.
_BY_CONTENT: dict[FileKind, Callable[[bytes], object]] = {
    FileKind.KRAFT_SNAPSHOT: begins_as_snapshot,
    FileKind.LOG: _begins_as_log,
    FileKind.PARTITION_METADATA: _PARTITION_METADATA.match,
    FileKind.META_PROPERTIES: _META_PROPERTIES.search,
    FileKind.QUORUM_STATE: _QUORUM_STATE.match,
    FileKind.CLEAN_SHUTDOWN: _CLEAN_SHUTDOWN.match,
    FileKind.CHECKPOINT: _OFFSET_CHECKPOINT.match,
    FileKind.COMMITTED_OFFSETS: _BARE_COMMITTED_OFFSETS.match,
    FileKind.PRODUCER_SNAPSHOT: _is_producer_snapshot,
    FileKind.REMOTE_LOG_SNAPSHOT: _begins_as_remote_log_snapshot,
    FileKind.FLAT_FILE: _begins_as_flat_file,
}
