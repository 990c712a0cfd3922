"""Whether snapshots and the metadata log are whole and sound (KIP-630, Validation of Snapshot and Log).

Offline: how far the quorum had committed is in no file, so nothing here rests on the high watermark.

Whether a node's snapshots, log and leader epochs fit each other (KIP-630, Validation of Snapshot and Log).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

import numpy as np

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT, Transition, parse_kraft_snapshot_name
from tieredctl.formats.kraft_json import RecordLines
from tieredctl.formats.log_scan import Damage, LogBlock
from tieredctl.kraft.replica import BOOTSTRAP_SNAPSHOT, EpochStart, SnapshotId, disagreements
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import reading
from tieredctl.ops.snapshots.log_order import LogOrder
from tieredctl.ops.snapshots.record_files import RecordFile

_Part = LogBlock[HeaderColumns] | Damage | DecodeError
_MOST_OF_A_FILE = 10
"""Faults of one file that are findings of their own; the others are counted in one more."""


@dataclass(slots=True)
class SnapshotCheck:
    """What was read, and what was found."""

    snapshots: int = 0
    segments: int = 0
    records: int = 0
    confirmed: int = 0
    """Snapshots that are what the log before their end says; the others no log reaches."""
    findings: list[Finding] = field(default_factory=list)

    def summary(self) -> Document:
        return {
            "snapshots": self.snapshots,
            "segments": self.segments,
            "records": self.records,
            "confirmed": self.confirmed,
        }

    def read_files(self, files: Sequence[RecordFile]) -> None:
        """Reads files that each stand alone, to their end."""
        for file in files:
            if file.is_snapshot:
                self._snapshot(file)
            else:
                self._segments([file], [])

    def read_node(self, folder: Path, files: Sequence[RecordFile], left_over: Iterable[Path]) -> None:
        """Reads a node's snapshots and its log to their end, and looks whether they fit each other."""
        snapshots = [self._snapshot(file) for file in files if file.is_snapshot]
        segments = [file for file in files if not file.is_snapshot]
        if segments:
            log = self._segments(segments, [one.id.end_offset for one in snapshots if one.id is not None])
            self.findings += check_replica(folder, log, snapshots)
        for path in left_over:
            is_deleted = path.name.endswith(Transition.DELETED.value)
            what = "a node was deleting it, and does so" if is_deleted else "it was never finished: a node deletes it"
            message = f"{what} when it starts"
            self.findings.append(Finding(FindingCode.FOLDER_PASSED_OVER, str(path), message, {"file": str(path)}))

    def _snapshot(self, file: RecordFile) -> CheckedSnapshot:
        self.snapshots += 1
        faults = _Faults(file.path, FindingCode.KRAFT_SNAPSHOT_DAMAGED)
        lines = RecordLines(lambda _: True)
        epochs: set[int] = set()
        for part in self._parts(file, faults):
            if isinstance(part, LogBlock):
                epochs |= set(np.unique(part.headers["partitionLeaderEpoch"]).tolist())
                faults.take(lines, part)
            else:
                faults.add(part.reason, part.position)
        self._count(file, lines, faults)
        name = parse_kraft_snapshot_name(file.path.name)
        named = None if name is None else SnapshotId(name.epoch, name.end_offset)
        checked = CheckedSnapshot(file.path, named, frozenset(epochs), file.last_contained_ms(), faults.are_none)
        self.findings += misnamed(checked)
        return checked

    def _segments(self, segments: Sequence[RecordFile], wanted: Sequence[int]) -> LogOrder:
        """The log in segments, in their order; it is asked later about the records before the offsets in `wanted`."""
        log = LogOrder(segments[0].base_offset, wanted)
        for file in segments:
            self.segments += 1
            faults = _Faults(file.path, FindingCode.KRAFT_LOG_DAMAGED)
            lines = RecordLines(lambda _: True)
            for fault in log.begin_segment(file.base_offset):
                faults.add(fault.reason, fault.position)
            for part in self._parts(file, faults):
                if isinstance(part, LogBlock):
                    for fault in log.take(part):
                        faults.add(fault.reason, fault.position)
                    faults.take(lines, part)
                elif isinstance(part, Damage) and part.torn and file is segments[-1]:
                    self._torn(file, part)
                else:
                    faults.add(part.reason, part.position)
                    log.skip()
            self._count(file, lines, faults)
            log.is_whole &= faults.are_none
        return log

    def _parts(self, file: RecordFile, faults: _Faults) -> Iterator[_Part]:
        try:
            yield from file.blocks()
        except TieredctlError as error:
            faults.is_readable = False
            finding = Finding(FindingCode.UNREADABLE, str(file.path), error.message, {"file": str(file.path)})
            self.findings.append(finding)

    def _torn(self, file: RecordFile, damage: Damage) -> None:
        message = f"its last batch, at byte {damage.position}, was not written to its end"
        evidence = {"file": str(file.path), "position": damage.position}
        self.findings.append(Finding(FindingCode.KRAFT_LOG_TORN, str(file.path), message, evidence))

    def _count(self, file: RecordFile, lines: RecordLines, faults: _Faults) -> None:
        self.records += lines.counts.total()
        self.findings += faults.findings()
        for kind, count in sorted(lines.counts.items()):
            if not kind.is_known:
                version = "" if kind.version is None else f" version {kind.version}"
                message = f"{counted(count, 'record')} of type {kind.type}{version}, which is not known here"
                evidence = {"file": str(file.path), "type": kind.type, "records": count}
                subject = f"{file.path}: {kind.type}"
                self.findings.append(Finding(FindingCode.KRAFT_RECORD_UNKNOWN, subject, message, evidence))


