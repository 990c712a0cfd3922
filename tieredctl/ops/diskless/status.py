"""What a control plane holds, counted: files by state, partitions, and what a bucket has besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.diskless.control_plane import ControlPlaneTables, FileState
from tieredctl.model.ids import uuid_text
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.storage.protocol import StoredObject

_PARTITION = ["topicId", "partition"]


@dataclass(slots=True)
class Uncommitted:
    """Objects of a bucket that no file of the control plane is: uploads under way, and what they left."""

    objects: int = 0
    bytes: int = 0
    all_objects: int = 0
    oldest: StoredObject | None = None

    def document(self) -> Document:
        oldest = self.oldest
        return {
            "objects": self.objects,
            "bytes": self.bytes,
            "oldest": None if oldest is None else iso_8601(oldest.last_modified_ms),
            "oldestKey": None if oldest is None else oldest.key,
        }


def uncommitted(listed: Iterable[StoredObject], tables: ControlPlaneTables) -> Uncommitted:
    """Those of a listing that began before the control plane was read."""
    known = set(tables.files["objectKey"].to_pylist())
    found = Uncommitted()
    for stored in listed:
        found.all_objects += 1
        if stored.key not in known:
            found.objects += 1
            found.bytes += stored.size
            if found.oldest is None or stored.last_modified_ms < found.oldest.last_modified_ms:
                found.oldest = stored
    return found


def status_summary(tables: ControlPlaneTables, bucket: Uncommitted | None) -> Document:
    """The control plane as a whole; of the bucket, where it was listed, what is not committed."""
    live_bytes = _sum(tables.batches["byteSize"])
    states = {state.name.lower(): _files(tables.files, state) for state in FileState}
    uploaded = states[FileState.UPLOADED.name.lower()]
    return {
        "schemaVersion": tables.schema_version,
        "readAt": iso_8601(tables.read_ms),
        "topics": pc.count_distinct(tables.logs["topicId"]).as_py(),
        "partitions": tables.logs.num_rows,
        "batches": tables.batches.num_rows,
        "producerStates": tables.producers.num_rows,
        "files": states,
        "liveBytes": live_bytes,
        "unreferencedBytes": uploaded["bytes"] - live_bytes,
        "objects": None if bucket is None else bucket.all_objects,
        "uncommitted": None if bucket is None else bucket.document(),
    }


def partition_documents(tables: ControlPlaneTables) -> Iterator[Document]:
    """Each partition with its offsets, batches, and how many files hold them."""
    counts = {
        (row["topicId"], row["partition"]): row
        for row in tables.batches.group_by(_PARTITION)
        .aggregate([("batchId", "count"), ("fileId", "count_distinct")])
        .to_pylist()
    }
    for log in tables.logs.to_pylist():
        counted = counts.get((log["topicId"], log["partition"]), {})
        yield {
            "topic": log["topic"],
            "topicId": uuid_text(log["topicId"]),
            "partition": log["partition"],
            "logStartOffset": log["logStartOffset"],
            "highWatermark": log["highWatermark"],
            "disklessStartOffset": log["disklessStartOffset"],
            "remoteLogStartOffset": log["remoteLogStartOffset"],
            "batches": counted.get("batchId_count", 0),
            "files": counted.get("fileId_count_distinct", 0),
            "bytes": log["byteSize"],
        }


def _files(files: pa.Table, state: FileState) -> Document:
    of_state = files.filter(pc.equal(files["state"], pa.scalar(state.value, pa.int16())))
    since = of_state["markedForDeletionMs" if state is FileState.DELETING else "committedMs"]
    oldest = pc.min(since).as_py()
    return {
        "files": of_state.num_rows,
        "bytes": _sum(of_state["size"]),
        "oldest": None if oldest is None else iso_8601(oldest),
    }


def _sum(values: Any) -> int:
    return pc.sum(values).as_py() or 0
