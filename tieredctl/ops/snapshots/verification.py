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

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.batch_columns import HeaderColumns
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT, Transition, parse_kraft_snapshot_name
from tieredctl.formats.kraft_json import RecordLines
from tieredctl.formats.log_scan import Damage, LogBlock
from tieredctl.formats.windows import Ints
from tieredctl.kraft.replica import BOOTSTRAP_SNAPSHOT, EpochStart, LastBatch, SnapshotId, disagreements
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.pasteable import quoted
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.documents import Document
from tieredctl.ops.file_reading import reading
from tieredctl.ops.snapshots.record_files import RecordFile, record_files

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
    """The epochs of its batches."""
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
        in_file, in_log = (
            "; ".join(f"{one.epoch} from {one.start_offset}" for one in ones) for ones in (stated, log.epochs)
        )
        message = f"it says epochs {in_file or 'none'}, and the log has {in_log or 'none'}"
        yield Finding(FindingCode.KRAFT_EPOCHS_DISAGREE, str(path), message, evidence)


def _within(entries: list[EpochStart], log: LogOrder) -> list[EpochStart]:
    """The epochs of the log's own offsets: an earlier epoch begins with the log, and one after its end has no
    record."""
    end = log.end or 0
    bounds = [*(one.start_offset for one in entries), end]
    return [
        EpochStart(one.epoch, max(first, log.start))
        for one, (first, after) in zip(entries, pairwise(bounds), strict=True)
        if max(first, log.start) < min(after, end)
    ]


class LogOrder:
    """A log, as far as it was taken."""

    def __init__(self, start: int | None, wanted: Sequence[int]) -> None:
        """`start`: the first segment's base offset, where its name says it. `wanted`: snapshots' end offsets."""
        self.start = start or 0
        self.end: int | None = start
        """Exclusive; None after damage, and in a log that says nowhere where it starts."""
        self.epochs: list[EpochStart] = []
        self.last_batches: dict[int, LastBatch] = {}
        """By those of the wanted end offsets before which the log has a record."""
        self.is_whole = True
        self._wanted = np.array(sorted(set(wanted)), np.int64)

    def begin_segment(self, base_offset: int | None) -> Iterator[DecodeError]:
        """What is wrong where the next segment begins."""
        if base_offset is not None and self.end is not None and base_offset != self.end:
            yield DecodeError(f"it begins with offset {base_offset}, and what is before it ends at {self.end}", 0)
            self.end = base_offset

    def skip(self) -> None:
        """What comes next is damaged."""
        self.end = None

    def take(self, block: LogBlock[HeaderColumns]) -> Iterator[DecodeError]:
        """Adds batches, and says where they do not follow those before."""
        bases = block.headers["baseOffset"].astype(np.int64)
        lasts = bases + block.headers["lastOffsetDelta"]
        epochs = block.headers["partitionLeaderEpoch"].astype(np.int64)
        following = np.append(bases[0] if self.end is None else self.end, lasts[:-1] + 1)
        for row in np.flatnonzero(bases != following).tolist():
            yield DecodeError(f"a batch begins with offset {bases[row]}, not {following[row]}", _position(block, row))
        before = np.append(self.epochs[-1].epoch if self.epochs else -1, epochs[:-1])
        for row in np.flatnonzero(epochs < before).tolist():
            yield DecodeError(f"epoch {epochs[row]} follows epoch {before[row]}", _position(block, row))
        self.epochs += [EpochStart(int(epochs[row]), int(bases[row])) for row in np.flatnonzero(epochs > before)]
        self._remember(bases, lasts, epochs, block.headers["maxTimestamp"].astype(np.int64))
        self.end = int(lasts[-1]) + 1

    def _remember(self, bases: Ints, lasts: Ints, epochs: Ints, timestamps: Ints) -> None:
        rows = np.searchsorted(bases, self._wanted - 1, "right") - 1
        for wanted, row in zip(self._wanted.tolist(), rows.tolist(), strict=True):
            if row >= 0 and bases[row] <= wanted - 1 <= lasts[row]:
                self.last_batches[wanted] = LastBatch(int(lasts[row]), int(epochs[row]), int(timestamps[row]))


def _position(block: LogBlock[HeaderColumns], row: int) -> int:
    return block.file_position + int(block.positions[row])


_HINT = "Nothing was removed. See `tieredctl snapshot verify {path}`."
_OF_ONE_FILE = (FindingCode.KRAFT_SNAPSHOT_DAMAGED, FindingCode.UNREADABLE)


def demand_sound_node(cluster: OfflineCluster) -> None:
    """Raises TieredctlError where the latest snapshot or the log is damaged, contradicts the other, or has records
    whose effect is unknown.

    Damage inside older snapshots is no reason: no node starts from them. `cluster` must have been read from the folder.
    """
    latest = cluster.snapshot
    if latest is None:
        message = f"{cluster.path} has no snapshot: nothing of the log may go."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint="A node makes one when it is due.")
    hint = _HINT.format(path=quoted(str(cluster.path)))
    for finding in cluster.findings():
        is_unknown = finding.code is FindingCode.KRAFT_RECORD_UNKNOWN
        code = ErrorCode.METADATA_INCOMPLETE if is_unknown else ErrorCode.UNDECODABLE
        raise TieredctlError(code, f"{finding.subject}: {finding.message}.", hint=hint)
    files = record_files([cluster.path])
    if all(file.is_snapshot for file in files):
        message = f"{cluster.path} has no log: whether snapshot {latest} fits it cannot be checked."
        raise TieredctlError(ErrorCode.UNDECODABLE, message, hint=hint)
    check = SnapshotCheck()
    check.read_node(cluster.path, files, ())
    for finding in check.findings:
        if _is_a_reason(finding, latest):
            raise TieredctlError(ErrorCode.UNDECODABLE, f"{finding.subject}: {finding.message}.", hint=hint)


def _is_a_reason(finding: Finding, latest: SnapshotId) -> bool:
    if finding.severity is Severity.INFO or finding.code is FindingCode.KRAFT_RECORD_UNKNOWN:
        return False  # the latter in what goes: the rest was looked through above
    return finding.code not in _OF_ONE_FILE or not _is_an_older_snapshot(finding.subject, latest)


def _is_an_older_snapshot(path: str, latest: SnapshotId) -> bool:
    name = Path(path).name
    return parse_kraft_snapshot_name(name) is not None and name != latest.file_name
