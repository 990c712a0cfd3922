"""Do the control plane's files and batches agree with each other, before any byte is read?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.counted import counted
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables, FileState
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, column, number_of_each, whole_numbers
from tieredctl_inkless.ops.diskless.file_keys import FileKeys
from tieredctl_inkless.ops.diskless.finding_places import batch_documents, object_finding, partition_finding
from tieredctl_inkless.ops.diskless.object_check import mismatched

NOT_MARKED = -1


@dataclass(frozen=True, slots=True)
class FileRows:
    """Files as columns, and the batches of each: `order[bounds[i]:bounds[i + 1]]` are rows of `batches`."""

    keys: FileKeys
    ids: Ints
    sizes: Ints
    states: Ints
    marked_ms: Ints
    """-1 where a file is not marked for deletion."""
    committed_ms: Ints
    order: Ints
    """The batches by file and byte offset; without the batches of files that are not there."""
    bounds: Ints
    strays: Ints
    """Rows of `batches` whose file is not there."""

    @property
    def batch_counts(self) -> Ints:
        return np.diff(self.bounds)

    def batches_of(self, number: int) -> Ints:
        """Rows of `batches`, by byte offset."""
        return self.order[self.bounds[number] : self.bounds[number + 1]]


def file_rows(tables: ControlPlaneTables, rows: BatchRows) -> FileRows:
    """Joined by file id."""
    files = tables.files
    ids = column(files, "fileId")
    number, is_there = number_of_each(rows.files, ids)
    with_file = np.flatnonzero(is_there)
    order = with_file[np.lexsort((rows.starts[with_file], number[with_file]))]
    marked = files["markedForDeletionMs"].fill_null(NOT_MARKED)
    return FileRows(
        FileKeys(files["objectKey"]),
        ids,
        column(files, "size"),
        column(files, "state"),
        whole_numbers(marked),
        column(files, "committedMs"),
        order,
        np.searchsorted(number[order], np.arange(len(ids) + 1)),
        np.flatnonzero(~is_there),
    )


def check_files(files: FileRows, rows: BatchRows, names: Sequence[TopicIdPartition]) -> tuple[list[Finding], Flags]:
    """What contradicts what; and which batches have doubtful coordinates, all of them reported."""
    owner = np.repeat(np.arange(len(files.ids)), files.batch_counts)
    beyond = _beyond_the_end(files, rows, owner)
    within = ~beyond[files.order]
    shares = _claimed_twice(rows, files.order[within], owner[within])
    findings = [*_strays(files, rows, names), *_states(files)]
    for number in np.unique(owner[beyond[files.order]]).tolist():
        own = files.batches_of(number)
        those = rows.at(own[beyond[own]])
        why = f"the file was committed with {files.sizes[number]} bytes"
        findings.append(mismatched(files.keys[number], those, [why] * len(those), names))
    for number in np.unique(owner[shares[files.order]]).tolist():
        own = files.batches_of(number)
        both = rows.at(own[shares[own]])
        message = f"{counted(len(both), 'batch', 'batches')} claim bytes that another one claims"
        findings.append(
            object_finding(
                DisklessCode.COORDINATES_OVERLAP,
                files.keys[number],
                message,
                position=int(both.starts[0]),
                batches=batch_documents(both, names),
            )
        )
    return findings, beyond | shares


def _strays(files: FileRows, rows: BatchRows, names: Sequence[TopicIdPartition]) -> Iterator[Finding]:
    lost = rows.at(files.strays)
    for file in np.unique(lost.files).tolist():
        mine = lost.at(lost.files == file)
        offsets = (int(mine.bases[0]), int(mine.lasts[0]))
        message = f"offsets {offsets[0]} to {offsets[1]} lie in file {file}, which the control plane does not have"
        if len(mine) > 1:
            message += f"; so do {counted(len(mine) - 1, 'more batch', 'more batches')}"
        yield partition_finding(
            DisklessCode.FILE_ROW_MISSING,
            names[int(mine.partitions[0])],
            message,
            offsets=offsets,
            fileId=file,
            batches=batch_documents(mine, names),
        )


def _states(files: FileRows) -> Iterator[Finding]:
    counts = files.batch_counts
    deleting, uploaded = files.states == FileState.DELETING, files.states == FileState.UPLOADED
    marked = files.marked_ms != NOT_MARKED
    wrong = (deleting & ((counts > 0) | ~marked)) | (uploaded & ((counts == 0) | marked)) | ~(deleting | uploaded)
    for number in np.flatnonzero(wrong).tolist():
        count, state = int(counts[number]), FileState(int(files.states[number]))
        holds = f"holds {counted(count, 'batch', 'batches')}" if count else "holds no batch"
        mark = "is marked for deletion" if marked[number] else "is not marked for deletion"
        message = f"the file is {state.name.lower()}, {holds} and {mark}"
        severity = None
        if state is FileState.DELETING and count:
            message, severity = f"{message}: brokers delete it with all its records", Severity.CRITICAL
        yield object_finding(
            DisklessCode.FILE_STATE_MISMATCH,
            files.keys[number],
            message,
            severity=severity,
            state=state.name.lower(),
            batchCount=count,
        )


def _beyond_the_end(files: FileRows, rows: BatchRows, owner: Ints) -> Flags:
    """Flags the batches that do not end within the size with which their file was committed."""
    beyond = np.zeros(len(rows), np.bool_)
    # A sum of two numbers may be more than one can hold.
    beyond[files.order] = rows.sizes[files.order] > files.sizes[owner] - rows.starts[files.order]
    return beyond


def _claimed_twice(rows: BatchRows, order: Ints, owner: Ints) -> Flags:
    """Flags the batches that share bytes with another one of their file, of some batches by file and byte offset."""
    shares = np.zeros(len(rows), np.bool_)
    starts, ends = rows.starts[order], rows.ends[order]
    by_end = np.lexsort((ends, owner))
    rank = np.empty(len(order), np.int64)
    rank[by_end] = np.arange(len(order))
    # Of the batches of the file until there, the one that reaches farthest.
    farthest = by_end[np.maximum.accumulate(rank)]
    hit = np.flatnonzero((owner[1:] == owner[:-1]) & (starts[1:] < ends[farthest[:-1]])) + 1
    shares[order[hit]] = True
    shares[order[farthest[hit - 1]]] = True
    return shares
