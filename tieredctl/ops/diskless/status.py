"""What a control plane holds, counted: files by state, partitions, and what a bucket has besides."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.diskless.control_plane import ControlPlaneTables, FileState
from tieredctl.model.ids import uuid_text
from tieredctl.ops.diskless.batch_rows import column, number_of_each
from tieredctl.ops.diskless.orphans import folders_of, may_be_an_upload
from tieredctl.ops.documents import Document
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.storage.protocol import StoredObject

_PARTITION = ["topicId", "partition"]


@dataclass(slots=True)
class Uncommitted:
    """Objects of a bucket that no file of the control plane is: uploads under way, what they left, and others."""

    objects: int = 0
    bytes: int = 0
    all_objects: int = 0
    oldest: StoredObject | None = None
    others: int = 0
    """Those that the control plane's brokers did not write, by their keys; they are not among `objects`."""
    other_bytes: int = 0

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
    folders = folders_of(known)
    found = Uncommitted()
    for stored in listed:
        found.all_objects += 1
        if stored.key in known:
            continue
        if not may_be_an_upload(stored.key, folders):
            found.others += 1
            found.other_bytes += stored.size
        else:
            found.objects += 1
            found.bytes += stored.size
            if found.oldest is None or stored.last_modified_ms < found.oldest.last_modified_ms:
                found.oldest = stored
    return found


def status_summary(tables: ControlPlaneTables, bucket: Uncommitted | None) -> Document:
    """The control plane as a whole; of the bucket, where it was listed, what is not committed."""
    live_bytes = _sum(tables.batches["byteSize"])
    states = {state.name.lower(): _files(tables.files, state) for state in FileState}
    return {
        "schemaVersion": tables.schema_version,
        "readAt": iso_8601(tables.read_ms),
        "topics": pc.count_distinct(tables.logs["topicId"]).as_py(),
        "partitions": tables.logs.num_rows,
        "batches": tables.batches.num_rows,
        "producerStates": tables.producers.num_rows,
        "files": states,
        "liveBytes": live_bytes,
        "unreferencedBytes": _unreferenced_bytes(tables),
        "objects": None if bucket is None else bucket.all_objects,
        "uncommitted": None if bucket is None else bucket.document(),
        "others": None if bucket is None else {"objects": bucket.others, "bytes": bucket.other_bytes},
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


def _unreferenced_bytes(tables: ControlPlaneTables) -> int:
    """Of uploaded files, the bytes that no batch has."""
    files, batches = tables.files, tables.batches
    ids = column(files, "fileId")
    number, is_there = number_of_each(column(batches, "fileId"), ids)
    referenced = np.zeros(len(ids), np.int64)
    np.add.at(referenced, number[is_there], column(batches, "byteSize")[is_there])
    left = np.maximum(column(files, "size") - referenced, 0)
    return int(left[column(files, "state") == FileState.UPLOADED].sum())


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
