"""Everything that a coordinator's database says, whatever ids it gives to rows."""

from __future__ import annotations

import sqlite3
from typing import Any

from tieredctl_proposals.model.diskless_requests import FoundBatch


def state_contents(connection: sqlite3.Connection) -> dict[str, Any]:
    """By partition and by file, in the form of the model's `contents`."""
    partitions = {}
    for identifier, topic_id, number, name, start, end in connection.execute("SELECT * FROM partitions").fetchall():
        batches = connection.execute(
            """SELECT batch_id, object_key, magic, byte_offset, byte_size, base_offset, last_offset,
                log_append_timestamp, batch_max_timestamp, timestamp_type
            FROM batches JOIN files ON files.id = file WHERE partition = ? ORDER BY base_offset""",
            (identifier,),
        )
        producers: dict[int, list[tuple[int, ...]]] = {}
        for producer_id, *batch in connection.execute(
            """SELECT producer_id, producer_epoch, base_offset, base_sequence, last_sequence
            FROM producer_batches WHERE partition = ? ORDER BY base_offset""",
            (identifier,),
        ):
            producers.setdefault(producer_id, []).append(tuple(batch))
        partitions[topic_id, number] = (name, start, end, list(map(FoundBatch._make, batches)), producers)
    files = {
        key: (size, broker_id, tuple(map(int, owners.split(","))), committed_ms, live, released_ms)
        for _, key, _, size, broker_id, owners, committed_ms, live, released_ms in connection.execute(
            "SELECT * FROM files"
        )
    }
    (next_batch_id,) = connection.execute("SELECT next_batch_id FROM applied").fetchone()
    return {"partitions": partitions, "files": files, "next batch": next_batch_id}