class _Faults:
    """What is wrong with one file."""

    def __init__(self, path: Path, code: FindingCode) -> None:
        self._path = path
        self._code = code
        self._first: list[Finding] = []
        self.count = 0
        self.is_readable = True

    @property
    def are_none(self) -> bool:
        return self.is_readable and not self.count

    def add(self, reason: str, position: int) -> None:
        self.count += 1
        if len(self._first) < _MOST_OF_A_FILE:
            self._first.append(self._finding(f"{reason}, at byte {position}", position=position))

    def take(self, lines: RecordLines, block: LogBlock[HeaderColumns]) -> None:
        """Adds what of a block cannot be decoded."""
        for part in lines.of_block(block):
            if isinstance(part, Damage):
                self.add(part.reason, part.position)

    def findings(self) -> list[Finding]:
        more = self.count - len(self._first)
        return [*self._first, self._finding(f"{more} more faults", faults=more)] if more > 0 else self._first

    def _finding(self, message: str, **evidence: int) -> Finding:
        return Finding(self._code, str(self._path), message, {"file": str(self._path), **evidence})


@dataclass(frozen=True, slots=True)
class CheckedSnapshot:
    """A snapshot that was read to its end."""

    path: Path
    id: SnapshotId | None
    """By its name; None where that says none."""
    epochs: frozenset[int]
    """Of its batches."""
    last_contained_ms: int | None
    """When the last record that it contains was written, by its header."""
    is_sound: bool


