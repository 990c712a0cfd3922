"""`verify`: segments against the remote store, for a whole cluster or a part of it."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.kafka.source import CUT_SHORT
from tieredctl.layouts.protocol import Layout
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject, ObjectSubject, SegmentSubject
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES, TopicSources
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.coverage import MISSING, MetadataCoverage
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.verification.confirmation import confirmed, still_there
from tieredctl.ops.verification.elsewhere import Elsewhere
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.gone_events import without_unknown
from tieredctl.ops.verification.gone_topics import GoneTopics, believable_topics
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ops.verification.overlap import Overlap
from tieredctl.ops.verification.partition_check import JudgedBy, OwnedObject, check_partition, unreferenced
from tieredctl.ops.verification.promised_transaction_indexes import PromisedTransactionIndexes
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.silence import not_looked_at
from tieredctl.ops.verification.unread import private_key_error
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.storage.protocol import ObjectStore

_HASH_RANGE = 1 << 32
_NOTICED_TWICE = (
    FindingCode.OBJECT_ARCHIVED,
    FindingCode.SIZE_MISMATCH,
    FindingCode.TRANSACTION_INDEX_MISSING,
    FindingCode.UNREADABLE,
)


@dataclass(frozen=True, slots=True)
class Subset:
    """A share of all segments that a run reads, chosen by their ids: `number` of `count` equal shares, from 1."""

    number: int = 1
    count: float = 1

    @classmethod
    def parse(cls, text: str) -> Subset:
        """`3/30`, or `5%` which is the first twentieth. Raises TieredctlError."""
        try:
            if text.endswith("%"):
                subset = cls(1, 100 / float(text[:-1]))
            else:
                number, _, count = text.partition("/")
                subset = cls(int(number), int(count))
        except (ValueError, ZeroDivisionError):
            subset = cls(0)
        if not 1 <= subset.number <= subset.count:
            raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a subset.", hint="Write it as 3/30 or 5%.")
        return subset

    def has(self, segment_id: str) -> bool:
        share = crc32c(uuid_bytes(segment_id)) * self.count / _HASH_RANGE
        return self.number - 1 <= share < self.number


@dataclass(frozen=True, slots=True)
class VerifyOptions:
    """How to verify."""

    level: Level
    clock: Clock
    selection: Selection = Selection()
    subset: Subset = Subset()
    index_interval_bytes: int = DEFAULT_INDEX_INTERVAL_BYTES
    local_logs: Mapping[TopicIdPartition, LocalLog] = field(default_factory=dict)
    topic_sources: TopicSources = NO_TOPIC_SOURCES
    """Knows which topics were deleted: of their segments nothing is missing."""
    read_removed: Callable[[], Container[str]] = frozenset
    """Gives the keys of what tieredctl removed from the store, which is not missing either."""


@dataclass(slots=True)
class Verification:
    """The result: counts, and findings by partition and offset."""

    level: Level
    segments: int = 0
    objects: int = 0
    bytes_read: int = 0
    batches: int = 0
    records: int = 0
    skipped: int = 0
    not_looked_at: int = 0
    """Segments that were not asked for because the store had stopped answering."""
    silent: str = ""
    """The store's last error, where some were not asked for."""
    transaction_indexes_unknown: int = 0
    """For how many segments this level does not show whether they lack a transaction index."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return exit_code_of(f for f in self.findings if f.kind.incomplete) is not ExitCode.INCOMPLETE

    def pass_over(self, report: SegmentReport, why: str) -> None:
        """Counts segments that were to be read as not checked."""
        self.segments -= report.segments
        self.objects -= report.objects
        self.not_looked_at += report.segments
        self.silent = why

    def summary(self) -> dict[str, Any]:
        return {
            "level": self.level.value,
            "segments": self.segments,
            "objects": self.objects,
            "bytesRead": self.bytes_read,
            "batches": self.batches,
            "records": self.records,
            "skipped": self.skipped,
            "notLookedAt": self.not_looked_at,
            "transactionIndexesUnknown": self.transaction_indexes_unknown,
            "findings": len(self.findings),
            "complete": self.complete,
        }


Progress = Callable[[SegmentReport, int, int], None]
"""Called with each report: (report, segments done, segments in all)."""


def verify(
    stream: EventStream,
    store: ObjectStore,
    layout: Layout,
    engine: Engine,
    options: VerifyOptions,
    *,
    progress: Progress | None = None,
    read_again: Callable[[], EventStream] | None = None,
) -> Verification:
    """Reads the metadata, then lists the store, then reads segments as deep as the level says.

    With `read_again`, what was found is checked against metadata read again: the cluster may have changed. Raises
    TieredctlError where the selection names a topic or a segment that is not known, `no-overlap` where the store has
    nothing of what the metadata promises, and `private-key` where no segment can be decrypted.
    """
    metadata = replayed(stream, options.selection)
    result = Verification(options.level, findings=list(stream.findings))
    _demand_known_segment(metadata, options.selection, stream.coverage)
    # Not earlier: the topics asked about must be older than the answer.
    live = believable_topics(options.topic_sources, metadata, stream)
    judged_by = JudgedBy(
        store, layout, options.clock, PromisedTransactionIndexes.by(metadata), GoneTopics(live, options.read_removed)
    )
    tasks = _check_partitions(metadata, stream, judged_by, options, result)
    if not metadata.caches and len(result.findings) == len(stream.findings):
        _demand_no_topic(options.selection, stream)
    undecryptable = []
    if options.level is not Level.LISTING:
        done = 0
        for report in engine.check_segments(tasks, store, layout):
            done += report.segments
            if report.not_looked_at is not None:
                result.pass_over(report, report.not_looked_at)
                continue
            result.bytes_read += report.bytes_read
            result.batches += report.batches
            result.records += report.records
            result.findings += report.findings
            if no_key := private_key_error(report.unread):
                undecryptable.append(no_key)
            if progress:
                progress(report, done, len(tasks))
        assert done == len(tasks)
        if 0 < len(undecryptable) == len(tasks):
            raise undecryptable[0]
    result.findings = without_unknown(result.findings, stream)
    if result.findings and read_again:
        again = replayed(read_again(), options.selection)
        result.findings = still_there(confirmed(result.findings, metadata, again), store)
    if options.selection.segment_id:
        result.findings = [f for f in result.findings if _concerns(f, options.selection.segment_id)]
    if result.not_looked_at:
        result.findings.append(not_looked_at(store.url, result.not_looked_at, result.silent))
    result.findings.sort(key=_place)
    result.findings = _without_repetition(result.findings)
    return result


def _check_partitions(
    metadata: ReplayedMetadata,
    stream: EventStream,
    by: JudgedBy,
    options: VerifyOptions,
    result: Verification,
) -> list[SegmentTask]:
    tasks: list[SegmentTask] = []
    elsewhere, overlap = Elsewhere(metadata, stream.coverage), Overlap(by.store, by.layout)
    # A partition that a broker has but the metadata does not may have lost all of its events.
    local = (one for one in options.local_logs if options.selection.has(one) and not elsewhere.may_have(one))
    run = _Run(by, options, result)
    unseen = dict.fromkeys([*local, *metadata.caches])
    topic_ids = {partition.topic_id for partition in stream.partitions}
    for partition, listed in _listed_partitions(by, options.selection, result, overlap):
        if elsewhere.may_have(partition):
            elsewhere.objects += len(listed)
            overlap.of_known_topics += len(listed)
            continue
        overlap.of_known_topics += len(listed) if partition.topic_id in topic_ids else 0
        if partition not in unseen:
            result.findings += (unreferenced(stored, explained) for stored, explained in listed)
            continue
        del unseen[partition]
        tasks += run.check(partition, metadata.caches.get(partition, RemoteLogMetadataCache()), listed)
    overlap.demand(_promised(metadata, by.gone), topic_ids, options.selection, by.gone)
    for partition in unseen:
        tasks += run.check(partition, metadata.caches.get(partition, RemoteLogMetadataCache()), [])
    result.findings += OtherForms(by.store, by.layout).judge(run.absent)
    tasks.sort(key=_task_place)
    result.findings = _without_referenced(result.findings, metadata, by.layout)
    result.findings += [*elsewhere.findings(), *by.gone.findings()]
    return tasks


def _promised(metadata: ReplayedMetadata, gone: GoneTopics) -> Iterator[RemoteLogSegmentMetadata]:
    """The segments whose objects must be in the store."""
    for partition, known in metadata.known(metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])):
        if not gone.has(partition):
            yield known.metadata


@dataclass(frozen=True, slots=True)
class _Run:
    """What partitions are checked with, and what is collected about them."""

    by: JudgedBy
    options: VerifyOptions
    result: Verification
    absent: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    """Segments without any of their objects."""

    def check(
        self, partition: TopicIdPartition, cache: RemoteLogMetadataCache, listed: list[OwnedObject]
    ) -> Iterator[SegmentTask]:
        """Judges a partition by its listing; the segments that are to be read."""
        options, result, selected = self.options, self.result, self.options.selection.segment_id
        if self.by.gone.has(partition):
            self._note_gone(partition, cache, listed)
            return
        report = check_partition(partition, cache, listed, self.by, options.local_logs.get(partition))
        if options.level is not Level.FULL:
            result.transaction_indexes_unknown += report.transaction_indexes_unknown
        result.findings += report.findings
        result.skipped += report.skipped
        self.absent.extend(one for one in report.absent if selected in (None, one.segment_id))
        for metadata, stored in report.finished:
            if selected in (None, metadata.segment_id) and options.subset.has(metadata.segment_id):
                if metadata.segment_id in report.not_looked_at:
                    result.not_looked_at += 1
                    result.silent = self.by.silence.why
                    continue
                result.segments += 1
                result.objects += len(stored)
                if options.level is not Level.LISTING:
                    keys = {part: one.key for part, one in stored.items()}
                    yield SegmentTask(metadata, keys, options.level, options.index_interval_bytes, stored)

    def _note_gone(self, partition: TopicIdPartition, cache: RemoteLogMetadataCache, listed: list[OwnedObject]) -> None:
        """A partition whose objects are no longer promised."""
        known = [one.metadata.segment_id for one in cache.list_remote_log_segments()]
        selected = filter(self.options.selection.names_segment, known)
        self.result.skipped += self.by.gone.add(partition, selected, listed)
        self.result.findings += (unreferenced(*one) for one in listed if one[1].segment_id not in known)


def _listed_partitions(
    by: JudgedBy, selection: Selection, result: Verification, overlap: Overlap
) -> Iterator[tuple[TopicIdPartition, list[OwnedObject]]]:
    """The store's objects by partition, which their keys put next to each other. What the layout cannot explain
    becomes a finding, as does what ends the listing too early: objects can still be asked for by name."""
    inventory = Inventory(by.store, by.layout, replace(selection, segment_id=None))

    def owned() -> Iterator[OwnedObject]:
        try:
            for stored, explained in inventory.objects():
                overlap.listed += 1
                if explained:
                    overlap.explained += 1
                    yield stored, explained
                elif by.layout.other_form(stored.key) is not None:
                    overlap.of_known_topics += 1  # it may hold what is promised
                else:
                    result.findings.append(unreferenced(stored, None))
        except TieredctlError as error:
            if not inventory.total.objects:
                raise
            overlap.of_known_topics += 1  # what was not listed may have it
            result.findings.append(
                Finding(
                    FindingCode.UNREADABLE,
                    by.store.url,
                    f"its listing ended too early: {error.message}",
                    {"file": by.store.url, "error": error.code.value},
                )
            )

    for partition, objects in groupby(owned(), lambda one: one[1].topic_id_partition):
        yield partition, list(objects)


def _without_referenced(findings: list[Finding], metadata: ReplayedMetadata, layout: Layout) -> list[Finding]:
    """Without the objects that a segment's custom metadata explains although their key does not."""
    unexplained = {key for finding in findings if (key := _unreferenced_key(finding)) is not None}
    if not unexplained:
        return findings
    for _, known in metadata.segments():
        unexplained -= set(layout.promised_objects(known.metadata).values())
    return [f for f in findings if (key := _unreferenced_key(f)) is None or key in unexplained]


