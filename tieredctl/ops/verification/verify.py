"""`verify`: segments against the remote store, for a whole cluster or a part of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.formats.crc32c import crc32c
from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.model.local_log import LocalLog
from tieredctl.ops.event_stream import EventStream
from tieredctl.ops.inventory import Inventory
from tieredctl.ops.metadata_coverage import MISSING, MetadataCoverage, numbers_text
from tieredctl.ops.metadata_state import replayed
from tieredctl.ops.selection import Selection
from tieredctl.ops.verification.confirmation import confirmed
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.other_forms import OtherForms
from tieredctl.ops.verification.partition_check import Clock, OwnedObject, check_partition, unreferenced
from tieredctl.ops.verification.promised_transaction_indexes import PromisedTransactionIndexes
from tieredctl.ops.verification.report import DEFAULT_INDEX_INTERVAL_BYTES, Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.unread import UNDECRYPTABLE, private_key_error
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replay import RemotePartitionMetadataStore
from tieredctl.storage.protocol import ObjectStore

_HASH_RANGE = 1 << 32
_NOTICED_TWICE = ("object-archived", "size-mismatch", "transaction-index-missing", "unreadable")


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
            raise TieredctlError("usage", f"{text!r} is no subset.", hint="Write it as 3/30 or 5%.")
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

    def with_local_logs(self, logs: Mapping[TopicIdPartition, LocalLog]) -> VerifyOptions:
        """The same, with the seam to the local logs judged too."""
        return replace(self, local_logs=logs)


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
    transaction_indexes_unknown: int = 0
    """Of how many segments this level does not tell whether they lack a transaction index."""
    findings: list[Finding] = field(default_factory=list)

    @property
    def complete(self) -> bool:
        return exit_code_of(f for f in self.findings if f.kind.incomplete) is not ExitCode.INCOMPLETE

    def summary(self) -> dict[str, Any]:
        return {
            "level": self.level.value,
            "segments": self.segments,
            "objects": self.objects,
            "bytesRead": self.bytes_read,
            "batches": self.batches,
            "records": self.records,
            "skipped": self.skipped,
            "transactionIndexesUnknown": self.transaction_indexes_unknown,
            "findings": len(self.findings),
            "complete": self.complete,
        }


Progress = Callable[[SegmentReport, int, int], None]
"""Told of each report: (report, segments done, segments in all)."""


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

    With `read_again`, what was found is held against metadata read once more: the cluster may have gone on. Raises
    TieredctlError where the selection names a topic or a segment that is not known, and `private-key` where no segment
    can be decrypted.
    """
    metadata = replayed(stream, options.selection)
    result = Verification(options.level, findings=list(stream.findings))
    coverage = stream.coverage
    _demand_known_segment(metadata, options.selection, coverage)
    tasks = _check_partitions(metadata, store, layout, options, result, coverage)
    if not metadata.caches and len(result.findings) == len(stream.findings):
        _demand_no_topic(options.selection, coverage)
    undecryptable = 0
    if options.level is not Level.LISTING:
        for done, report in enumerate(engine.check_segments(tasks, store, layout), start=1):
            result.bytes_read += report.bytes_read
            result.batches += report.batches
            result.records += report.records
            result.findings += report.findings
            undecryptable += any(finding.code == UNDECRYPTABLE for finding in report.findings)
            if progress:
                progress(report, done, len(tasks))
        if 0 < undecryptable == len(tasks) and (no_key := private_key_error(result.findings)):
            raise no_key
    if result.findings and read_again:
        result.findings = confirmed(result.findings, metadata, replayed(read_again(), options.selection))
    if options.selection.segment_id:
        result.findings = [f for f in result.findings if _concerns(f, options.selection.segment_id)]
    result.findings.sort(key=_place)
    result.findings = _without_repetition(result.findings)
    return result


