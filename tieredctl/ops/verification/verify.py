"""`verify`: segments against the remote store, for a whole cluster or a part of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.events import DELETION_STATES
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject, PartitionSubject, SegmentSubject, StoreSubject
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.model.quantities import size_text
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata.compaction import COMPACTED
from tieredctl.ops.metadata.completeness import demand_nothing_lost, lost_between
from tieredctl.ops.metadata.coverage import MISSING
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import ages_unknown, replayed
from tieredctl.ops.verification.accepted_losses import without_accepted
from tieredctl.ops.verification.engine import Engine, not_looked_at
from tieredctl.ops.verification.gone_topics import GoneTopics, believable_topics
from tieredctl.ops.verification.object_check import JudgedBy, PromisedTransactionIndexes
from tieredctl.ops.verification.options import RemovedSegments, VerifyOptions
from tieredctl.ops.verification.planning import VerificationPlan
from tieredctl.ops.verification.report import Level, private_key_error
from tieredctl.ops.verification.result import Verification
from tieredctl.ops.verification.tasks import TaskTable
from tieredctl.ports.layout import Layout
from tieredctl.ports.metadata_source import CUT_SHORT, EVENTS_LOST, METADATA_TOPIC
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
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
        believed = (not_deleted_since if lost else confirmed)(result.findings, metadata, again)
        result.findings = still_there([*believed, *lost], store)
    result.findings = concerning(result.findings, selection.segment_ids)
    result.findings += options.topic_sources.findings()
    if result.not_looked_at:
        result.findings.append(not_looked_at(store.url, result.not_looked_at, result.silent))
    result.findings = without_accepted(in_order(result.findings), store, options.read_accepted)
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


def confirmed(findings: Iterable[Finding], before: ReplayedMetadata, after: ReplayedMetadata) -> list[Finding]:
    """The findings whose segments are in the same state in metadata read afterwards.

    A segment that retention removed meanwhile is not missing; an object whose copy began meanwhile is not unreferenced.
    """
    every = list(findings)
    named = {one for finding in every for one in finding.about.segment_ids}
    then, now = before.states_of(named), after.states_of(named)
    return [finding for finding in every if all(then.get(one) == now.get(one) for one in finding.about.segment_ids)]


def not_deleted_since(findings: Iterable[Finding], before: ReplayedMetadata, after: ReplayedMetadata) -> list[Finding]:
    """The findings but for those of segments whose deletion began or ended since, by an event of metadata that was read
    afterwards and lacks others: what it has holds all the same, and what it lacks excuses nothing."""
    every = list(findings)
    named = {one for finding in every for one in finding.about.segment_ids}
    then, now = before.states_of(named), ReplayedMetadata(after.events, keep_deleted=True).states_of(named)
    deleted = {one for one, state in then.items() if now.get(one) in DELETION_STATES and now[one] > state}
    return [finding for finding in every if deleted.isdisjoint(finding.about.segment_ids)]


def still_there(findings: Sequence[Finding], store: ObjectStore) -> list[Finding]:
    """The findings, except those of unreferenced objects that no longer exist: they were listed while a
    broker was deleting them. Each is asked for by name, as far as its key says whose it is; what a store that does not
    answer leaves open is counted."""
    unanswered: list[TieredctlError] = []

    def is_gone_now(key: str) -> bool | None:
        """Whether the object is gone now; None where the store stopped answering."""
        if unanswered:
            return None
        try:
            return store.head(key) is None
        except TieredctlError as error:
            if error.code not in CONCERN_EVERY_OBJECT:
                return False
            unanswered.append(error)
            return None

    keys = (_explained_key(one) for one in findings)
    asked = [key for key in keys if key is not None]
    answers = dict(zip(asked, in_parallel(store, is_gone_now, asked), strict=True))
    left_out = {key for key, is_gone in answers.items() if is_gone is not False}
    there = [one for one in findings if _explained_key(one) not in left_out]
    unknown = sum(is_gone is None for is_gone in answers.values())
    return [*there, _not_known(unknown, store.url, unanswered[0])] if unknown else there


def _not_known(objects: int, url: str, error: TieredctlError) -> Finding:
    what = counted(objects, "object that no segment explains is", "objects that no segment explains are")
    message = f"it is unknown whether {what} still there: {error.message}"
    evidence = {"store": url, "error": error.code.value}
    return Finding(FindingCode.UNREADABLE, url, message, evidence, about=StoreSubject())


def _explained_key(finding: Finding) -> str | None:
    """The key of an unreferenced object that says whose it is."""
    if finding.code is FindingCode.OBJECT_UNREFERENCED and isinstance(finding.about, SegmentSubject):
        return finding.about.key
    return None


_BY_ABSENCE = (
    FindingCode.OBJECT_MISSING,
    FindingCode.OBJECT_UNREFERENCED,
    FindingCode.OFFSET_GAP,
    FindingCode.LOCAL_REMOTE_GAP,
    FindingCode.COPY_STUCK,
    FindingCode.DELETE_STUCK,
)


def without_unknown(findings: Iterable[Finding], stream: EventStream) -> list[Finding]:
    """The findings that hold no matter which events are missing, and one that counts the others."""
    kept: list[Finding] = []
    unknown = Counter[str]()
    for finding in findings:
        if finding.code in _BY_ABSENCE and _may_be_wrong(finding, stream):
            unknown[finding.code] += 1
        else:
            kept.append(finding)
    if unknown:
        counts = ", ".join(f"{code} ({count})" for code, count in sorted(unknown.items()))
        message = f"events are missing, so these findings are uncertain: {counts}"
        kept.append(Finding(stream.how_events_were_lost, METADATA_TOPIC, message, {"unknown": dict(unknown)}))
    return kept


def _may_be_wrong(finding: Finding, stream: EventStream) -> bool:
    if isinstance(finding.about, PartitionSubject):
        return stream.may_have_lost(finding.about.partition)
    return stream.has_lost_events


_OF_ALL_METADATA = (MISSING, COMPACTED, CUT_SHORT, EVENTS_LOST)
_NOTICED_TWICE = (
    FindingCode.OBJECT_ARCHIVED,
    FindingCode.SIZE_MISMATCH,
    FindingCode.TRANSACTION_INDEX_MISSING,
    FindingCode.UNREADABLE,
)


def concerning(findings: Iterable[Finding], segment_ids: Collection[str]) -> list[Finding]:
    """The findings about some segments, or about metadata that may concern them; all of them without any."""
    return [one for one in findings if not segment_ids or _concerns(one, segment_ids)]


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Findings by partition, then offset, each reported once."""
    return _without_repetition(sorted(findings, key=_place))


def _concerns(finding: Finding, segment_ids: Collection[str]) -> bool:
    if finding.code in (*_OF_ALL_METADATA, FindingCode.TOPIC_GONE):
        return True
    about = finding.about
    if isinstance(about, MetadataSubject):
        return about.segment_id is None or about.segment_id in segment_ids
    return isinstance(about, SegmentSubject) and about.segment_id in segment_ids


def _place(finding: Finding) -> tuple[bool, tuple[str, str, int, int], str, str]:
    """Where a finding stands among others: first what is missing of the metadata; by partition, then offset, then
    object."""
    is_about_what_is_here = finding.code not in _OF_ALL_METADATA
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
