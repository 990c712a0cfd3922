"""One segment whose objects are not all listed as they should be: what of it is missing, or has another size.

Which segments must have a transaction index, judging by their broker's other segments.

Since Kafka 4.0 a broker says `txnIdxEmpty` of a segment without aborted transactions. Of one with, it says what every
release before says of all: nothing. So only if a broker said it of other segments, a while before and a while after,
means something by its silence: it was neither upgraded nor downgraded between.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from tieredctl.errors import TieredctlError
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import ObjectSubject, SegmentSubject, Subject
from tieredctl.model.findings import Finding
from tieredctl.model.quantities import size_text
from tieredctl.ops.remote.part_finding import part_finding
from tieredctl.ops.verification.asked_objects import AskedObjects
from tieredctl.ops.verification.engine import Silence
from tieredctl.ops.verification.gone_topics import GoneTopics
from tieredctl.ops.verification.options import RemovedSegments
from tieredctl.ops.verification.other_forms import report_missing
from tieredctl.ops.verification.report import SegmentFindings, report_archived, report_unread
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


@dataclass(frozen=True, slots=True)
class JudgedBy:
    """What every segment is compared with."""

    store: ObjectStore
    layout: Layout
    clock: Clock
    transaction_indexes: PromisedTransactionIndexes
    gone: GoneTopics
    removed: RemovedSegments
    silence: Silence = field(default_factory=Silence)


@dataclass(frozen=True, slots=True)
class FinishedSegment:
    """One in COPY_SEGMENT_FINISHED that was asked about, with those of its objects that exist."""

    metadata: RemoteLogSegmentMetadata
    present: dict[Part, StoredObject]


@dataclass(slots=True)
class AskedSegments:
    """What asking about segments has shown."""

    findings: list[Finding] = field(default_factory=list)
    finished: list[FinishedSegment] = field(default_factory=list)
    absent: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    """Those of them without any of the promised objects, which have no finding yet."""
    not_looked_at: set[str] = field(default_factory=set)
    """The ids of those of them that were not completely listed, and not asked for because the store is silent."""
    removed: set[str] = field(default_factory=set)
    """The ids of segments that are not missing, as tieredctl removed their objects."""
    transaction_indexes_unknown: int = 0
    """How many of them the listing does not show whether they lack a transaction index that they need."""


def unreferenced(stored: StoredObject, explained: ExplainedKey | None) -> Finding:
    """An object whose segment is not in the metadata."""
    about: Subject = ObjectSubject(stored.key)
    evidence: dict[str, object] = {"key": stored.key, "size": stored.size, "lastModifiedMs": stored.last_modified_ms}
    if explained:
        partition, segment_id = explained.topic_id_partition, explained.segment_id
        about = SegmentSubject(partition, None, segment_id, explained.part, stored.key)
        evidence |= {
            "topic": explained.topic,
            "topicId": explained.topic_id,
            "partition": explained.partition,
            "segmentId": explained.segment_id,
        }
    why = "its segment is not in the metadata" if explained else "no layout explains its key"
    message = f"{size_text(stored.size)}: {why}"
    return Finding(FindingCode.OBJECT_UNREFERENCED, stored.key, message, evidence, about=about)


def check_finished(
    metadata: RemoteLogSegmentMetadata,
    objects: Mapping[str, StoredObject],
    by: JudgedBy,
    asked: AskedObjects,
    report: AskedSegments,
) -> None:
    """Looks at a segment's listed `objects`, by key, and asks for the others."""
    layout, partition = by.layout, metadata.topic_id_partition
    promised, optional = layout.promised_objects(metadata), layout.optional_objects(metadata)
    present = {part: objects[key] for part, key in (promised | optional).items() if key in objects}
    findings = SegmentFindings(metadata, promised | optional)
    missing = []
    if by.silence.is_final and not promised.keys() <= present.keys():
        report.not_looked_at.add(metadata.segment_id)
        report.finished.append(FinishedSegment(metadata, {}))
        return
    for part, key in promised.items():
        if part not in present:
            try:
                stored = asked.head(key)  # a listing may be older than the object
            except TieredctlError as error:
                report_unread(error, part, findings)
                by.silence.note(error)
                break
            by.silence.note(None)
            if stored:
                present[part] = stored
            else:
                missing.append(key)
                report_missing(part, findings)
    if missing and not by.gone.is_live(partition) and (plan := by.removed.plan_of_all(missing)) is not None:
        by.removed.add(partition, plan)
        report.removed.add(metadata.segment_id)
        return
    if missing and len(missing) == len(promised) and not present:
        report.absent.append(metadata)
        findings.found.clear()
    if size_findings(metadata, present, by.layout):
        present = _as_described_now(present, by, findings)
        findings.found += size_findings(metadata, present, by.layout)
    report_archived(present, findings)
    _check_transaction_index(present, optional.get(Part.TRANSACTION_INDEX), by, asked, findings, report)
    report.findings += findings.found
    report.finished.append(FinishedSegment(metadata, present))


def was_cleared(metadata: RemoteLogSegmentMetadata, by: JudgedBy) -> bool:
    """Whether tieredctl removed the leftovers of an unfinished copy or deletion of which nothing was listed."""
    plan = by.removed.plan_of_any(by.layout.promised_objects(metadata).values())
    if plan is None:
        return False
    by.removed.add(metadata.topic_id_partition, plan)
    return True