def _check_partitions(
    metadata: RemotePartitionMetadataStore,
    store: ObjectStore,
    layout: Layout,
    options: VerifyOptions,
    result: Verification,
    coverage: MetadataCoverage,
) -> list[SegmentTask]:
    tasks: list[SegmentTask] = []
    elsewhere = _Elsewhere(metadata, coverage)
    # A partition that a broker has and the metadata never heard of may have lost all of its events.
    local = (one for one in options.local_logs if options.selection.has(one) and not elsewhere.may_have(one))
    run = _Run(store, layout, options, result, PromisedTransactionIndexes.by(metadata))
    unseen = {partition: RemoteLogMetadataCache() for partition in local} | metadata.caches
    for partition, listed in _listed_partitions(store, layout, options.selection, result):
        cache = unseen.pop(partition, None)
        if elsewhere.may_have(partition):
            elsewhere.objects += len(listed)
        elif cache is None:
            result.findings += (unreferenced(stored, explained) for stored, explained in listed)
        else:
            tasks += run.check(partition, cache, listed)
    for partition, cache in unseen.items():
        tasks += run.check(partition, cache, [])
    result.findings += OtherForms(store, layout).judge(run.absent)
    tasks.sort(key=_task_place)
    result.findings = _without_referenced(result.findings, metadata, layout) + elsewhere.findings()
    return tasks


@dataclass(slots=True)
class _Elsewhere:
    """What may have its events in metadata that is not here, and is not judged: objects that were listed."""

    metadata: RemotePartitionMetadataStore
    coverage: MetadataCoverage
    objects: int = 0

    def may_have(self, partition: TopicIdPartition) -> bool:
        """Whether a partition has no events here and may have some elsewhere."""
        known = partition in self.metadata.caches or partition in self.metadata.partition_deletes
        return not known and self.coverage.may_be_elsewhere(partition.topic_id, partition.partition)

    def findings(self) -> list[Finding]:
        """What is said of them where nothing else says that metadata is missing."""
        if not self.objects or self.coverage.is_broken:
            return []
        message = (
            f"{self.objects} objects are of partitions without events in the metadata partitions that are here "
            f"({numbers_text(self.coverage.here)}); there may be others, where they have some"
        )
        evidence = {"metadataPartitions": list(self.coverage.here), "objects": self.objects}
        return [Finding(MISSING, METADATA_TOPIC, message, evidence)]


@dataclass(frozen=True, slots=True)
class _Run:
    """What partitions are checked with, and what is gathered of them."""

    store: ObjectStore
    layout: Layout
    options: VerifyOptions
    result: Verification
    promised: PromisedTransactionIndexes
    absent: list[RemoteLogSegmentMetadata] = field(default_factory=list)
    """Segments without any of their objects."""

    def check(
        self, partition: TopicIdPartition, cache: RemoteLogMetadataCache, listed: list[OwnedObject]
    ) -> Iterator[SegmentTask]:
        """Judges a partition by its listing; the segments that are to be read."""
        options, result, selected = self.options, self.result, self.options.selection.segment_id
        report = check_partition(
            partition,
            cache,
            listed,
            self.store,
            self.layout,
            clock=options.clock,
            local=options.local_logs.get(partition),
            promised=self.promised,
        )
        if options.level is not Level.FULL:
            result.transaction_indexes_unknown += report.transaction_indexes_unknown
        result.findings += report.findings
        result.skipped += report.skipped
        self.absent.extend(one for one in report.absent if selected in (None, one.segment_id))
        for metadata, keys in report.finished:
            if selected in (None, metadata.segment_id) and options.subset.has(metadata.segment_id):
                result.segments += 1
                result.objects += len(keys)
                yield SegmentTask(metadata, keys, options.level, options.index_interval_bytes)


