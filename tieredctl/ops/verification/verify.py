"""`verify`: segments against the remote store, for a whole cluster or a part of it."""

from __future__ import annotations

from collections.abc import Callable

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.findings import exit_code_of
from tieredctl.model.quantities import size_text
from tieredctl.ops.metadata.completeness import demand_nothing_lost, lost_between
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import ages_unknown, replayed
from tieredctl.ops.verification.confirmation import confirmed, still_there
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.finding_order import concerning, in_order
from tieredctl.ops.verification.gone_events import without_unknown
from tieredctl.ops.verification.gone_topics import GoneTopics, believable_topics
from tieredctl.ops.verification.object_check import JudgedBy
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.planning import VerificationPlan
from tieredctl.ops.verification.promised_transaction_indexes import PromisedTransactionIndexes
from tieredctl.ops.verification.removed_objects import RemovedSegments
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.silence import not_looked_at
from tieredctl.ops.verification.tasks import TaskTable
from tieredctl.ops.verification.unread import private_key_error
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.process.progress import note
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def verify(
    stream: EventStream,
    store: ObjectStore,
    layout: Layout,
    engine: Engine,
    options: VerifyOptions,
    *,
    read_again: Callable[[], EventStream] | None = None,
) -> Verification:
    """Reads the metadata, then lists the store, then reads segments as deep as the level says.

    With `read_again`, what was found is checked against metadata read again: the cluster may have changed. Raises
    TieredctlError where the selection names a topic or a segment that is not known, `no-overlap` where the store has
    nothing of what the metadata promises, and `private-key` where no segment can be decrypted.
    """
    metadata, selection = replayed(stream, options.selection), options.selection
    _demand_known_segment(metadata, selection, stream)
    # Not earlier: the topics asked about must be older than the answer.
    live = believable_topics(options.topic_sources, metadata, stream)
    indexes, removed = PromisedTransactionIndexes.by(metadata), RemovedSegments(options.read_removed)
    by = JudgedBy(store, layout, options.clock, indexes, GoneTopics(live), removed)
    with VerificationPlan(metadata, stream, by, options) as plan:
        plan.make()
        result = plan.result
        if not metadata.caches and not result.findings:
            _demand_no_topic(selection, stream)
        elif selection.names_several:
            _demand_each(selection, stream, options)
        result.findings = [*stream.findings, *ages_unknown(metadata, options.clock.now_ms), *result.findings]
        if options.level is not Level.LISTING:
            _read(plan, engine, result)
    result.findings = without_unknown(result.findings, stream)
    if result.findings and read_again:
        later = read_again()
        again = replayed(later, selection)
        lost = lost_between(stream, later)
        believed = result.findings if lost else confirmed(result.findings, metadata, again)
        result.findings = still_there([*believed, *lost], store)
    result.findings = concerning(result.findings, selection.segment_ids)
    result.findings += options.topic_sources.findings()
    if result.not_looked_at:
        result.findings.append(not_looked_at(store.url, result.not_looked_at, result.silent))
    result.findings = in_order(result.findings)
    result.metadata = metadata
    return result


def _read(plan: VerificationPlan, engine: Engine, result: Verification) -> None:
    """Has the planned segments read. Raises TieredctlError `private-key` where none can be decrypted."""
    segments, done, read = result.segments, 0, 0
    undecryptable: list[TieredctlError] = []
    for report in engine.check_segments(TaskTable(plan.tasks), plan.by.store, plan.by.layout):
        done += report.segments
        if report.not_looked_at is not None:
            result.pass_over(report, report.not_looked_at)
            continue
        result.add(report)
        if no_key := private_key_error(report.unread):
            undecryptable.append(no_key)
        read += report.bytes_read
        note("segments", done, segments, f"{size_text(read)} read")
    if done != segments:
        reported = f"{done} of {counted(segments, 'segment')}"
        raise TieredctlError(ErrorCode.FAULT, f"The engine reported on {reported}: nothing is known of the others.")
    if 0 < len(undecryptable) == segments:
        raise undecryptable[0]


def _demand_known_segment(metadata: ReplayedMetadata, selection: Selection, stream: EventStream) -> None:
    for segment_id in selection.segment_ids:
        if not len(metadata.selected(metadata.order, selection.has, (segment_id,))):
            why = f"The metadata has no segment {segment_id}, or it was deleted."
            demand_nothing_lost(stream, why)
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, why)


def _demand_each(selection: Selection, stream: EventStream, options: VerifyOptions) -> None:
    """Of several that are selected, one that nothing is known of must not vanish beside the others."""
    if not exit_code_of(stream.findings):
        selection.demand_known({*stream.partitions, *options.local_logs}, "The metadata has no event of")


def _demand_no_topic(selection: Selection, stream: EventStream) -> None:
    """Where nothing is known of the selection, a typo must not look like a clean result."""
    if selection != Selection():
        unknown = selection.unknown(stream.partitions, "Neither the metadata nor the store knows")
        demand_nothing_lost(stream, unknown.message)
        raise unknown