def misnamed(snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Where a snapshot's batches have another epoch than its name: it was renamed, or is another one's copy."""
    others = sorted(snapshot.epochs - {snapshot.id.epoch}) if snapshot.id is not None else []
    if others:
        yield _misnamed(snapshot, f"its batches are of epoch {', '.join(map(str, others))}")


def check_replica(folder: Path, log: LogOrder, snapshots: Sequence[CheckedSnapshot]) -> Iterator[Finding]:
    """What of a node does not fit the rest of it."""
    yield from _log_start(folder, log, snapshots)
    yield from _log_end(folder, log, snapshots)
    for snapshot in snapshots:
        yield from _end_of_snapshot(log, snapshot)
    if log.is_whole:
        yield from _leader_epochs(folder / LEADER_EPOCH_CHECKPOINT, log)


def _log_start(folder: Path, log: LogOrder, snapshots: Sequence[CheckedSnapshot]) -> Iterator[Finding]:
    covering = [one for one in snapshots if one.is_sound and one.id is not None and one.id.end_offset >= log.start]
    if log.start > 0 and not covering:
        message = f"the log begins at offset {log.start}, and no sound snapshot reaches it"
        evidence = {"logStartOffset": log.start}
        yield Finding(FindingCode.KRAFT_LOG_START_UNCOVERED, str(folder), message, evidence)
    for one in snapshots:
        if one.id is not None and one.id != BOOTSTRAP_SNAPSHOT and one.id.end_offset < log.start:
            message = f"it ends before the log's start, {log.start}: a node deletes it when it starts"
            yield Finding(FindingCode.FOLDER_PASSED_OVER, str(one.path), message, {"file": str(one.path)})


def _log_end(folder: Path, log: LogOrder, snapshots: Sequence[CheckedSnapshot]) -> Iterator[Finding]:
    ids = [one.id for one in snapshots if one.id is not None]
    if not ids or log.end is None:
        return
    latest, last_epoch = max(ids), log.epochs[-1].epoch if log.epochs else 0
    if latest > SnapshotId(last_epoch, log.end):
        message = f"the log ends at {log.end}, before snapshot {latest}: a node empties the log when it starts"
        evidence = {"logEndOffset": log.end, "endOffset": latest.end_offset, "epoch": latest.epoch}
        yield Finding(FindingCode.KRAFT_LOG_BEFORE_SNAPSHOT, str(folder), message, evidence)


def _end_of_snapshot(log: LogOrder, snapshot: CheckedSnapshot) -> Iterator[Finding]:
    """Whether the log agrees about the last record that a snapshot contains."""
    if snapshot.id is None or snapshot.id.end_offset not in log.last_batches:
        return
    last = log.last_batches[snapshot.id.end_offset]
    for message in disagreements(snapshot.id, snapshot.last_contained_ms, last):
        yield _misnamed(snapshot, message)


def _misnamed(snapshot: CheckedSnapshot, message: str) -> Finding:
    assert snapshot.id is not None
    evidence = {"file": str(snapshot.path), "endOffset": snapshot.id.end_offset, "epoch": snapshot.id.epoch}
    return Finding(FindingCode.KRAFT_SNAPSHOT_MISNAMED, str(snapshot.path), message, evidence)


def _leader_epochs(path: Path, log: LogOrder) -> Iterator[Finding]:
    evidence = {"file": str(path)}
    try:
        with reading(path):
            entries = read_leader_epoch_checkpoint(path.read_bytes())
    except DecodeError as error:
        message = f"it cannot be read: {error.message}"
        yield Finding(FindingCode.KRAFT_EPOCHS_DISAGREE, str(path), message, evidence)
        return
    except TieredctlError:
        message = "it is not there to be compared with the log: a node makes it again"
        yield Finding(FindingCode.KRAFT_EPOCHS_DISAGREE, str(path), message, evidence, Severity.INFO)
        return
    stated = _within([EpochStart(entry.epoch, entry.start_offset) for entry in entries], log)
    if stated != log.epochs:
        said, found = (
            "; ".join(f"{one.epoch} from {one.start_offset}" for one in ones) for ones in (stated, log.epochs)
        )
        message = f"it says epochs {said or 'none'}, and the log has {found or 'none'}"
        yield Finding(FindingCode.KRAFT_EPOCHS_DISAGREE, str(path), message, evidence)


def _within(entries: list[EpochStart], log: LogOrder) -> list[EpochStart]:
    """Those of the log's own offsets: an earlier epoch begins with the log, and one after its end has no record."""
    end = log.end or 0
    bounds = [*(one.start_offset for one in entries), end]
    return [
        EpochStart(one.epoch, max(first, log.start))
        for one, (first, after) in zip(entries, pairwise(bounds), strict=True)
        if max(first, log.start) < min(after, end)
    ]
