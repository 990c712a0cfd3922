"""The snapshots of a node, or single ones: name, size, age, how each stands to the log, what retention makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.file_names import BOOTSTRAP_CHECKPOINT, KraftSnapshotName, Transition, parse_kraft_snapshot_name
from tieredctl.formats.log_scan import LogBlock
from tieredctl.kraft.replica import BOOTSTRAP_SNAPSHOT, SnapshotId
from tieredctl.kraft.retention import KeptSegment, KeptSnapshot, RetentionLimits, expired
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.result_row import Column, Quantity, ResultRow, Wide
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import reading, regular_size
from tieredctl.ops.snapshots.record_files import RecordFile, is_named_snapshot, record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck

_OF_THE_FILE = (FindingCode.KRAFT_SNAPSHOT_DAMAGED, FindingCode.UNREADABLE)
_BEFORE_THE_LOG = "it ends before the log's start: a node deletes it when it starts"
_NEVER_FINISHED = "it was never finished: a node deletes it when it starts"
_WAS_DELETED = "a node was deleting it, and does so when it starts"
_COMPLETE, _PART, _DELETED, _BOOTSTRAP, _DAMAGED = "complete", "part", "deleted", "bootstrap", "damaged"


@dataclass(frozen=True, slots=True)
class ListedSnapshot(ResultRow):
    """A snapshot, how it stands to the log, and whether retention lets it go; None is what is not known."""

    file: Annotated[str, Column("PATH", wide=True, after="reason")]
    state: str | None
    end_offset: int | None
    epoch: int | None
    last_contained_offset: Annotated[int | None, Column("LAST-CONTAINED", wide=True)]
    last_contained_log_timestamp: Annotated[int | None, Column("LAST-CONTAINED-MS", wide=True)]
    age_ms: Annotated[int | None, Column("AGE", Quantity.AGE)]
    size: Annotated[int, Column("SIZE", Quantity.SIZE, after="epoch")]
    log: str | None = None
    may_be_deleted: bool | None = None
    reason: Wide[str | None] = None


@dataclass(frozen=True, slots=True)
class LogRange:
    """What a node has of the log, by its files: a running node may have raised the start in memory."""

    start: int | None
    end: int | None
    """Exclusive; None where damage hides it."""
    segments: Sequence[KeptSegment]

    def document(self) -> Document:
        return {
            "logStartOffset": self.start,
            "logEndOffset": self.end,
            "highWatermark": None,  # in no file
        }


def log_range(segments: Sequence[RecordFile]) -> LogRange:
    """Reads the last segment alone. Raises TieredctlError."""
    if not segments:
        return LogRange(None, None, ())
    end = segments[-1].base_offset
    for part in segments[-1].blocks():
        if isinstance(part, LogBlock):
            last = part.headers[-1]
            end = int(last["baseOffset"]) + int(last["lastOffsetDelta"]) + 1
        elif isinstance(part, DecodeError) or not part.torn:
            end = None
            break
    kept = [KeptSegment(one.base_offset or 0, regular_size(one.path)) for one in segments]
    return LogRange(segments[0].base_offset, end, kept)


def node_rows(folder: Path, now_ms: int, limits: RetentionLimits) -> tuple[list[ListedSnapshot], LogRange]:
    """A row for each snapshot in a node's folder, finished or not, and what there is of the log. Raises
    TieredctlError."""
    with reading(folder):
        paths = sorted(path for path in folder.iterdir() if is_named_snapshot(path.name))
        segments = [file for file in record_files([folder]) if not file.is_snapshot]
        rows = [_row(path, now_ms) for path in paths]
        log = log_range(segments)
    finished: dict[SnapshotId, int] = {}
    for at, path in enumerate(paths):
        name = parse_kraft_snapshot_name(path.name)
        if name is not None and name.transition is None:
            finished[SnapshotId(name.epoch, name.end_offset)] = at
        elif name is not None:
            why = _WAS_DELETED if name.transition is Transition.DELETED else _NEVER_FINISHED
            rows[at] = replace(rows[at], may_be_deleted=True, reason=why)
    kept = [
        KeptSnapshot(one, rows[at].size, rows[at].last_contained_log_timestamp) for one, at in sorted(finished.items())
    ]
    may_go = expired(kept, log.segments, limits, now_ms)
    gone = {one.what.id: one.reason for one in may_go.removals if isinstance(one.what, KeptSnapshot)}
    gone |= dict.fromkeys(may_go.before_log, _BEFORE_THE_LOG)
    for one, at in finished.items():
        reason = gone.get(one)
        stays = "it is the latest, with which a node starts" if one == kept[-1].id else "the limits keep it"
        may_be_deleted = reason is not None
        rows[at] = replace(rows[at], log=_place(one, log), may_be_deleted=may_be_deleted, reason=reason or stays)
    return rows, log


def file_row(path: Path, now_ms: int) -> ListedSnapshot:
    """The row of a single snapshot, of which only the name and the content are known. Raises TieredctlError."""
    (file,) = record_files([path])
    if not file.is_snapshot:
        hint = "Give snapshots, or the folder that has them."
        raise TieredctlError(ErrorCode.USAGE, f"{path} is not a KRaft snapshot.", hint=hint)
    with reading(path):
        return _row(path, now_ms)


def checked(
    rows: Iterable[ListedSnapshot], contradicted: Iterable[Finding]
) -> tuple[list[ListedSnapshot], list[Finding]]:
    """The rows, and what is wrong inside their snapshots, which are read to their end, and what their logs contradict;
    one that is not whole and sound is no longer called complete."""
    of_logs = {finding.subject: finding for finding in contradicted}
    checked_rows, findings = [], []
    for row in rows:
        of_row = [of_logs[row.file]] if row.file in of_logs else []
        if of_row or row.state not in (_PART, _DELETED):
            check = SnapshotCheck()
            check.read_files([RecordFile(Path(row.file), is_snapshot=True)])
            of_row += [finding for finding in check.findings if finding.code in _OF_THE_FILE]
        checked_rows.append(replace(row, state=_DAMAGED) if of_row else row)
        findings += of_row
    return checked_rows, findings


def _row(path: Path, now_ms: int) -> ListedSnapshot:
    name = parse_kraft_snapshot_name(path.name)
    contained_ms = RecordFile(path, is_snapshot=True).last_contained_ms()
    return ListedSnapshot(
        str(path),
        _state(path.name, name),
        end_offset=name and name.end_offset,
        epoch=name and name.epoch,
        last_contained_offset=name.end_offset - 1 if name and name.end_offset else None,
        last_contained_log_timestamp=contained_ms,
        age_ms=now_ms - contained_ms if contained_ms else None,  # 0 stands for none
        size=regular_size(path),
    )


def _state(file_name: str, name: KraftSnapshotName | None) -> str | None:
    if name is None:
        return _BOOTSTRAP if file_name == BOOTSTRAP_CHECKPOINT else None
    if name.transition is None:
        return _BOOTSTRAP if SnapshotId(name.epoch, name.end_offset) == BOOTSTRAP_SNAPSHOT else _COMPLETE
    return _DELETED if name.transition is Transition.DELETED else _PART


def _place(one: SnapshotId, log: LogRange) -> str | None:
    """Where a snapshot ends, seen from the log: only within it are both contiguous."""
    if log.start is None:
        return None
    if one.end_offset < log.start:
        return "before"
    if log.end is None:
        return "unknown"
    return "within" if one.end_offset <= log.end else "after"
