"""What forbids to remove anything by a control plane: the one gate of every command that judges by it.

By one that lost rows, is late, belongs to another bucket, or promises what is not there, needed objects look orphaned.
A plan is refused by it; who only looks calls nothing orphaned, foreign or sound by it, and says that the answer is
incomplete.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import Severity
from tieredctl.model.findings import Finding
from tieredctl.ops.orphan_removal.limits import demand_promised
from tieredctl_inkless.diskless.control_plane import ControlPlaneTables, FileState
from tieredctl_inkless.model.finding_codes import DisklessCode
from tieredctl_inkless.ops.diskless.batch_rows import BatchRows, Partitions, numbered
from tieredctl_inkless.ops.diskless.bucket import DisklessBucket, demand_overlap
from tieredctl_inkless.ops.diskless.bucket_fit import BucketFit
from tieredctl_inkless.ops.diskless.file_check import FileRows, check_files, file_rows
from tieredctl_inkless.ops.diskless.offset_check import check_offsets

_LOSSES = (DisklessCode.FILE_ROW_MISSING, FindingCode.OFFSET_GAP)
"""What a control plane looks like that lost rows: an object without a file may be one of theirs."""


def bucket_fit(bucket: DisklessBucket, min_age_ms: int, now_ms: int) -> BucketFit:
    """A bucket and its control plane, compared object by object. `now_ms` is the time by which ages are taken."""
    fit = BucketFit(bucket.store.url, bucket.files.keys, now_ms - min_age_ms, now_ms)
    for batch in bucket.batches():
        fit.look_at_columns(batch)
    return fit


def doubt_about(bucket: DisklessBucket, fit: BucketFit) -> TieredctlError | None:
    """Why nothing may be removed from a bucket, if anything speaks against it."""
    lost = _lost_rows(bucket.tables, bucket.rows, bucket.partitions, bucket.files)
    if lost is not None:
        return lost
    try:
        demand_overlap(bucket)
        fit.demand()
    except TieredctlError as error:
        return error
    return None


def doubt_of_promises(missing: Sequence[str], url: str) -> TieredctlError | None:
    """Why nothing may be removed while a bucket lacks objects that are promised, by their keys: what looks orphaned may
    be theirs. A plan may allow for some that are known to be lost."""
    try:
        demand_promised(missing, 0, url)
    except TieredctlError as error:
        return error
    return None


def doubt_about_tables(tables: ControlPlaneTables) -> TieredctlError | None:
    """The same of the control plane alone."""
    partitions, rows, _ = numbered(tables)
    return _lost_rows(tables, rows, partitions, file_rows(tables, rows))


def doubt_about_object(tables: ControlPlaneTables, url: str) -> TieredctlError | None:
    """The same where an object of a bucket is to be told of which it has no file, or not all batches."""
    if not tables.files.num_rows:
        return TieredctlError(ErrorCode.NO_OVERLAP, f"The control plane has none of the objects in {url}.")
    return doubt_about_tables(tables)


def demand_sound(tables: ControlPlaneTables) -> None:
    """Raises TieredctlError `control-plane-doubtful` for a standby, and where rows were lost."""
    if doubt := doubt_about_tables(tables):
        raise doubt


def demand_primary(*, is_standby: bool) -> None:
    """Raises TieredctlError `control-plane-doubtful` for a standby: it may lack the last commits."""
    if is_standby:
        message = "The control plane is a standby, which may lack the last commits: nothing is removed by it."
        hint = "Give --control-plane the primary, to which brokers commit."
        raise TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, message, hint=hint)


def doubt_finding(doubt: TieredctlError, subject: str) -> Finding:
    """What a doubt means to those who only look; `subject` is the store, or the database."""
    message = f"nothing is known to be orphaned or sound by it: {doubt.message.removesuffix('.')}"
    evidence = {"error": doubt.code.value}
    return Finding(DisklessCode.CONTROL_PLANE_DOUBTFUL, subject, message, evidence)


def _is_lost_row(finding: Finding) -> bool:
    is_log_lost = finding.code is DisklessCode.LOG_ROW_MISMATCH and finding.severity is Severity.CRITICAL
    return finding.code in _LOSSES or is_log_lost


def _lost_rows(
    tables: ControlPlaneTables, rows: BatchRows, partitions: Partitions, files: FileRows
) -> TieredctlError | None:
    try:
        demand_primary(is_standby=tables.is_standby)
    except TieredctlError as standby:
        return standby
    for what in _losses(tables, rows, partitions, files):
        message = f"The control plane lost rows: {what}."
        hint = "An object without a file may hold those records. See `tieredctl diskless verify`."
        return TieredctlError(ErrorCode.CONTROL_PLANE_DOUBTFUL, message, hint=hint)
    return None


def _losses(tables: ControlPlaneTables, rows: BatchRows, partitions: Partitions, files: FileRows) -> Iterator[str]:
    findings, doubted = check_files(files, rows, partitions.names)
    findings += check_offsets(tables, rows, partitions, rows.ids[doubted] if len(rows) else np.zeros(0, np.int64))
    for finding in filter(_is_lost_row, findings):
        yield f"{finding.code}: {finding.subject}: {finding.message}"
    # A commit writes file and batches together, and what deletes the last batch marks the file.
    if not len(rows) and (files.states == FileState.UPLOADED).any():
        yield "it has files with records, and not one batch"
