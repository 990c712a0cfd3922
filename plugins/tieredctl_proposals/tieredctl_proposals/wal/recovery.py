"""The events that a combined object's upload would have left, rebuilt from the object: for buckets whose metadata topic
is lost, or never was."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.errors import DecodeError
from tieredctl.formats.record_batches import HEADER_BYTES
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.model.wal_events import (
    NO_LEADER,
    RemoteLogSegmentMetadataEntry,
    RemoteWalCombinedLogSegmentMetadataUpdate,
)
from tieredctl_proposals.wal.reading import read_object_index
from tieredctl_proposals.wal.sections import QueueItem, queue_item
from tieredctl_proposals.wal.steps import Publish
from tieredctl_proposals.wal.upload import upload_steps


def recovered_events(store: ObjectStore, stored: StoredObject, metadata_partitions: int) -> Iterator[Publish]:
    """The events of the upload again, apart from leader epochs and the times of events: which leader uploaded, an
    object does not tell, nor what was decided about it later.

    Reads all of the object. Raises DecodeError where the object has no index, or anything in it is not sound.
    """
    index = read_object_index(store, stored)
    if index is None:
        raise DecodeError("the object has no index, and batches do not tell whose they are", HEADER_BYTES)
    items = [_described(store, stored, index, entry) for entry in index.entries]
    steps = upload_steps(
        items,
        index.combined_segment_id,
        broker_id=index.broker_id,
        metadata_partitions=metadata_partitions,
        clock_ms=lambda: index.event_timestamp_ms,
    )
    return (step for step in steps if isinstance(step, Publish))


def _described(
    store: ObjectStore,
    stored: StoredObject,
    index: RemoteWalCombinedLogSegmentMetadataUpdate,
    entry: RemoteLogSegmentMetadataEntry,
) -> QueueItem:
    records = store.read(stored.key, entry.start_file_position, entry.end_file_position + 1)
    return queue_item(
        entry.topic_id_partition,
        entry.segment_id,
        records,
        broker_id=index.broker_id,
        leader_epoch=NO_LEADER,
        event_timestamp_ms=index.event_timestamp_ms,
    )