def _unreferenced_key(finding: Finding) -> str | None:
    if finding.code is FindingCode.OBJECT_UNREFERENCED and isinstance(finding.about, ObjectSubject | SegmentSubject):
        return finding.about.key
    return None


def _demand_known_segment(metadata: ReplayedMetadata, selection: Selection, coverage: MetadataCoverage) -> None:
    segment_id = selection.segment_id
    if segment_id and not len(metadata.selected(metadata.order, selection.has, segment_id)):
        why = f"The metadata has no segment {segment_id}, or it was deleted."
        coverage.demand_all(why)
        raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)


def _demand_no_topic(selection: Selection, stream: EventStream) -> None:
    """Where nothing is known of the selection, a typo must not look like a clean result."""
    if selection != Selection():
        why = f"Neither the metadata nor the store knows {selection}{selection.known_besides(stream.partitions)}."
        stream.coverage.demand_all(why)
        raise TieredctlError(ErrorCode.UNKNOWN_TOPIC, why)


def _concerns(finding: Finding, segment_id: str) -> bool:
    """Whether a finding is about a segment, or about metadata that may concern it."""
    if finding.code in (MISSING, COMPACTED, CUT_SHORT, FindingCode.TOPIC_GONE):
        return True
    about = finding.about
    if isinstance(about, MetadataSubject):
        return about.segment_id in (None, segment_id)
    return isinstance(about, SegmentSubject) and about.segment_id == segment_id


