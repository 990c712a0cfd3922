"""Does a store have the combined objects that its events promise, with the batches that they promise?"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.record_batches import HEADER_BYTES, read_batch_header
from tieredctl.model.clock import Clock
from tieredctl.model.counted import counted
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import StoreSubject, Subject
from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.guards.second_reading import head_again, read_again
from tieredctl.ops.metadata.state import undated
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore, StoredObject
from tieredctl_proposals.model.finding_codes import ProposalCode
from tieredctl_proposals.model.wal_events import WAL_METADATA_TOPIC, RemoteLogSegmentMetadataEntry
from tieredctl_proposals.ops.wal.contents import (
    Segments,
    WalContents,
    by_place,
    combined_id_of,
    deleted_since,
    nothing_in,
)
from tieredctl_proposals.ops.wal.level import WalLevel
from tieredctl_proposals.ops.wal.line_of_leaders import by_partition, gaps_in
from tieredctl_proposals.ops.wal.object_check import ObjectReport, check_batches, check_first_batch, object_finding
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.reading import read_object_index
from tieredctl_proposals.wal.replayed import KnownCombined, KnownWalSegment

_States = RemoteLogSegmentState
_MISSING = ProposalCode.WAL_OBJECT_MISSING
_FINISHED = _States.COPY_SEGMENT_FINISHED
_UNFINISHED = (_States.COPY_SEGMENT_STARTED, _States.DELETE_SEGMENT_STARTED)
_AT_ONCE = 256


@dataclass(slots=True)
class WalVerification:
    """What was looked at, and found."""

    level: WalLevel
    findings: list[Finding] = field(default_factory=list)
    objects: int = 0
    segments: int = 0
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    other_objects: int = 0
    """That no upload can have made; the first of them are findings."""
    not_looked_at: int = 0
    """Objects, because the store stopped answering."""

    @property
    def summary(self) -> Document:
        return {
            "level": self.level.value,
            "objects": self.objects,
            "segments": self.segments,
            "bytesRead": self.bytes_read,
            "batches": self.batches,
            "records": self.records,
            "skipped": self.not_looked_at,
            "otherObjects": self.other_objects,
            "complete": not any(finding.kind.incomplete for finding in self.findings),
            "findings": len(self.findings),
        }


def verify_wal(
    store: ObjectStore,
    contents: WalContents,
    level: WalLevel,
    clock: Clock,
    tell: Callable[[WalVerification], None] = lambda _verification: None,
) -> WalVerification:
    """Compares the listing with the events, and reads as much as the level says. What began less than the clock's
    `older_than_ms` ago may still end: it is not a finding. Nor is what was deleted meanwhile, by events that are read
    again.

    Raises TieredctlError `no-overlap` for a store that has nothing at all: whatever was in it may be lost.
    """
    if not contents.is_there and not contents.others_count:
        raise TieredctlError(ErrorCode.NO_OVERLAP, nothing_in(store.url), hint="Check --store.")
    result = WalVerification(level, list(contents.events.findings), other_objects=contents.others_count)
    result.findings += _refused(contents)
    segments = by_place(contents.events.segments())
    objects = contents.events.combined()
    result.findings += _unreferenced(contents, objects)
    unfinished = (one.metadata for one in objects if one.metadata.state in _UNFINISHED)
    result.findings += undated((one.event_timestamp_ms for one in unfinished), clock.now_ms)
    promised, present = [], []
    for one in objects:
        is_stuck = clock.now_ms - one.metadata.event_timestamp_ms >= clock.older_than_ms
        if one.metadata.state is _FINISHED:
            promised.append(one)
            stored = _stored_now(store, contents, one)
            present += [] if stored is None else [(one, stored)]
            result.findings += [*_of_uploaded(one, stored), *_of_segments(one, segments, is_stuck=is_stuck)]
        elif is_stuck:
            result.findings += _of_state(contents, one)
    result.findings += _unannounced(store, promised, segments)
    uploaded = by_partition([one for one in segments.values() if one.is_readable or one.is_cleaned])
    result.findings += gaps_in(uploaded, uploaded)
    result.objects = len(promised)
    result.segments = sum(len(one.metadata.entries) for one in promised)
    if level is not WalLevel.LISTING:
        _read(store, present, segments, result, tell)
    result.findings = _still_missed(store, result.findings)
    return result


def _still_missed(store: ObjectStore, findings: list[Finding]) -> list[Finding]:
    """Without objects that are missing since they were deleted after the events were read."""
    missing = {named for one in findings if one.code is _MISSING and (named := combined_id_of(one.subject))}
    gone = {object_key(one) for one in deleted_since(store, missing)} if missing else ()
    return [one for one in findings if one.code is not _MISSING or one.subject not in gone]


def _read(
    store: ObjectStore,
    present: Sequence[tuple[KnownCombined, StoredObject]],
    segments: Segments,
    result: WalVerification,
    tell: Callable[[WalVerification], None],
) -> None:
    for first in range(0, len(present), _AT_ONCE):
        some = present[first : first + _AT_ONCE]
        reports = in_parallel(store, lambda one: _looked_into(store, *one, segments, result.level), some)
        for report in reports:
            result.findings += report.findings
            result.bytes_read += report.bytes_read
            result.batches += report.batches
            result.records += report.records
        tell(result)
        if all(report.silent for report in reports):
            result.not_looked_at = len(present) - first - len(some)
            return


def _looked_into(
    store: ObjectStore,
    one: KnownCombined,
    stored: StoredObject,
    segments: Segments,
    level: WalLevel,
) -> ObjectReport:
    """By a second reading over new connections where the first finds anything: bytes may be altered on the way."""
    return read_again(
        store,
        lambda at: _read_once(at, one, stored, segments, level),
        is_sound=lambda report: not report.findings or bool(report.silent),
    )


def _read_once(
    store: ObjectStore,
    one: KnownCombined,
    stored: StoredObject,
    segments: Segments,
    level: WalLevel,
) -> ObjectReport:
    metadata, report = one.metadata, ObjectReport(object_key(one.metadata.combined_segment_id))
    try:
        _check_index(store, one, stored, report)
        for entry in metadata.entries:
            segment = segments.get((entry.topic_id_partition, entry.segment_id))
            if segment is None or not segment.is_readable:
                continue
            if level is WalLevel.FULL:
                check_batches(store, report, segment)
            else:
                check_first_batch(store, report, segment)
    except TieredctlError as error:
        if error.code is ErrorCode.OBJECT_MISSING:
            report.findings = [_not_there(one)]
            return report
        is_archived = error.code is ErrorCode.OBJECT_ARCHIVED
        code = FindingCode.OBJECT_ARCHIVED if is_archived else FindingCode.UNREADABLE
        evidence = {"key": report.key, "error": error.code.value}
        about = Subject() if is_archived else StoreSubject()
        report.findings.append(Finding(code, report.key, error.message, evidence, about=about))
        report.silent = error.code in CONCERN_EVERY_OBJECT
    return report


def _check_index(store: ObjectStore, one: KnownCombined, stored: StoredObject, report: ObjectReport) -> None:
    """An object of the proposal's own form has none; what is there must agree with the events."""
    try:
        index = read_object_index(store, stored)
    except DecodeError as error:
        report.add(error.position, f"its index: {error.reason}")
        return
    if index is None:
        return
    report.bytes_read += index.entries[0].start_file_position
    data = store.read(report.key, 0, HEADER_BYTES)
    try:
        header = read_batch_header(data, 0, len(data))
    except DecodeError as error:
        report.add(error.position, f"its index: {error.reason}")
        return
    if (header.base_offset, header.partition_leader_epoch) != (0, -1):
        report.add(0, "its index: a header that tieredctl does not write")
    if index.entries != one.metadata.entries:
        report.add(0, "its index and its events differ about its segments")


