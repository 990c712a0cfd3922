"""Does a bucket hold what its control plane promises, and does the control plane agree with itself?"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.verify import in_order
from tieredctl.process.progress import note
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket
from tieredctl_inkless.ops.diskless.doubt import bucket_fit, doubt_about, doubt_finding, doubt_of_promises
from tieredctl_inkless.ops.diskless.file_check import check_files
from tieredctl_inkless.ops.diskless.finding_places import object_finding
from tieredctl_inkless.ops.diskless.judgement import Judge
from tieredctl_inkless.ops.diskless.moment import whole_moment
from tieredctl_inkless.ops.diskless.object_engine import ObjectEngine
from tieredctl_inkless.ops.diskless.object_reading import ObjectReport
from tieredctl_inkless.ops.diskless.object_tasks import ObjectTasks
from tieredctl_inkless.ops.diskless.offset_check import check_offsets
from tieredctl_inkless.ops.diskless.orphans import Judged, UnreferencedObjects
from tieredctl_inkless.ops.diskless.other_tier import OtherTier, other_tier
from tieredctl_inkless.ops.diskless.promised_objects import keys_missing, missing_objects, unlisted


@dataclass(slots=True)
class DisklessVerification(Verification):
    """Counts and findings. `batches` and `records` are of the record batches that were read; `rows` are the control
    plane's."""

    rows: int = 0
    producer_states: int = 0
    elsewhere: OtherTier = field(default_factory=OtherTier)
    """What was not looked at, since it is not in the diskless tier."""

    def summary(self) -> Document:
        shared = Verification.summary(self)
        own = {
            "files": self.segments,
            "batchRows": self.rows,
            "producerStates": self.producer_states,
            "notInDisklessTier": self.elsewhere.document(),
        }
        return own | {name: shared[name] for name in shared if name not in ("segments", "transactionIndexesUnknown")}


@dataclass(slots=True)
class _Run:
    """A verification under way."""

    bucket: DisklessBucket
    engine: ObjectEngine
    level: Level
    result: DisklessVerification
    doubted: list[Ints] = field(default_factory=list)
    missing: list[int] = field(default_factory=list)


def verify(bucket: DisklessBucket, engine: ObjectEngine, level: Level, older_than_ms: int) -> DisklessVerification:
    """Objects without a file are reported once they are older than `older_than_ms`, and so are files that were to be
    deleted. Raises what the engine does, and nothing else: what was not answered is a finding beside those that were
    made until then."""
    rows, partitions = bucket.rows, bucket.partitions
    result = DisklessVerification(level, rows=len(rows), producer_states=len(bucket.producers))
    result.elsewhere = other_tier(bucket.tables)
    run = _Run(bucket, engine, level, result)
    findings, doubted = check_files(bucket.files, rows, partitions.names)
    result.findings += findings
    run.doubted.append(rows.ids[doubted])
    _read_objects(run, doubted)
    result.findings += missing_objects(run.missing, bucket)
    result.findings += check_offsets(bucket.tables, rows, partitions, np.concatenate(run.doubted))
    if not result.silent:
        result.findings += _unreferenced(run, older_than_ms)
    result.findings[:] = in_order(result.findings)
    return result


def _read_objects(run: _Run, reported: Flags) -> None:
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
    tasks, done = ObjectTasks(bucket, np.flatnonzero(is_there), run.level, reported), 0
    for report in run.engine.read_objects(tasks, bucket.store, run.level) if len(tasks) else ():
        _count(run, report)
        done += report.objects
        note("objects read", done, len(tasks))
    if done != len(tasks):
        share = f"{done} of {counted(len(tasks), 'object')}"
        raise TieredctlError(ErrorCode.FAULT, f"The engine reported on {share}: nothing is known of the others.")


def _count(run: _Run, report: ObjectReport) -> None:
    result = run.result
    if report.silent or report.is_passed_over:
        result.not_looked_at += report.objects
        result.objects -= report.objects
        if report.silent and not result.silent:
            result.silent = report.silent.message
            key = run.bucket.files.keys[report.file]
            result.findings.append(object_finding(FindingCode.UNREADABLE, key, report.silent.message, error="store"))
    elif report.is_missing:
        run.missing.append(report.file)
    else:
        result.bytes_read += report.bytes_read
        result.batches += report.batches
        result.records += report.records
        result.findings += report.findings
        run.doubted.append(report.doubted)


def _unreferenced(run: _Run, older_than_ms: int) -> list[Finding]:
    bucket = run.bucket
    try:
        doubt = doubt_about(bucket, bucket_fit(bucket, older_than_ms, bucket.tables.read_ms))
        doubt = doubt or doubt_of_promises(keys_missing(run.result.findings), bucket.store.url)
        judge = Judge(
            whole_moment(bucket.tables, bucket.files, None if doubt is None else doubt.message), older_than_ms
        )
        totals = Judged(bucket.batches(), judge, bucket.control_plane, bucket.store).totals()
    except TieredctlError as error:
        return [_unanswered(bucket, error)]
    findings = list(totals.findings(bucket.store.url))
    # What a standby promises can be verified; and lost rows are reported one by one.
    is_told = any(one.severity >= Severity.ERROR for one in run.result.findings)
    if doubt and not bucket.tables.is_standby and not is_told:
        findings.append(doubt_finding(doubt, bucket.store.url))
    return findings


def _unanswered(bucket: DisklessBucket, error: TieredctlError) -> Finding:
    """What keeps the rest unknown, but not what was found until then."""
    evidence = {"error": error.code.value}
    about = UnreferencedObjects(1)
    return Finding(FindingCode.UNREADABLE, bucket.store.url, error.message, evidence, about=about)
