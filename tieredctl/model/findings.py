"""Findings: what is odd or wrong, as data with a name that scripts match on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tieredctl.errors import ExitCode, worst
from tieredctl.model.diskless_finding_kinds import DISKLESS_FINDING_KINDS
from tieredctl.model.doctor_finding_kinds import DOCTOR_FINDING_KINDS
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl.model.finding_subjects import SegmentSubject, Subject, read_subject
from tieredctl.model.quorum_finding_kinds import QUORUM_FINDING_KINDS
from tieredctl.model.tiering_finding_kinds import TIERING_FINDING_KINDS
from tieredctl.model.wal_finding_kinds import WAL_FINDING_KINDS

__all__ = ["FINDING_KINDS", "Finding", "FindingKind", "Severity", "exit_code_of"]


_HISTORY = "tieredctl metadata history {segmentId} …"
_READ = "tieredctl store inspect {file}"
_MEND = "tieredctl recover indexes {segmentId} …"
_EPOCHS = "tieredctl metadata epochs {topic}:{partition} …"

_TABLE = (
    FindingKind(
        FindingCode.OBJECT_MISSING,
        Severity.CRITICAL,
        "an object that the metadata promises is not in the store",
        _HISTORY,
    ),
    FindingKind(
        FindingCode.SIZE_MISMATCH, Severity.CRITICAL, "a segment's log is not as long as the metadata says", _HISTORY
    ),
    FindingKind(
        FindingCode.BATCH_CORRUPT,
        Severity.CRITICAL,
        "a record batch's length, magic or CRC-32C is wrong",
        "kafka-dump-log --deep-iteration --files {file}",
    ),
    FindingKind(
        FindingCode.OFFSETS_OUT_OF_ORDER,
        Severity.CRITICAL,
        "a batch's base offset does not rise",
        "kafka-dump-log --files {file}",
    ),
    FindingKind(
        FindingCode.RECORDS_OUTSIDE_SEGMENT,
        Severity.CRITICAL,
        "a batch holds offsets outside the segment's claim, or the log ends before an index proves",
        _HISTORY,
    ),
    FindingKind(
        FindingCode.EPOCH_MISMATCH,
        Severity.ERROR,
        "a batch's leader epoch contradicts the segment's leader epochs",
        _EPOCHS,
        altered=True,
    ),
    FindingKind(
        FindingCode.TIMESTAMP_BEYOND_CLAIM,
        Severity.WARNING,
        "a batch's timestamp lies beyond maxTimestampMs: retention by time may act too early",
        _HISTORY,
    ),
    FindingKind(
        FindingCode.MANIFEST_DAMAGED,
        Severity.CRITICAL,
        "a segment's manifest cannot be used: without it, the segment cannot be read",
        "tieredctl remote ls --segment-id {segmentId} …",
    ),
    FindingKind(FindingCode.INDEX_DAMAGED, Severity.CRITICAL, "an index does not describe its log", _MEND),
    FindingKind(
        FindingCode.PRODUCER_SNAPSHOT_DAMAGED, Severity.ERROR, "a producer snapshot cannot be used", _MEND, altered=True
    ),
    FindingKind(
        FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED,
        Severity.ERROR,
        "a leader-epoch checkpoint cannot be used, or contradicts the metadata",
        _READ,
        altered=True,
    ),
    FindingKind(
        FindingCode.TRANSACTION_INDEX_MISSING,
        Severity.ERROR,
        "aborted transactions have no entry: read_committed consumers would see their records",
        _MEND,
        altered=True,
    ),
    FindingKind(FindingCode.OFFSET_GAP, Severity.CRITICAL, "offsets that no remote segment holds", _EPOCHS),
    FindingKind(FindingCode.OFFSET_OVERLAP, Severity.INFO, "offsets that more than one segment holds", _EPOCHS),
    FindingKind(
        FindingCode.OFFSET_SHORTFALL,
        Severity.INFO,
        "a segment ends, or has a hole, before its claimed end: normal after compaction and aborted tails",
        _HISTORY,
    ),
    FindingKind(
        FindingCode.LOCAL_REMOTE_GAP,
        Severity.CRITICAL,
        "offsets between the remote end and the local log start are in neither",
        _EPOCHS,
    ),
    FindingKind(
        FindingCode.OBJECT_UNREFERENCED,
        Severity.WARNING,
        "an object that no segment of the metadata explains",
        "tieredctl orphans scan …",
    ),
    FindingKind(
        FindingCode.TOPIC_GONE,
        Severity.WARNING,
        "segments of a topic that is gone, which the metadata still promises",
        "tieredctl partition remove {topicId} …",
    ),
    FindingKind(
        FindingCode.MULTIPART_DEBRIS,
        Severity.WARNING,
        "an upload that was never completed",
        "tieredctl remote multipart …",
    ),
    FindingKind(
        FindingCode.EVENT_UNDECODABLE,
        Severity.ERROR,
        "an event that cannot be decoded: a broker's reader stops there",
        "tieredctl metadata format --metadata-partition {metadataPartition} …",
    ),
    FindingKind(
        FindingCode.EVENT_ILLEGAL,
        Severity.WARNING,
        "an event that the state machine does not allow, and Kafka drops",
        _HISTORY,
    ),
    FindingKind(
        FindingCode.SEGMENT_NOT_RECOVERED,
        Severity.WARNING,
        "a stored segment that will not be re-registered in the metadata",
        "tieredctl remote ls --segment-id {segmentId} …",
    ),
    FindingKind(
        FindingCode.TOPIC_NOT_IN_CLUSTER,
        Severity.WARNING,
        "the store has segments of a topic id that the cluster does not have",
        "tieredctl orphans scan --topic-id {topicId} …",
    ),
    FindingKind(
        FindingCode.LOG_START_ABOVE_STORE,
        Severity.ERROR,
        "a leader's log starts above segments in the store: brokers would delete them if they were registered",
        "tieredctl recover metadata --topic {topic} --partition {partition} -o json …",
    ),
    FindingKind(FindingCode.COPY_STUCK, Severity.WARNING, "a copy that began and never ended", _HISTORY),
    FindingKind(FindingCode.DELETE_STUCK, Severity.WARNING, "a deletion that began and never ended", _HISTORY),
    FindingKind(
        FindingCode.METADATA_TRUNCATED,
        Severity.ERROR,
        "the metadata log starts above offset 0: history is lost",
        "kafka-configs --alter --add-config retention.ms=-1 --topic __remote_log_metadata",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.METADATA_CUT_SHORT,
        Severity.ERROR,
        "the metadata log ends before the offsets in the broker's checkpoints: events are lost",
        "tieredctl metadata stats --bootstrap-server HOST:PORT",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.METADATA_COMPACTED,
        Severity.ERROR,
        "records are missing from the middle of the metadata log: what they reported is unknown",
        "tieredctl metadata stats --metadata-partition {metadataPartition} …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.METADATA_PARTITION_MISSING,
        Severity.ERROR,
        "a partition of the metadata topic is missing here: what it holds is unknown",
        "tieredctl metadata stats --bootstrap-server HOST:PORT",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.METADATA_CONFLICT,
        Severity.CRITICAL,
        "replicas hold different bytes at one metadata offset",
        "kafka-dump-log --files {file}",
    ),
    FindingKind(
        FindingCode.STORE_DISAGREES,
        Severity.ERROR,
        "a local file of the remote-log store contradicts the metadata",
        "tieredctl store inspect {file}",
    ),
    FindingKind(
        FindingCode.FOLDER_PASSED_OVER,
        Severity.INFO,
        "a folder or file that Kafka is deleting or moving, or has abandoned",
        "ls {file}",
    ),
    FindingKind(
        FindingCode.OBJECT_ARCHIVED,
        Severity.ERROR,
        "an object is in an archive: neither brokers nor tieredctl can read it until it is restored",
        "tieredctl remote ls --segment-id {segmentId} …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.SEGMENTS_IN_OTHER_FORM,
        Severity.WARNING,
        "segments whose records are in a table, such as Iceberg's: the table is not checked",
        "tieredctl remote ls …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.SEGMENT_UNDECRYPTABLE,
        Severity.ERROR,
        "a segment's data key is wrapped for another key pair: its contents are unknown",
        "tieredctl verify --segment-id {segmentId} --layout-option private-key=FILE …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.ALTERED_IN_TRANSIT,
        Severity.WARNING,
        "reads of the same objects gave different bytes: something between the store and here alters them",
        "tieredctl verify --segment-id {segmentId} …",
    ),
    FindingKind(
        FindingCode.UNREADABLE,
        Severity.ERROR,
        "something could not be read: the answer is incomplete",
        "ls -l {file}",
        incomplete=True,
    ),
)

_TABLES = (
    _TABLE,
    DOCTOR_FINDING_KINDS,
    TIERING_FINDING_KINDS,
    QUORUM_FINDING_KINDS,
    WAL_FINDING_KINDS,
    DISKLESS_FINDING_KINDS,
)
FINDING_KINDS = {kind.code: kind for table in _TABLES for kind in table}


class _Blanks(dict[str, object]):
    def __missing__(self, key: str) -> str:
        return key.upper()


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found. `subject` is what it is about, in a searchable form, and `about` is the same as a value;
    `evidence` is what proves it, in Kafka's names (JSON values only): it is shown, and decides nothing."""

    code: FindingCode
    subject: str
    message: str
    evidence: Mapping[str, object] = field(default_factory=dict)
    severity_override: Severity | None = None
    about: Subject = field(default=Subject(), compare=False)
    """The evidence has the same, so that findings which were written and read back are equal."""

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> Self:
        """The finding of a `document`. Raises KeyError, TypeError and ValueError for anything else."""
        kind = FINDING_KINDS[document["code"]]
        severity, evidence = Severity[str(document["severity"]).upper()], dict(document["evidence"])
        override = None if severity is kind.severity else severity
        subject, message = str(document["subject"]), str(document["message"])
        return cls(kind.code, subject, message, evidence, override, read_subject(evidence))

    @property
    def kind(self) -> FindingKind:
        return FINDING_KINDS[self.code]

    @property
    def severity(self) -> Severity:
        return self.kind.severity if self.severity_override is None else self.severity_override

    @property
    def is_corruption(self) -> bool:
        """Whether it is critical, or an error that proves a stored object altered, though no record is lost."""
        if self.severity is Severity.CRITICAL:
            return True
        return self.severity is Severity.ERROR and self.kind.altered and isinstance(self.about, SegmentSubject)

    @property
    def remedy(self) -> str:
        return (self.about.remedy or self.kind.remedy).format_map(_Blanks(self.evidence))

    def document(self) -> dict[str, object]:
        """The finding as every output format shows it."""
        return {
            "code": self.code.value,
            "severity": self.severity.label,
            "subject": self.subject,
            "message": self.message,
            "evidence": dict(self.evidence),
            "remedy": self.remedy,
        }


def exit_code_of(findings: Iterable[Finding]) -> ExitCode:
    """What findings mean to the shell: corruption; other errors and warnings, which need attention; info is clean."""
    codes = {ExitCode.CLEAN}
    for finding in findings:
        if finding.is_corruption:
            codes.add(ExitCode.CORRUPTION)
        elif finding.severity is not Severity.INFO:
            codes.add(ExitCode.INCOMPLETE if finding.kind.incomplete else ExitCode.FINDINGS)
    return worst(*codes)
