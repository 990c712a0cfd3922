"""What is found in the metadata log and its snapshots."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

_REPLICATION = "kafka-metadata-quorum --bootstrap-server … describe --replication"
_DUMP = "kafka-dump-log --cluster-metadata-decoder --files FILE"

_INSPECT = "tieredctl snapshot inspect {file}"

QUORUM_FINDING_KINDS = (
    FindingKind(
        FindingCode.KRAFT_SNAPSHOT_DAMAGED,
        Severity.CRITICAL,
        "a KRaft snapshot is not whole and sound: no node can start from it",
        _INSPECT,
    ),
    FindingKind(
        FindingCode.KRAFT_SNAPSHOT_MISNAMED,
        Severity.ERROR,
        "a KRaft snapshot's name contradicts its batches, or the log",
        _INSPECT,
    ),
    FindingKind(
        FindingCode.KRAFT_SNAPSHOT_CONTRADICTED,
        Severity.CRITICAL,
        "a KRaft snapshot has another cluster than the log gives up to its end: one of them was altered",
        "tieredctl snapshot inspect {file} --cluster",
    ),
    FindingKind(
        FindingCode.KRAFT_LOG_DAMAGED,
        Severity.CRITICAL,
        "the metadata log has a damaged batch, or offsets or epochs that do not follow each other",
        _INSPECT,
    ),
    FindingKind(
        FindingCode.KRAFT_LOG_TORN,
        Severity.INFO,
        "the last batch of the metadata log was not written to its end: normal after a kill",
        _INSPECT,
    ),
    FindingKind(
        FindingCode.KRAFT_LOG_START_UNCOVERED,
        Severity.CRITICAL,
        "no sound snapshot has what came before the start of the metadata log",
        "tieredctl snapshot fetch --bootstrap-controller HOST:PORT",
    ),
    FindingKind(
        FindingCode.KRAFT_LOG_BEFORE_SNAPSHOT,
        Severity.WARNING,
        "the metadata log ends before the latest snapshot: a node empties it when it starts",
        "tieredctl snapshot ls …",
    ),
    FindingKind(
        FindingCode.KRAFT_EPOCHS_DISAGREE,
        Severity.ERROR,
        "the leader-epoch checkpoint of the metadata log contradicts the log",
        "tieredctl store inspect {file}",
    ),
    FindingKind(
        FindingCode.KRAFT_RECORD_UNKNOWN,
        Severity.WARNING,
        "metadata records of a type or version that a later release added: what they change is unknown",
        _DUMP,
        incomplete=True,
    ),
    FindingKind(
        FindingCode.KRAFT_RECORD_REFUSED,
        Severity.ERROR,
        "a metadata record that contradicts those before it: a node stops at it",
        _DUMP,
        incomplete=True,
    ),
    FindingKind(
        FindingCode.KRAFT_CLOCK_WRONG,
        Severity.WARNING,
        "times in the metadata log fall, or are after now: which topics were there before its end is unknown",
        _DUMP,
        incomplete=True,
    ),
    FindingKind(
        FindingCode.QUORUM_VOTER_LAGS,
        Severity.WARNING,
        "a controller that votes does not keep up with the leader: the quorum tolerates one failure less",
        _REPLICATION,
        moving=True,
    ),
    FindingKind(
        FindingCode.QUORUM_OBSERVER_LAGS,
        Severity.WARNING,
        "a broker does not keep up with the metadata log: it does not learn of new leaders and settings",
        _REPLICATION,
        moving=True,
    ),
    FindingKind(
        FindingCode.METADATA_SNAPSHOT,
        Severity.INFO,
        "age and size of a node's latest snapshot, or that they are unknown",
        "tieredctl doctor --log-dir DIR …",
    ),
    FindingKind(
        FindingCode.METADATA_SNAPSHOT_OVERDUE,
        Severity.WARNING,
        "a node makes no snapshots: it starts ever more slowly, and its log is never trimmed",
        "look in the node's log for SnapshotGenerator and SnapshotEmitter",
    ),
    FindingKind(
        FindingCode.METADATA_LOG_UNTRIMMED,
        Severity.WARNING,
        "a node keeps snapshots and log that its retention no longer keeps",
        "tieredctl snapshot clean DIR …",
    ),
)
