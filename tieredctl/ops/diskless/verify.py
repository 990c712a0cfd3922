"""Does a bucket hold what its control plane promises, and does the control plane agree with itself?"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from threading import Event

import numpy as np

from tieredctl.errors import TieredctlError
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.diskless.bucket import DisklessBucket
from tieredctl.ops.diskless.file_check import check_files
from tieredctl.ops.diskless.finding_places import object_finding
from tieredctl.ops.diskless.judgement import Judge
from tieredctl.ops.diskless.moment import whole_moment
from tieredctl.ops.diskless.object_reading import ObjectReport, ObjectTask, read_object
from tieredctl.ops.diskless.offset_check import check_offsets
from tieredctl.ops.diskless.orphans import Judged, UnreferencedObjects
from tieredctl.ops.diskless.producer_check import rows_of_producers
from tieredctl.ops.diskless.promised_objects import missing_objects, unlisted
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.verification.finding_order import in_order
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification

Progress = Callable[[int, int], None]
_TASKS_AT_ONCE = 1_000


@dataclass(slots=True)
class DisklessVerification(Verification):
    """Counts and findings. `batches` and `records` are of the record batches that were read; `rows` are the control
    plane's."""

    rows: int = 0
    producer_states: int = 0

    def summary(self) -> Document:
        shared = Verification.summary(self)
        own = {"files": self.segments, "batchRows": self.rows, "producerStates": self.producer_states}
        return own | {name: shared[name] for name in shared if name not in ("segments", "transactionIndexesUnknown")}


@dataclass(slots=True)
class _Run:
    """A verification under way."""

    bucket: DisklessBucket
    level: Level
    result: DisklessVerification
    doubted: list[Ints] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)


def verify(
    bucket: DisklessBucket, level: Level, older_than_ms: int, progress: Progress | None = None
) -> DisklessVerification:
    """Objects without a file are reported once they are older than `older_than_ms`, and so are files that were to be
    deleted. Raises nothing: what was not answered is a finding beside those that were made until then."""
    rows, partitions = bucket.rows, bucket.partitions
    result = DisklessVerification(level, rows=len(rows), producer_states=len(bucket.producers))
    run = _Run(bucket, level, result)
    found, doubted = check_files(bucket.files, rows, partitions.names)
    result.findings += found
    run.doubted.append(rows.ids[doubted])
    _read_objects(run, doubted, progress)
    result.findings += missing_objects(run.missing, bucket)
    result.findings += check_offsets(bucket.tables, rows, partitions, np.concatenate(run.doubted))
    if not result.silent:
        result.findings += _unreferenced(run, older_than_ms)
    result.findings[:] = in_order(result.findings)
    return result


def _read_objects(run: _Run, reported: Flags, progress: Progress | None) -> None:
    """Objects that are there are read; those that are not are gathered."""
    bucket, files, result = run.bucket, run.bucket.files, run.result
    result.segments = len(files.ids)
    try:
        run.missing += unlisted(bucket)
    except TieredctlError as error:
        result.not_looked_at = int(np.count_nonzero(files.batch_counts))
        result.silent = error.message
        result.findings.append(_unanswered(bucket, error))
        return
    is_there = files.batch_counts > 0
    is_there[run.missing] = False
    result.objects = int(np.count_nonzero(is_there))
    if run.level is Level.LISTING:
        # Of one that has the size with which it was committed, a listing tells nothing more.
        is_there &= bucket.sizes != files.sizes
    numbers = np.flatnonzero(is_there).tolist()
    tasks = _tasks(run, numbers, reported)
    for first in range(0, len(numbers), _TASKS_AT_ONCE):
        some = numbers[first : first + _TASKS_AT_ONCE]
        stopped = Event()

        def read(task: ObjectTask, stopped: Event = stopped) -> ObjectReport | None:
            if stopped.is_set():
                return None
            report = read_object(bucket.store, task, run.level)
            if report.silent:
                stopped.set()
            return report

        reports = in_parallel(bucket.store, read, list(islice(tasks, len(some))))
        _count(run, some, reports)
        if progress is not None:
            progress(first + len(some), len(numbers))
        if stopped.is_set():
            result.not_looked_at += len(numbers) - first - len(some)
            return


def _count(run: _Run, numbers: list[int], reports: Iterable[ObjectReport | None]) -> None:
    result = run.result
    for number, report in zip(numbers, reports, strict=True):
        if report is None or report.silent:
            result.not_looked_at += 1
            result.objects -= 1
            if report is not None and report.silent and not result.silent:
                result.silent = report.silent
                result.findings.append(
                    object_finding(FindingCode.UNREADABLE, run.bucket.files.keys[number], report.silent, error="store")
                )
            continue
        if report.is_missing:
            run.missing.append(number)
            continue
        result.bytes_read += report.bytes_read
        result.batches += report.batches
        result.records += report.records
        result.findings += report.findings
        run.doubted.append(report.doubted)


def _tasks(run: _Run, numbers: list[int], reported: Flags) -> Iterator[ObjectTask]:
    bucket, files, rows, producers = run.bucket, run.bucket.files, run.bucket.rows, run.bucket.producers
    owners = rows_of_producers(rows, producers) if run.level is Level.FULL else np.zeros(0, np.int64)
    by_owner = np.argsort(owners, kind="stable")
    sorted_owners = owners[by_owner]
    for number in numbers:
        own = files.batches_of(number)
        bounds = np.searchsorted(sorted_owners, own), np.searchsorted(sorted_owners, own, side="right")
        states = np.concatenate([by_owner[first:after] for first, after in zip(*bounds, strict=True)])
        place_of = np.argsort(own)
        places = place_of[np.searchsorted(own[place_of], owners[states])] if len(states) else states
        yield ObjectTask(
            files.keys[number],
            int(bucket.sizes[number]),
            int(files.sizes[number]),
            rows.at(own),
            (producers.at(states), places),
            bucket.partitions.names,
            reported[own],
        )


def _unreferenced(run: _Run, older_than_ms: int) -> list[Finding]:
    bucket = run.bucket
    judge = Judge(whole_moment(bucket.tables, bucket.files), older_than_ms)
    try:
        totals = Judged(bucket.batches(), judge, bucket.control_plane, bucket.store).totals()
    except TieredctlError as error:
        return [_unanswered(bucket, error)]
    return list(totals.findings(bucket.store.url))


def _unanswered(bucket: DisklessBucket, error: TieredctlError) -> Finding:
    """What keeps the rest unknown, but not what was found until then."""
    evidence = {"error": error.code.value}
    about = UnreferencedObjects(bucket.store.url)
    return Finding(FindingCode.UNREADABLE, bucket.store.url, error.message, evidence, about=about)
