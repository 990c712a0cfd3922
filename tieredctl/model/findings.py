"""Findings: what is odd or wrong, as data with a name that scripts match on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from tieredctl.errors import ExitCode, worst
from tieredctl.model.diskless_finding_kinds import DISKLESS_FINDING_KINDS
from tieredctl.model.doctor_finding_kinds import DOCTOR_FINDING_KINDS
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity
from tieredctl.model.finding_subjects import SegmentSubject, Subject, read_subject
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quorum_finding_kinds import QUORUM_FINDING_KINDS
from tieredctl.model.tiering_finding_kinds import TIERING_FINDING_KINDS
from tieredctl.model.tolerance import NOTHING_TOLERATED, Tolerance
from tieredctl.model.wal_finding_kinds import WAL_FINDING_KINDS

__all__ = ["FINDING_KINDS", "Finding", "FindingKind", "Severity", "exit_code_of"]


_HISTORY = "tieredctl metadata history {segmentId} …"
_READ = "tieredctl store inspect {file}"
_MEND = "tieredctl recover indexes {segmentId} …"
_RECOVER = "tieredctl recover metadata --bootstrap-server HOST:PORT --store URL …"
_EPOCHS = "tieredctl metadata epochs {topic}:{partition} …"
_INDEXES = ("offset-index", "time-index", "transaction-index", "producer-snapshot", "indexes")
"""The parts of a segment that can be rebuilt from its log."""

_TABLE = (
    FindingKind(
        FindingCode.OBJECT_MISSING,
        Severity.CRITICAL,
        "an object that the metadata promises is not in the store",
        _HISTORY,
        many="objects that the metadata promises are not in the store",
        remedy_of_index=_MEND,
    ),
    FindingKind(
        FindingCode.SIZE_MISMATCH,
        Severity.CRITICAL,
        "a segment's log is not as long as the metadata says",
        _HISTORY,
        many="segments whose logs are not as long as the metadata says",
    ),
    FindingKind(
        FindingCode.BATCH_CORRUPT,
        Severity.CRITICAL,
        "a record batch's length, magic or CRC-32C is wrong",
        "kafka-dump-log --deep-iteration --files {file}",
        many="record batches with a wrong length, magic or CRC-32C",
        remedy_of_segment=_HISTORY,
    ),
    FindingKind(
        FindingCode.OFFSETS_OUT_OF_ORDER,
        Severity.CRITICAL,
        "a batch's base offset does not rise",
        "kafka-dump-log --files {file}",
        many="batches whose base offsets do not rise",
        remedy_of_segment=_HISTORY,
    ),
    FindingKind(
        FindingCode.RECORDS_OUTSIDE_SEGMENT,
        Severity.CRITICAL,
        "a batch holds offsets outside the segment's claim, or the log ends before an index proves",
        _HISTORY,
        many="batches with offsets outside their segments' claims, or logs that end too early",
    ),
    FindingKind(
        FindingCode.EPOCH_MISMATCH,
        Severity.ERROR,
        "a batch's leader epoch contradicts the segment's leader epochs",
        _EPOCHS,
        altered=True,
        many="batches whose leader epochs contradict their segments' leader epochs",
    ),
    FindingKind(
        FindingCode.TIMESTAMP_BEYOND_CLAIM,
        Severity.WARNING,
        "a batch's timestamp lies beyond maxTimestampMs: retention by time may act too early",
        _HISTORY,
        many="batches with timestamps beyond maxTimestampMs: retention by time may act too early",
    ),
    FindingKind(
        FindingCode.MANIFEST_DAMAGED,
        Severity.CRITICAL,
        "a segment's manifest cannot be used: without it, the segment cannot be read",
        "tieredctl remote ls --segment-id {segmentId} …",
        many="manifests that cannot be used: without them, their segments cannot be read",
    ),
    FindingKind(
        FindingCode.INDEX_DAMAGED,
        Severity.CRITICAL,
        "an index does not describe its log",
        _MEND,
        many="indexes that do not describe their logs",
    ),
    FindingKind(
        FindingCode.PRODUCER_SNAPSHOT_DAMAGED,
        Severity.ERROR,
        "a producer snapshot cannot be used",
        _MEND,
        altered=True,
        many="producer snapshots that cannot be used",
    ),
    FindingKind(
        FindingCode.LEADER_EPOCH_CHECKPOINT_DAMAGED,
        Severity.ERROR,
        "a leader-epoch checkpoint cannot be used, or contradicts the metadata",
        _READ,
        altered=True,
        many="leader-epoch checkpoints that cannot be used, or contradict the metadata",
        remedy_of_segment=_HISTORY,
    ),
    FindingKind(
        FindingCode.TRANSACTION_INDEX_MISSING,
        Severity.ERROR,
        "aborted transactions have no entry: read_committed consumers would see their records",
        _MEND,
        altered=True,
        many="transaction indexes without entries for aborted transactions",
    ),
    FindingKind(
        FindingCode.OFFSET_GAP,
        Severity.CRITICAL,
        "offsets that no remote segment holds",
        _RECOVER,
        many="gaps: offsets that no remote segment holds",
    ),
    FindingKind(
        FindingCode.OFFSET_OVERLAP,
        Severity.INFO,
        "offsets that more than one segment holds",
        _EPOCHS,
        many="overlaps: offsets that more than one segment holds",
    ),
    FindingKind(
        FindingCode.OFFSET_SHORTFALL,
        Severity.INFO,
        "a segment ends, or has a hole, before its claimed end: normal after compaction and aborted tails",
        _HISTORY,
        many="segments that end, or have a hole, before their claimed end",
    ),
    FindingKind(
        FindingCode.LOCAL_REMOTE_GAP,
        Severity.CRITICAL,
        "offsets between the remote end and the local log start are in neither",
        _RECOVER,
        many="gaps between the remote end and the local log start: these offsets are in neither",
    ),
    FindingKind(
        FindingCode.OBJECT_UNREFERENCED,
        Severity.WARNING,
        "an object that no segment of the metadata explains",
        "tieredctl orphans scan …",
        remedy_of_segment=_RECOVER,
        many="objects that no segment of the metadata explains",
    ),
    FindingKind(
        FindingCode.OBJECT_OLDER_THAN_METADATA,
        Severity.WARNING,
        "an object older than the metadata that would name it: it may be the only copy of its records",
        _RECOVER,
        many="objects older than the metadata that would name them: they may be the only copies of their records",
    ),
    FindingKind(
        FindingCode.OBJECT_NOT_COVERED,
        Severity.WARNING,
        "an object without events, whose records are nowhere else by the metadata: it may be their only copy",
        _RECOVER,
        many="objects without events, whose records are nowhere else by the metadata: they may be their only copies",
    ),
    FindingKind(
        FindingCode.TOPIC_GONE,
        Severity.WARNING,
        "segments of a topic that is gone, which the metadata still promises",
        "tieredctl partition remove {topicId} …",
        many="topics that are gone, whose segments the metadata still promises",
    ),
    FindingKind(
        FindingCode.MULTIPART_DEBRIS,
        Severity.WARNING,
        "an upload that was never completed",
        "tieredctl remote multipart …",
        many="uploads that were never completed",
    ),
    FindingKind(
        FindingCode.EVENT_UNDECODABLE,
        Severity.ERROR,
        "an event that cannot be decoded: a broker's reader stops there",
        "tieredctl metadata format --metadata-partition {metadataPartition} …",
        many="events that cannot be decoded: a broker's reader stops at the first",
    ),
    FindingKind(
        FindingCode.EVENT_ILLEGAL,
        Severity.WARNING,
        "an event that the state machine does not allow, and Kafka drops",
        _HISTORY,
        many="events that the state machine does not allow, and Kafka drops",
    ),
    FindingKind(
        FindingCode.SEGMENT_SIZE_UNKNOWN,
        Severity.WARNING,
        "a segment to which the metadata gives a negative size",
        _HISTORY,
        many="segments to which the metadata gives negative sizes",
    ),
    FindingKind(
        FindingCode.SEGMENT_NOT_RECOVERED,
        Severity.WARNING,
        "a stored segment that will not be re-registered in the metadata",
        "tieredctl remote ls --segment-id {segmentId} …",
        many="stored segments that will not be re-registered in the metadata",
    ),
    FindingKind(
        FindingCode.TOPIC_NOT_IN_CLUSTER,
        Severity.WARNING,
        "the store has segments of a topic id that the cluster does not have",
        "tieredctl orphans scan --topic-id {topicId} …",
        many="topic ids in the store that the cluster does not have",
    ),
    FindingKind(
        FindingCode.LOG_START_ABOVE_STORE,
        Severity.ERROR,
        "a leader's log starts above segments in the store: brokers would delete them if they were registered",
        "tieredctl recover metadata --topic {topic} --partition {partition} -o json …",
    ),
    FindingKind(
        FindingCode.COPY_STUCK,
        Severity.WARNING,
        "a copy that began and never ended",
        _HISTORY,
        many="copies that began and never ended",
    ),
    FindingKind(
        FindingCode.DELETE_STUCK,
        Severity.WARNING,
        "a deletion that began and never ended",
        _HISTORY,
        many="deletions that began and never ended",
    ),
    FindingKind(
        FindingCode.COPY_FAILING,
        Severity.WARNING,
        "a partition whose copies fail again and again at the same offset",
        "tieredctl topic status {topic} …",
        many="partitions whose copies fail again and again at the same offset",
    ),
    FindingKind(
        FindingCode.METADATA_TRUNCATED,
        Severity.ERROR,
        "the metadata log starts above offset 0: history is lost",
        _RECOVER,
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
        "tieredctl metadata stats …",
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
        many="metadata offsets at which replicas hold different bytes",
    ),
    FindingKind(
        FindingCode.STORE_DISAGREES,
        Severity.ERROR,
        "a local file of the remote-log store contradicts the metadata",
        "tieredctl store inspect {file}",
        many="local files of the remote-log store that contradict the metadata",
    ),
    FindingKind(
        FindingCode.FOLDER_PASSED_OVER,
        Severity.INFO,
        "a folder or file that Kafka is deleting or moving, or has abandoned",
        "ls {file}",
        many="folders or files that Kafka is deleting or moving, or has abandoned",
    ),
    FindingKind(
        FindingCode.OBJECT_ARCHIVED,
        Severity.ERROR,
        "an object is in an archive: neither brokers nor tieredctl can read it until it is restored",
        "tieredctl remote ls --segment-id {segmentId} …",
        incomplete=True,
        many="objects in an archive: neither brokers nor tieredctl can read them until they are restored",
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
        many="segments whose data keys are wrapped for another key pair: their contents are unknown",
    ),
    FindingKind(
        FindingCode.ALTERED_IN_TRANSIT,
        Severity.WARNING,
        "reads of the same objects gave different bytes: something between the store and here alters them",
        "tieredctl verify --segment-id {segmentId} …",
        many="objects of which reads gave different bytes: something between the store and here alters them",
    ),
    FindingKind(
        FindingCode.UNREADABLE,
        Severity.ERROR,
        "something could not be read: the answer is incomplete",
        "ls -l {file}",
        incomplete=True,
        many="things that could not be read: the answer is incomplete",
        remedy_of_segment=_HISTORY,
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
    def read(
        cls, document: Mapping[str, Any], subject_of: Callable[[str, Mapping[str, Any]], Subject] = read_subject
    ) -> Self:
        """The finding of a `document`, which is about what `subject_of` says by its text and its evidence. Raises
        KeyError, TypeError and ValueError for anything else."""
        kind = FINDING_KINDS[document["code"]]
        severity, evidence = Severity[str(document["severity"]).upper()], dict(document["evidence"])
        override = None if severity is kind.severity else severity
        subject, message = str(document["subject"]), str(document["message"])
        return cls(kind.code, subject, message, evidence, override, subject_of(subject, evidence))

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
        return pasteable(self._remedy(), self.evidence)

    def _remedy(self) -> str:
        if isinstance(self.about, SegmentSubject):
            if self.about.part in _INDEXES and self.kind.remedy_of_index is not None:
                return self.kind.remedy_of_index
            if self.about.segment_id and "file" not in self.evidence and self.kind.remedy_of_segment is not None:
                return self.kind.remedy_of_segment
        return self.about.remedy or self.kind.remedy

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

    @property
    def makes_incomplete(self) -> bool:
        """Whether it means that not everything could be checked."""
        return self.kind.makes_incomplete(self.severity)

    def is_ignored(self, tolerance: Tolerance) -> bool:
        """Whether it is known, and does not count."""
        return tolerance.ignores(self.kind, self.severity, self.subject)


def exit_code_of(findings: Iterable[Finding], tolerance: Tolerance = NOTHING_TOLERATED) -> ExitCode:
    """The gravest of what findings mean to the shell, by `Tolerance.exit_code`."""
    codes = {
        tolerance.exit_code(one.severity, is_corruption=one.is_corruption, makes_incomplete=one.makes_incomplete)
        for one in findings
        if not one.is_ignored(tolerance)
    }
    return worst(*codes)