def _listed_partitions(
    store: ObjectStore, layout: Layout, selection: Selection, result: Verification
) -> Iterator[tuple[TopicIdPartition, list[OwnedObject]]]:
    """The store's objects by partition, which are beside each other by their keys. What the layout cannot explain
    becomes a finding, as does what ends the listing too early: objects can still be asked for by name."""
    inventory = Inventory(store, layout, replace(selection, segment_id=None))

    def owned() -> Iterator[OwnedObject]:
        try:
            for stored, explained in inventory.objects():
                if explained:
                    yield stored, explained
                elif layout.other_form(stored.key) is None:
                    result.findings.append(unreferenced(stored, None))
        except TieredctlError as error:
            if error.kind.code == "store-unreachable" or not inventory.total.objects:
                raise
            result.findings.append(Finding("unreadable", store.url, error.message, {"file": store.url}))

    for partition, objects in groupby(owned(), lambda one: one[1].topic_id_partition):
        yield partition, list(objects)


def _without_referenced(
    findings: list[Finding], metadata: RemotePartitionMetadataStore, layout: Layout
) -> list[Finding]:
    """Without the objects that no key explains and a segment's custom metadata does."""
    unexplained = {f.evidence["key"] for f in findings if f.code == "object-unreferenced"}
    if not unexplained:
        return findings
    for _, known in metadata.segments():
        unexplained -= set(layout.promised_objects(known.metadata).values())
    return [f for f in findings if f.code != "object-unreferenced" or f.evidence["key"] in unexplained]


def _demand_known_segment(
    metadata: RemotePartitionMetadataStore, selection: Selection, coverage: MetadataCoverage
) -> None:
    segment_id = selection.segment_id
    if segment_id and all(cache.state_of(segment_id) is None for cache in metadata.caches.values()):
        why = f"The metadata has no segment {segment_id}, or no longer."
        coverage.demand_all(why)
        raise TieredctlError("unknown-segment", why)


def _demand_no_topic(selection: Selection, coverage: MetadataCoverage) -> None:
    """Where nothing at all is known of what was selected, a typing error must not look like a clean result."""
    if selection != Selection():
        named = selection.topic or selection.topic_id or f"a partition {selection.partition}"
        why = f"Neither the metadata nor the store knows {named}."
        coverage.demand_all(why)
        raise TieredctlError("unknown-topic", why)


def _concerns(finding: Finding, segment_id: str) -> bool:
    """Whether a finding is about a segment, or about metadata that might be about it."""
    about = finding.evidence.get("segmentId")
    return about == segment_id or (about is None and "metadataPartition" in finding.evidence)


def _task_place(task: SegmentTask) -> tuple[str, str, int, int, str]:
    partition = task.metadata.topic_id_partition
    offset = task.metadata.start_offset
    return (partition.topic, partition.topic_id, partition.partition, offset, task.metadata.segment_id)


def _place(finding: Finding) -> tuple[bool, str, str, int, int, str, str]:
    """Where a finding stands among others: what of the metadata is not here first; by partition, then offset, then
    object."""
    evidence = finding.evidence
    offsets = evidence.get("offsets")
    first = offsets[0] if isinstance(offsets, list) else -1
    partition = evidence.get("partition")
    return (
        finding.code != MISSING,
        str(evidence.get("topic", "")),
        str(evidence.get("topicId", "")),
        partition if isinstance(partition, int) else -1,
        first,
        finding.subject,
        finding.code,
    )


def _without_repetition(findings: list[Finding]) -> list[Finding]:
    """One finding for what both the listing and the reading of a segment noticed: the reading knows more of it."""
    last = {(f.code, f.subject): f for f in findings if f.code in _NOTICED_TWICE}
    placed = {
        f.evidence.get("segmentId") for f in findings if f.severity > Severity.WARNING and not _is_of_all_objects(f)
    }
    return [
        f
        for f in findings
        if last.get((f.code, f.subject), f) is f and not (_is_of_all_objects(f) and f.evidence["segmentId"] in placed)
    ]


def _is_of_all_objects(finding: Finding) -> bool:
    """Whether it says no more than that one of a segment's objects has not the size that it had."""
    return "storedSize" in finding.evidence
