"""How each small file of a log directory or of the remote log metadata manager is read and written."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from tieredctl.formats import (
    checkpoints,
    clean_shutdown,
    committed_offsets,
    flat_file,
    indexes,
    java_properties,
    meta_properties,
    partition_metadata,
    producer_snapshot,
    quorum_state,
    remote_log_snapshot,
)


class FileFormat(NamedTuple):
    """A file's reader and its writer."""

    read: Callable[[bytes], Any]
    encode: Callable[[Any], bytes]


LEADER_EPOCHS = FileFormat(checkpoints.read_leader_epoch_checkpoint, checkpoints.encode_leader_epoch_checkpoint)
OFFSET_CHECKPOINT = FileFormat(checkpoints.read_offset_checkpoint, checkpoints.encode_offset_checkpoint)
CLEAN_SHUTDOWN = FileFormat(clean_shutdown.read_clean_shutdown, clean_shutdown.encode_clean_shutdown)
COMMITTED_OFFSETS = FileFormat(committed_offsets.read_committed_offsets, committed_offsets.encode_committed_offsets)
FLAT_FILE = FileFormat(flat_file.read_flat_file, flat_file.encode_flat_file)
OFFSET_INDEX = FileFormat(indexes.read_offset_index, indexes.encode_offset_index)
TIME_INDEX = FileFormat(indexes.read_time_index, indexes.encode_time_index)
TRANSACTION_INDEX = FileFormat(indexes.read_transaction_index, indexes.encode_transaction_index)
PROPERTIES = FileFormat(java_properties.read_properties, java_properties.encode_properties)
META_PROPERTIES = FileFormat(meta_properties.read_meta_properties, meta_properties.encode_meta_properties)
PARTITION_METADATA = FileFormat(
    partition_metadata.read_partition_metadata, partition_metadata.encode_partition_metadata
)
PRODUCER_SNAPSHOT = FileFormat(producer_snapshot.read_producer_snapshot, producer_snapshot.encode_producer_snapshot)
QUORUM_STATE = FileFormat(quorum_state.read_quorum_state, quorum_state.encode_quorum_state)
REMOTE_LOG_SNAPSHOT = FileFormat(
    remote_log_snapshot.read_remote_log_snapshot, remote_log_snapshot.encode_remote_log_snapshot
)
