"""Records of `__diskless_metadata` for tests."""

from __future__ import annotations

from typing import Any

from tieredctl_proposals.model.diskless_records import (
    CommittedBatch,
    DisklessRecord,
    FileCommitted,
    PartitionCreated,
    RecordsDeleted,
    TopicDeleted,
)

from tieredctl.model.ids import uuid_text

TOPIC_ID = uuid_text(bytes.fromhex("00112233445566778899aabbccddeeff"))
COMMITTED_MS = 1700000000010


def committed_batch(partition: int = 3, first: int = 100, last: int = 101, **changes: Any) -> CommittedBatch:
    """A batch of 84 bytes at the beginning of its file."""
    batch = CommittedBatch(TOPIC_ID, partition, 2, 0, 84, first, last, COMMITTED_MS, COMMITTED_MS - 5, 0)
    return batch._replace(**changes)


def file_committed(key: str = "obj1", *batches: CommittedBatch, **changes: Any) -> FileCommitted:
    """A file with these batches, or one batch of partition 3; its size is where the last of them ends."""
    batches = batches or (committed_batch(),)
    fields: dict[str, Any] = {
        "object_key": key,
        "file_size": max(each.byte_offset + each.byte_size for each in batches),
        "uploader_broker_id": 1,
        "owner_ids": (0,),
        "batches": batches,
    }
    return FileCommitted(**fields | changes)


IDEMPOTENT = committed_batch(producer_id=5, producer_epoch=0, base_sequence=7, last_sequence=8)
ONE_OF_EACH: tuple[DisklessRecord, ...] = (
    PartitionCreated(topic_id=TOPIC_ID, topic="t", partition=3),
    TopicDeleted(topic_id=TOPIC_ID),
    file_committed("obj1", IDEMPOTENT),
    RecordsDeleted(topic_id=TOPIC_ID, partition=3, log_start_offset=60),
)
"""One of each kind, by apiKey."""
