"""`verify`: segments against the remote store, for a whole cluster or a part of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.model.counted import counted
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.metadata.coverage import MetadataCoverage
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.verification.confirmation import confirmed, still_there
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.finding_order import concerning, in_order
from tieredctl.ops.verification.gone_events import without_unknown
from tieredctl.ops.verification.gone_topics import GoneTopics, believable_topics
from tieredctl.ops.verification.object_check import JudgedBy
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.planning import VerificationPlan
from tieredctl.ops.verification.promised_transaction_indexes import PromisedTransactionIndexes
from tieredctl.ops.verification.report import Level, SegmentReport
from tieredctl.ops.verification.silence import not_looked_at
from tieredctl.ops.verification.tasks import TaskTable
from tieredctl.ops.verification.unread import private_key_error
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.storage.protocol import ObjectStore


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

    def add(self, report: SegmentReport) -> None:
        """Counts a segment that was read."""
        self.bytes_read += report.bytes_read
        self.batches += report.batches
        self.records += report.records
        self.findings += report.findings

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
    metadata, selection = replayed(stream, options.selection), options.selection
    found = list(stream.findings)
    _demand_known_segment(metadata, selection, stream.coverage)
    # Not earlier: the topics asked about must be older than the answer.
    live = believable_topics(options.topic_sources, metadata, stream)
    gone = GoneTopics(live, options.read_removed)
    by = JudgedBy(store, layout, options.clock, PromisedTransactionIndexes.by(metadata), gone)
    with VerificationPlan(metadata, stream, by, options) as plan:
        plan.make()
        result = _planned(plan, found)
        if not metadata.caches and not plan.findings:
            _demand_no_topic(selection, stream)
        if options.level is not Level.LISTING:
            _read(plan, engine, result, progress)
    result.findings = without_unknown(result.findings, stream)
    if result.findings and read_again:
        again = replayed(read_again(), selection)
        result.findings = still_there(confirmed(result.findings, metadata, again), store)
    result.findings = concerning(result.findings, selection.segment_id)
    if result.not_looked_at:
        result.findings.append(not_looked_at(store.url, result.not_looked_at, result.silent))
    result.findings = in_order(result.findings)
    return result


def _planned(plan: VerificationPlan, found: list[Finding]) -> Verification:
    counts = plan.counts
    return Verification(
        plan.options.level,
        segments=counts.segments,
        objects=counts.objects,
        skipped=counts.skipped,
        not_looked_at=counts.not_looked_at,
        silent=counts.silent,
        transaction_indexes_unknown=counts.transaction_indexes_unknown,
        findings=[*found, *plan.findings],
    )


def _read(plan: VerificationPlan, engine: Engine, result: Verification, progress: Progress | None) -> None:
    """Has the planned segments read. Raises TieredctlError `private-key` where none can be decrypted."""
    segments, done = result.segments, 0
    undecryptable: list[TieredctlError] = []
    for report in engine.check_segments(TaskTable(plan.tasks), plan.by.store, plan.by.layout):
        done += report.segments
        if report.not_looked_at is not None:
            result.pass_over(report, report.not_looked_at)
            continue
        result.add(report)
        if no_key := private_key_error(report.unread):
            undecryptable.append(no_key)
        if progress:
            progress(report, done, segments)
    if done != segments:
        reported = f"{done} of {counted(segments, 'segment')}"
        raise TieredctlError(ErrorCode.FAULT, f"The engine reported on {reported}: nothing is known of the others.")
    if 0 < len(undecryptable) == segments:
        raise undecryptable[0]


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
