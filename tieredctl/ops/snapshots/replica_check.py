"""Whether a node's snapshots, log and leader epochs fit each other (KIP-630, Validation of Snapshot and Log)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.formats.checkpoints import read_leader_epoch_checkpoint
from tieredctl.formats.file_names import LEADER_EPOCH_CHECKPOINT
from tieredctl.kraft.replica import BOOTSTRAP_SNAPSHOT, EpochStart, SnapshotId
from tieredctl.kraft.snapshot_end import disagreements
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.file_reading import reading
from tieredctl.ops.snapshots.log_order import LogOrder


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
