"""Whether a node can start on its latest snapshot and the log, and both are of one history."""

from __future__ import annotations

from pathlib import Path

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.file_names import parse_kraft_snapshot_name
from tieredctl.kraft.replica import SnapshotId
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.offline_cluster import OfflineCluster
from tieredctl.ops.snapshots.record_files import record_files
from tieredctl.ops.snapshots.verification import SnapshotCheck

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
    hint = _HINT.format(path=cluster.path)
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
