"""Reads one object as deep as a level says, and checks it: work that runs anywhere."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from threading import Event

import numpy as np

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.diskless_objects import PRODUCED_BASE_OFFSET
from tieredctl.formats.record_batches import HEADER_BYTES, Attributes, BatchHeader, read_batch_header
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.second_reading import read_again
from tieredctl.ops.verification.report import Level, Unread
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, ProducerRows
from tieredctl_inkless.ops.diskless.file_keys import NO_FILE
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.object_check import LOG_APPEND_TIME, check_batches, mismatched, resized, spans_of
from tieredctl_inkless.ops.diskless.producer_check import check_producers
from tieredctl_inkless.ops.diskless.walked_object import walk

HEADERS_READ = 2
"""How many record batches' headers `Level.HEADERS` reads of an object at most."""
_AT_ONCE = 1_000


@dataclass(frozen=True, slots=True)
class ObjectTask:
    """An object to read, and what the control plane says of it."""

    file: int
    """The number of its file among `FileRows`."""
    key: str
    size: int
    """As listed, in bytes."""
    committed_size: int
    rows: BatchRows
    """The batches by byte offset."""
    states: tuple[ProducerRows, Ints]
    """Producer states of these batches, and for each the row that has its offset."""
    names: Sequence[TopicIdPartition]
    reported: Flags
    """Which rows are reported already, since they contradict other rows or the file."""


@dataclass(frozen=True, slots=True)
class ObjectReport:
    """The result of reading one object, or of several about which there is nothing else to say. Counts are of what was
    read, sound or not."""

    file: int = NO_FILE
    """The number of its file; NO_FILE where it is of several."""
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    findings: tuple[Finding, ...] = ()
    doubted: Ints = field(default_factory=lambda: np.zeros(0, np.int64))
    """The ids of the control plane's batches whose coordinates the object contradicts."""
    is_missing: bool = False
    silent: Unread | None = None
    """Why it could not be read, and no other object would be either."""
    objects: int = 1
    is_passed_over: bool = False
    """Whether these objects were not asked for, since the store was silent before."""

    @property
    def is_sound(self) -> bool:
        """Whether there is nothing to say but its counts."""
        return not (self.findings or self.is_missing or self.silent or self.is_passed_over or len(self.doubted))

    def and_sound(self, other: ObjectReport) -> ObjectReport:
        """Both of them in one, which are both sound."""
        return ObjectReport(
            NO_FILE,
            self.bytes_read + other.bytes_read,
            self.batches + other.batches,
            self.records + other.records,
            objects=self.objects + other.objects,
        )


Read = Callable[[ObjectStore, ObjectTask, Level], ObjectReport]


def read_objects(
    store: ObjectStore, tasks: Iterable[ObjectTask], level: Level, read: Read | None = None
) -> Iterator[ObjectReport]:
    """Reads objects in as many threads as suit the store: a report of each, in that order, and one of all those that
    are left once the store is silent. `read` is `read_object` or does it."""
    stopped, waiting = Event(), iter(tasks)

    def read_one(task: ObjectTask) -> ObjectReport:
        if stopped.is_set():
            return ObjectReport(task.file, is_passed_over=True)
        report = (read or read_object)(store, task, level)
        if report.silent:
            stopped.set()
        return report

    while not stopped.is_set() and (some := list(islice(waiting, _AT_ONCE))):
        yield from in_parallel(store, read_one, some)
    if left := sum(1 for _ in waiting):
        yield ObjectReport(objects=left, is_passed_over=True)


def read_object(store: ObjectStore, task: ObjectTask, level: Level) -> ObjectReport:
    """Raises nothing: what could not be read is in the report."""
    return replace(_read_twice(store, task, level), file=task.file)