def _of_state(contents: WalContents, one: KnownCombined) -> list[Finding]:
    """Of what began and never ended."""
    metadata, key = one.metadata, object_key(one.metadata.combined_segment_id)
    stored, partitions = contents.objects.get(metadata.combined_segment_id), _partitions(metadata.entries)
    since: Document = {"combinedSegmentId": metadata.combined_segment_id, "key": key}
    since["eventTimestampMs"] = metadata.event_timestamp_ms
    if metadata.state is _States.COPY_SEGMENT_STARTED:
        where = "is not in the store" if stored is None else "is in the store, and nobody reads it"
        message, evidence = f"its upload began and never ended; it {where}", since | {"partitions": partitions}
        return [Finding(ProposalCode.WAL_UPLOAD_UNFINISHED, key, message, evidence)]
    if metadata.state is _States.DELETE_SEGMENT_STARTED:
        return [Finding(ProposalCode.WAL_DELETION_UNFINISHED, key, "its deletion began and never ended", since)]
    return []


def _stored_now(store: ObjectStore, contents: WalContents, one: KnownCombined) -> StoredObject | None:
    """An uploaded object as it is. A listing may be stale: what it lacks, or has in another size, is asked for by
    name."""
    stored = contents.objects.get(one.metadata.combined_segment_id)
    if stored is not None and stored.size == _size(one):
        return stored
    return head_again(store, object_key(one.metadata.combined_segment_id))


def _of_uploaded(one: KnownCombined, stored: StoredObject | None) -> list[Finding]:
    if stored is None:
        return [_not_there(one)]
    size = _size(one)
    if stored.size != size:
        message = f"it has {stored.size} bytes, its events say {size}"
        return [object_finding(stored.key, min(stored.size, size), message)]
    return []


