"""What a control plane holds, counted: files by state, partitions, and what a bucket has besides."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.formats.arrow_columns import number_array, numbers_in
from tieredctl.formats.windows import Flags
from tieredctl.model.findings import Finding
from tieredctl.model.ids import uuid_text
from tieredctl.model.result_row import Column, ResultRow, Size, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.orphan_removal.limits import DEFAULT_AGE_MS
from tieredctl.ops.orphans.promised_segments import listing_was_short
from tieredctl.ops.remote.inventory import iso_8601
from tieredctl.ops.remote.listing import stored_object
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables, FileState
from tieredctl_inkless.ops.diskless.batch_rows import column, number_of_each
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket
from tieredctl_inkless.ops.diskless.doubt import (
    bucket_fit,
    doubt_about,
    doubt_about_tables,
    doubt_finding,
    doubt_of_promises,
)
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE
from tieredctl_inkless.ops.diskless.promised_objects import keys_missing, missing_objects, unlisted

_PARTITION = ["topicId", "partition"]


@dataclass(slots=True)
class Uncommitted:
    """Objects of a bucket that no file of the control plane is: uploads under way, what they left, and others."""

    objects: int = 0
    bytes: int = 0
    all_objects: int = 0
    oldest_key: str | None = None
    oldest_ms: int | None = None
    """In ms since the epoch, by the store's clock."""
    others: int = 0
    """Those that the control plane's brokers did not write, by their keys; they are not among `objects`."""
    other_bytes: int = 0

    def add(self, objects: pa.RecordBatch, are_uploads: Flags) -> None:
        """Objects by LISTING_SCHEMA, none of which is a file's."""
        sizes, times = numbers_in(objects.column("size")), numbers_in(objects.column("lastModifiedMs"))
        self.others += int((~are_uploads).sum())
        self.other_bytes += int(sizes[~are_uploads].sum())
        self.objects += int(are_uploads.sum())
        self.bytes += int(sizes[are_uploads].sum())
        rows = np.flatnonzero(are_uploads)
        if len(rows):
            oldest = stored_object(objects, int(rows[times[rows].argmin()]))
            if self.oldest_ms is None or oldest.last_modified_ms < self.oldest_ms:
                self.oldest_key, self.oldest_ms = oldest.key, oldest.last_modified_ms

    def document(self) -> Document:
        return {
            "objects": self.objects,
            "bytes": self.bytes,
            "oldest": None if self.oldest_ms is None else iso_8601(self.oldest_ms),
            "oldestKey": self.oldest_key,
        }


def uncommitted(bucket: DisklessBucket) -> Uncommitted:
    """The objects of a bucket that are not committed."""
    totals, keys = Uncommitted(), bucket.files.keys
    for batch in bucket.batches():
        totals.all_objects += len(batch)
        left = batch.take(number_array(np.flatnonzero(keys.numbers_of(batch.column("key")) == NO_FILE)))
        _, are_uploads = keys.are_uploads(left.column("key"))
        totals.add(left, are_uploads)
    return totals


def status_findings(tables: ControlPlaneTables, bucket: DisklessBucket | None, database: str) -> list[Finding]:
    """What forbids to remove anything by it, by the ages that plans have where none is given."""
    if bucket is None:
        doubt, subject, passed_over = doubt_about_tables(tables), database, list[str]()
    else:
        subject = bucket.store.url
        doubt = doubt_about(bucket, bucket_fit(bucket, DEFAULT_AGE_MS, tables.read_ms))
        doubt = doubt or doubt_of_promises(keys_missing(missing_objects(unlisted(bucket), bucket)), subject)
        passed_over = bucket.passed_over
    short = [listing_was_short(passed_over, subject)] if passed_over else []
    return short if doubt is None else [doubt_finding(doubt, subject), *short]


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


@dataclass(frozen=True, slots=True)
class DisklessPartition(ResultRow):
    """A partition of a diskless topic, by the control plane."""

    topic: str
    topic_id: Wide[str]
    partition: int
    log_start_offset: Annotated[int, Column("LOG-START")]
    high_watermark: int
    diskless_start_offset: Annotated[int | None, Column("DISKLESS-START", wide=True)]
    remote_log_start_offset: Annotated[int | None, Column("REMOTE-START", wide=True)]
    batches: int
    files: int
    bytes: Size[int]


def diskless_partitions(tables: ControlPlaneTables) -> Iterator[DisklessPartition]:
    """Each partition with its offsets, batches, and how many files hold them."""
    counts = {
        (row["topicId"], row["partition"]): row
        for row in tables.batches.group_by(_PARTITION)
        .aggregate([("batchId", "count"), ("fileId", "count_distinct")])
        .to_pylist()
    }
    for log in tables.logs.to_pylist():
        counted = counts.get((log["topicId"], log["partition"]), {})
        yield DisklessPartition(
            *(log["topic"], uuid_text(log["topicId"]), log["partition"], log["logStartOffset"], log["highWatermark"]),
            *(log["disklessStartOffset"], log["remoteLogStartOffset"], counted.get("batchId_count", 0)),
            *(counted.get("fileId_count_distinct", 0), log["byteSize"]),
        )


def _unreferenced_bytes(tables: ControlPlaneTables) -> int:
    """The bytes of uploaded files that no batch has."""
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