def _read_twice(store: ObjectStore, task: ObjectTask, level: Level) -> ObjectReport:
    """Once, where nothing is found."""
    try:
        # One answer alone does not say that what was listed is missing.
        report = read_again(store, lambda at: _read(at, task, level), (ErrorCode.OBJECT_MISSING,))
        if level is not Level.LISTING and report.findings:
            # What is altered between the store and here is not altered in the store.
            again = _read(store.reconnected(), task, level)
            if again.findings != report.findings:
                message = "two reads gave different bytes"
                altered = object_finding(FindingCode.ALTERED_IN_TRANSIT, task.key, message)
                return replace(again, findings=(*again.findings, altered))
        return report
    except TieredctlError as error:
        if error.code is ErrorCode.OBJECT_MISSING:
            return ObjectReport(is_missing=True)
        if error.code in CONCERN_EVERY_OBJECT:
            return ObjectReport(silent=Unread.of(error))
        is_archived = error.code is ErrorCode.OBJECT_ARCHIVED
        code = FindingCode.OBJECT_ARCHIVED if is_archived else FindingCode.UNREADABLE
        finding = object_finding(code, task.key, error.message, error=error.code.value)
        return ObjectReport(findings=(finding,))


def _read(store: ObjectStore, task: ObjectTask, level: Level) -> ObjectReport:
    if level is Level.FULL:
        return _whole(store, task)
    if task.size != task.committed_size:
        beyond = task.rows.at(task.rows.ends > task.size)
        finding = resized(task.key, task.size, task.committed_size, beyond, task.names)
        return ObjectReport(findings=(finding,))
    return ObjectReport() if level is Level.LISTING else _headers(store, task)


def _whole(store: ObjectStore, task: ObjectTask) -> ObjectReport:
    key, read = task.key, 0

    def pieces() -> Iterator[bytes]:
        nonlocal read
        for piece in store.stream(key):
            read += len(piece)
            yield piece

    walked = walk(pieces(), task.size)
    if read != walked.size:
        walked = replace(walked, size=read)
    findings, doubted = check_batches(key, walked, task.rows, task.committed_size, task.names, task.reported)
    if not findings:
        findings += check_producers(key, walked, task.rows, spans_of(walked, task.rows), task.states, task.names)
    return ObjectReport(NO_FILE, read, len(walked.positions), walked.records, tuple(findings), doubted)


def _headers(store: ObjectStore, task: ObjectTask) -> ObjectReport:
    """The first record batch's header in the first and in the last batch of the control plane that is not reported
    already."""
    key, rows = task.key, task.rows
    findings: list[Finding] = []
    read, doubted, records = 0, [], 0
    chosen = sorted({*np.flatnonzero(~task.reported)[[0, -1]].tolist()}) if not task.reported.all() else []
    for row in chosen:
        start = int(rows.starts[row])
        data = store.read(key, start, start + HEADER_BYTES)
        read += len(data)
        why = None
        try:
            header = read_batch_header(data, 0, len(data))
        except DecodeError as error:
            why = f"byte {start}: {error.reason}"
        else:
            records += header.records_count
            why = _contradiction(header, rows, row)
        if why and not findings:
            findings.append(mismatched(key, rows.at([row]), [why], task.names))
            doubted.append(int(rows.ids[row]))
    return ObjectReport(NO_FILE, read, len(chosen), records, tuple(findings), np.array(doubted, np.int64))


def _contradiction(header: BatchHeader, rows: BatchRows, row: int) -> str | None:
    """How the first record batch of a row contradicts it."""
    offsets, size = int(rows.lasts[row] - rows.bases[row]) + 1, int(rows.sizes[row])
    count, latest = header.last_offset_delta + 1, int(rows.max_timestamps[row])
    if header.base_offset != PRODUCED_BASE_OFFSET:
        return f"base offset {header.base_offset} is not what brokers write"
    if header.size > size or (header.size == size) != (count == offsets) or count > offsets:
        return f"{offsets} offsets in {size} bytes are described, {count} in {header.size} are there"
    if header.max_timestamp > latest or (header.size == size and header.max_timestamp != latest):
        return f"the greatest timestamp described is {latest}, and {header.max_timestamp} is there"
    if bool(header.attributes & Attributes.LOG_APPEND_TIME) != (rows.timestamp_types[row] == LOG_APPEND_TIME):
        return f"timestamp type {rows.timestamp_types[row]} is described, another is there"
    return None