def _size(one: KnownCombined) -> int:
    """An uploaded object's size in bytes, by its events."""
    return one.metadata.entries[-1].end_file_position + 1


def _not_there(one: KnownCombined) -> Finding:
    metadata, key = one.metadata, object_key(one.metadata.combined_segment_id)
    partitions = _partitions(metadata.entries)
    message = f"it is not there, and with it {counted(len(metadata.entries), 'segment')} of {', '.join(partitions)}"
    evidence = {"key": key, "combinedSegmentId": metadata.combined_segment_id, "partitions": partitions}
    return Finding(_MISSING, key, message, evidence)


def _of_segments(one: KnownCombined, segments: Segments, *, is_stuck: bool) -> list[Finding]:
    """Whether the events about an uploaded object's segments agree with those about the object."""
    findings = []
    key, combined_id = object_key(one.metadata.combined_segment_id), one.metadata.combined_segment_id
    for entry in one.metadata.entries:
        segment = segments.get((entry.topic_id_partition, entry.segment_id))
        if segment is None or segment.metadata.state is _States.COPY_SEGMENT_STARTED:
            if not is_stuck:
                continue
            evidence = {
                "combinedSegmentId": combined_id,
                "key": key,
                "partitions": _partitions([entry]),
                "eventTimestampMs": one.metadata.event_timestamp_ms,
                "segmentId": entry.segment_id,
            }
            message = f"segment {entry.segment_id} is in it, but no event says that its upload ended"
            findings.append(Finding(ProposalCode.WAL_UPLOAD_UNFINISHED, key, message, evidence))
        elif segment.metadata.state is _FINISHED and not _is_at(segment, combined_id, entry):
            message = f"the events differ about where segment {entry.segment_id} is"
            findings.append(object_finding(key, entry.start_file_position, message, segment))
    return findings


def _unannounced(store: ObjectStore, promised: Sequence[KnownCombined], segments: Segments) -> list[Finding]:
    """Readers are led to segments by events about these alone: their object has to be there, too."""
    promised_ids = {one.metadata.combined_segment_id for one in promised}
    findings = []
    for segment in segments.values():
        if segment.is_readable and segment.combined_segment_id not in promised_ids:
            key, partition = object_key(segment.combined_segment_id), segment.metadata.topic_id_partition
            named = f"{partition.topic}-{partition.partition}"
            evidence = {"combinedSegmentId": segment.combined_segment_id, "key": key, "partitions": [named]}
            evidence |= {"segmentId": segment.segment_id}
            message = f"segment {segment.segment_id} is reported as uploaded, and its object is not"
            code = ProposalCode.WAL_UPLOAD_UNFINISHED
            if head_again(store, key) is None:
                code, message = _MISSING, f"{message}, nor is it there"
            findings.append(Finding(code, key, message, evidence))
    return findings


def _is_at(segment: KnownWalSegment, combined_id: str, entry: RemoteLogSegmentMetadataEntry) -> bool:
    """Whether a segment's own events say that it is where an object's say."""
    own = segment.combined_segment_id, segment.start_file_position, segment.end_file_position
    return own == (combined_id, entry.start_file_position, entry.end_file_position)


def _unreferenced(contents: WalContents, objects: Sequence[KnownCombined]) -> list[Finding]:
    live = {
        one.metadata.combined_segment_id for one in objects if one.metadata.state is not _States.DELETE_SEGMENT_FINISHED
    }
    gone = {one.metadata.combined_segment_id for one in objects} - live
    unknown = [(stored, id_ in gone) for id_, stored in sorted(contents.objects.items()) if id_ not in live]
    unknown += ((stored, False) for stored in contents.others)
    return [
        Finding(
            ProposalCode.WAL_OBJECT_UNREFERENCED,
            stored.key,
            "its deletion is on record" if is_gone else "no event names it",
            {"key": stored.key, "size": stored.size},
        )
        for stored, is_gone in unknown
    ]


def _refused(contents: WalContents) -> list[Finding]:
    replayed = contents.events.replayed
    refused = [(one.metadata_partition, one.metadata_offset, one.id, one.refusal.value) for one in replayed.refused] + [
        (
            one.metadata_partition,
            one.metadata_offset,
            str(one.partition),
            f"leader epoch {one.leader_epoch} is of a leader of the past",
        )
        for one in replayed.events.stale
    ]
    return [
        Finding(
            ProposalCode.WAL_EVENT_REFUSED,
            f"{WAL_METADATA_TOPIC}-{number}@{offset}",
            f"{subject}: {reason}",
            {"metadataPartition": number, "metadataOffset": offset, "id": subject, "reason": reason},
        )
        for number, offset, subject, reason in sorted(refused)
    ]


def _partitions(entries: Sequence[RemoteLogSegmentMetadataEntry]) -> list[str]:
    return sorted({f"{one.topic_id_partition.topic}-{one.topic_id_partition.partition}" for one in entries})