def _task_place(task: SegmentTask) -> tuple[str, str, int, int, str]:
    partition = task.metadata.topic_id_partition
    offset = task.metadata.start_offset
    return (partition.topic, partition.topic_id, partition.partition, offset, task.metadata.segment_id)


def _place(finding: Finding) -> tuple[bool, tuple[str, str, int, int], str, str]:
    """Where a finding stands among others: what of the metadata is not here first; by partition, then offset, then
    object."""
    is_about_what_is_here = finding.code not in (MISSING, COMPACTED, CUT_SHORT)
    return (is_about_what_is_here, finding.about.place, finding.subject, finding.code)


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """One finding for what both the listing and the reading of a segment found: the reading knows more about it."""
    last = {(f.code, f.subject): f for f in findings if f.code in _NOTICED_TWICE}
    grave = (f.about for f in findings if f.severity > Severity.WARNING and _of_all_objects(f) is None)
    placed = {about.segment_id for about in grave if isinstance(about, SegmentSubject)}
    return [f for f in findings if last.get((f.code, f.subject), f) is f and _of_all_objects(f) not in placed]


def _of_all_objects(finding: Finding) -> str | None:
    """The segment, where a finding only says that one of its objects does not have its original size."""
    about = finding.about
    if finding.code is FindingCode.SIZE_MISMATCH and isinstance(about, SegmentSubject) and about.part is None:
        return about.segment_id
    return None
