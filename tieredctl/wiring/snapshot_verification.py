"""`snapshot verify` and `ls`: the bytes of snapshots and logs, and whether a snapshot is what its log says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from tieredctl.kafka.metadata_log import MetadataLog
from tieredctl.kafka.snapshot_history import Contradiction, SnapshotHistory
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.snapshots.record_files import left_over_files, metadata_log_folder, record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck
from tieredctl.wiring.offline_cluster import in_sentences


def check_snapshots(paths: Sequence[Path]) -> SnapshotCheck:
    """Checks nodes' folders, and single files; a single snapshot is held against the log that it lies beside, too.
    Raises TieredctlError for what is not there, or has neither snapshot nor log."""
    check = SnapshotCheck()
    for path in paths:
        files = record_files([path])
        if path.is_dir():
            folder = metadata_log_folder(path)
            check.read_node(folder, files, left_over_files(folder))
        else:
            folder = path.resolve().parent
            check.read_files(files)
        _hold_against_log(check, folder, {file.path.name for file in files if file.is_snapshot})
    return check


def contradicted(folder: Path) -> list[Finding]:
    """What the log in a node's folder contradicts of the snapshots there. Raises TieredctlError."""
    return [_finding(one) for one in _history(folder).contradictions]


def _hold_against_log(check: SnapshotCheck, folder: Path, names: Collection[str]) -> None:
    if not names:
        return
    history = _history(folder)
    check.confirmed += sum(one.path.name in names for one in history.confirmed)
    check.findings += [_finding(one) for one in history.contradictions if one.snapshot.path.name in names]


def _history(folder: Path) -> SnapshotHistory:
    with in_sentences(folder):
        return SnapshotHistory.of(MetadataLog.opened(folder))


def _finding(one: Contradiction) -> Finding:
    evidence = {
        "file": str(one.snapshot.path),
        "heldAgainst": None if one.begun_with is None else str(one.begun_with.path),
        "changes": [change.words for change in one.changes[:_SHOWN]],
        "differences": len(one.changes),
    }
    return Finding(FindingCode.KRAFT_SNAPSHOT_CONTRADICTED, str(one.snapshot.path), one.words, evidence)


_SHOWN = 10
"""Differences that the evidence spells out."""