def _check_transaction_index(
    present: dict[Part, StoredObject],
    key: str | None,
    by: JudgedBy,
    asked: AskedObjects,
    findings: SegmentFindings,
    report: AskedSegments,
) -> None:
    """One that is not listed. Without a `key`, the layout stores it together with others."""
    metadata = findings.metadata
    if key is None or metadata.txn_idx_empty or Part.TRANSACTION_INDEX in present or Part.LOG not in present:
        return
    if by.silence.is_final or not by.transaction_indexes.has(metadata):
        report.transaction_indexes_unknown += 1
        return
    try:
        stored = asked.head(key)  # a listing may be older than the object
    except TieredctlError as error:
        report_unread(error, Part.TRANSACTION_INDEX, findings)
        by.silence.note(error)
        return
    by.silence.note(None)
    if stored:
        present[Part.TRANSACTION_INDEX] = stored
        return
    message = (
        f"{key} is not in the store; broker {metadata.author} sets txnIdxEmpty for segments without one, but not here"
    )
    findings.add(FindingCode.TRANSACTION_INDEX_MISSING, Part.TRANSACTION_INDEX, message)


def size_findings(
    metadata: RemoteLogSegmentMetadata, present: Mapping[Part, StoredObject], layout: Layout
) -> list[Finding]:
    """Which objects of a segment do not have the sizes in its metadata, as they are described."""
    promised, sizes = layout.promised_objects(metadata), {part: stored.size for part, stored in present.items()}
    findings = SegmentFindings(metadata, promised | layout.optional_objects(metadata))
    _check_size(metadata, sizes, layout, findings)
    if promised.keys() <= present.keys():
        _check_stored_size(sum(sizes[part] for part in promised), layout.stored_size(metadata), findings)
    return findings.found


def _as_described_now(
    present: Mapping[Part, StoredObject], by: JudgedBy, findings: SegmentFindings
) -> dict[Part, StoredObject]:
    """The objects by their own descriptions, since a listing may be altered on its way; those that cannot be had are
    left out."""
    described = {}
    for part, stored in present.items():
        try:
            described[part] = by.store.head(stored.key) or stored
        except TieredctlError as error:
            report_unread(error, part, findings)
            by.silence.note(error)
    return described


def _check_size(
    metadata: RemoteLogSegmentMetadata, sizes: Mapping[Part, int], layout: Layout, findings: SegmentFindings
) -> None:
    size, claimed = layout.original_log_size(sizes), metadata.known_size
    if size is not None and claimed is not None and size != claimed:
        message = f"the log has {size} bytes where the metadata says {claimed}"
        short = size < claimed
        findings.add(
            FindingCode.SIZE_MISMATCH,
            Part.LOG,
            message,
            position=min(size, claimed),
            offsets=(metadata.start_offset, metadata.end_offset) if short else None,
        )


def _check_stored_size(size: int, claimed: int | None, findings: SegmentFindings) -> None:
    if claimed is not None and size != claimed:
        message = f"the segment's objects have {size} bytes in total, but its custom metadata has {claimed}"
        segment, code = findings.metadata, FindingCode.SIZE_MISMATCH
        finding = part_finding(code, segment, findings.keys, Part.LOG, message, storedSize=size)
        about = SegmentSubject(segment.topic_id_partition, None, segment.segment_id)
        findings.found.append(replace(finding, about=about))


NEAR_MS = 3_600_000
"""How far before and after a segment its broker may have said it of others."""
_BY_THE_COPIER = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)


@dataclass(frozen=True, slots=True)
class PromisedTransactionIndexes:
    """When each broker said of a segment that it has none, in milliseconds, rising."""

    said: Mapping[int, Ints]

    @classmethod
    def by(cls, metadata: ReplayedMetadata) -> PromisedTransactionIndexes:
        """What the brokers of a cluster wrote."""
        empty = np.flatnonzero(metadata.txn_idx_empty & np.isin(metadata.rows.states, _BY_THE_COPIER))
        authors, times = metadata.authors(empty), metadata.event_timestamps(empty)
        order = np.lexsort((times, authors))
        brokers, firsts = np.unique(authors[order], return_index=True)
        return cls(dict(zip(brokers.tolist(), np.split(times[order], firsts[1:]), strict=False)))

    def has(self, metadata: RemoteLogSegmentMetadata) -> bool:
        """Whether this segment must have a transaction index. False where unknown."""
        columns = np.array([metadata.author], np.int64), np.array([metadata.event_timestamp_ms], np.int64)
        return not metadata.txn_idx_empty and bool(self.have(*columns)[0])

    def have(self, authors: Ints, times: Ints) -> Flags:
        """Whether segments must have one that do not say that they have none, by whose broker wrote their last events,
        and when, in ms. False where unknown."""
        must_have = np.zeros(len(authors), np.bool_)
        for author in np.unique(authors).tolist():
            stated = self.said.get(author)
            if stated is None:
                continue
            rows = np.flatnonzero(authors == author)
            at = times[rows]
            later = np.searchsorted(stated, at, side="right")
            between = (later > 0) & (later < len(stated))
            before, after = stated[np.maximum(later - 1, 0)], stated[np.minimum(later, len(stated) - 1)]
            must_have[rows] = between & (at - before <= NEAR_MS) & (after - at <= NEAR_MS)
        return must_have
