"""One run: looks, writes what is new, and makes it current as a whole.

The metadata's ends are noted first; then the store is listed and compared with it; then events up to those ends are
appended, replayed, and become tables. The manifest is written last: until then nobody sees any of it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from pyspark.sql import SparkSession

from tieredctl.config.file import storage_price
from tieredctl.config.plan_key import usable_key
from tieredctl.errors import ExitCode, worst
from tieredctl.model.clock import Clock
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.verification.options import VerifyOptions
from tieredctl.ops.verification.report import Level
from tieredctl.ports.cluster import Cluster
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.places import MetadataPlace, StorePlace, TopicsPlace
from tieredctl.wiring.verify import Verified, verify
from tieredctl_spark.engine import SparkEngine
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.orphan_scan import SparkScan
from tieredctl_spark.pipeline import daily, objects
from tieredctl_spark.pipeline.events import Appended, append_events, shares_between
from tieredctl_spark.pipeline.finding_history import FindingsOfLook, LookKind, merged_findings
from tieredctl_spark.pipeline.kept_rows import kept_rows
from tieredctl_spark.pipeline.look import MetadataLook, demand_same_sources, first_unread, look_at
from tieredctl_spark.pipeline.segments import Replayed, Replaying, replay_segments
from tieredctl_spark.pipeline.upkeep import kept_events
from tieredctl_spark.run_id import new_run_id
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.due import day_of, events_due
from tieredctl_spark.tables.files import file_rows
from tieredctl_spark.tables.kinds import (
    COPY_LAG_HOURLY,
    COST_DAILY,
    COVERAGE,
    EVENTS,
    FINDINGS,
    OBJECTS_DAILY,
    ORPHANS_DAILY,
    RETENTION_FORECAST,
    SEGMENT_HISTORY,
    SEGMENTS,
    TABLES,
    TableKind,
)
from tieredctl_spark.tables.manifest import DataFile, Looked, Manifest, TableState
from tieredctl_spark.tables.reading import files_frame
from tieredctl_spark.tables.table_store import TablesPlace, commit, current, demand_apart, remove_leftovers
from tieredctl_spark.tables.writing import TableWriter

_STUCK_AFTER_MS = 3_600_000
Opened = Callable[[TablesPlace], WritableObjectStore]


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What a run is about. Times in ms."""

    metadata: MetadataPlace
    store: StorePlace
    topics: TopicsPlace
    tables: TablesPlace
    level: Level = Level.LISTING
    min_age_ms: int = 24 * _STUCK_AFTER_MS
    list_every_ms: int = _STUCK_AFTER_MS
    """Without news of the metadata, the store is listed again once the last listing is that old."""
    keep_events_ms: int = 365 * 24 * _STUCK_AFTER_MS
    """Rows of the table of events are kept so long."""
    now_ms: int = field(default_factory=lambda: time.time_ns() // 1_000_000)


@dataclass(frozen=True, slots=True)
class PipelineRun:
    """What a run did."""

    manifest: Manifest
    had_news: bool
    findings: tuple[Finding, ...] = ()
    leftovers: int = 0
    """How many files of earlier runs were removed."""

    @property
    def exit_code(self) -> ExitCode:
        return ExitCode(self.manifest.looked.exit_code)


def run_pipeline(
    options: PipelineOptions,
    settings: Mapping[str, str],
    opened: Opened = TablesPlace.open_writable,
) -> PipelineRun:
    """Runs once. `settings` are Spark's, for a session of its own, which starts only if there is news.

    Raises TieredctlError as verification and scans do, `locked` where another run was faster, and as
    `demand_same_sources` does.
    """
    remote = options.store.open()
    options.metadata.demand_usable()
    seen = look_at(options.metadata)
    demand_apart(options.tables, remote.store.url)
    tables = opened(options.tables)
    before = current(tables)
    if before is not None:
        demand_same_sources(before.looked, seen, remote.store.url, tables.url)
    begun = _Begun(options, seen, remote.store.url, remote.layout.name, tables, before)
    if before is not None and not begun.is_due(before.looked):
        found = PipelineRun(_next(begun, before.looked, before.tables), had_news=False)
    else:
        with spark_session(settings) as session, spark_failures():
            found = _looked(begun, session, settings)
    commit(tables, found.manifest)
    return replace(found, leftovers=remove_leftovers(tables, found.manifest))


@dataclass(frozen=True, slots=True)
class _Begun:
    options: PipelineOptions
    seen: MetadataLook
    store_url: str
    layout: str
    tables: WritableObjectStore
    before: Manifest | None
    run_id: str = field(default_factory=new_run_id)

    @property
    def version(self) -> int:
        return 1 if self.before is None else self.before.version + 1

    def is_due(self, recorded: Looked) -> bool:
        """Whether another look may find what the recorded one did not."""
        options = self.options
        has_news = recorded.offsets != self.seen.document() or recorded.cluster_id != self.seen.cluster_id
        is_other = (recorded.layout, recorded.level) != (self.layout, options.level.value)
        return has_news or is_other or options.now_ms - recorded.listed_ms >= options.list_every_ms

    def files(self, kind: TableKind) -> tuple[DataFile, ...]:
        """Of the version before."""
        known = None if self.before is None else self.before.tables.get(kind.name)
        return () if known is None else known.files


def _next(begun: _Begun, looked: Looked, tables: Mapping[str, TableState]) -> Manifest:
    parent = "" if begun.before is None else begun.before.run_id
    return Manifest(begun.version, begun.run_id, parent, begun.options.now_ms, looked, tables)


def _looked(begun: _Begun, session: SparkSession, settings: Mapping[str, str]) -> PipelineRun:
    options, engine = begun.options, SparkEngine(settings)
    verified = verify(
        options.metadata,
        options.store,
        VerifyOptions(level=options.level, clock=Clock(options.now_ms, _STUCK_AFTER_MS)),
        topics=options.topics,
        make_engine=lambda: engine,
    )
    how = ScanOptions(options.now_ms, options.min_age_ms, key=usable_key(), price=storage_price(options.store.url))
    places = ScanPlaces(options.metadata, options.store, options.topics)
    with engine.opened_scan(places, how, lists_all=False) as opened:
        scan = opened.scan
        whole = scan.facts.certainty.is_whole and is_whole(verified.metadata_findings)
        scan_complete = whole and scan.summary()["complete"] and opened.topics.silence is None
        tables = _Writing(begun, session, verified, scan, is_whole=whole, scan_complete=scan_complete).tables()
        complete = scan_complete and verified.result.complete
    findings = (*verified.result.findings, *scan.findings)
    code = exit_code_of(findings)
    if not complete:
        code = worst(code, ExitCode.INCOMPLETE)
    seen = begun.seen
    looked = Looked(
        begun.store_url,
        begun.layout,
        seen.cluster_id,
        seen.topic_id,
        seen.document(),
        options.level.value,
        options.now_ms,
        options.list_every_ms,
        options.keep_events_ms,
        complete,
        int(code),
    )
    return PipelineRun(_next(begun, looked, tables), had_news=True, findings=findings)


class _Writing:
    """Writes the files of all tables."""

    def __init__(
        self,
        begun: _Begun,
        session: SparkSession,
        verified: Verified,
        scan: SparkScan,
        *,
        is_whole: bool,
        scan_complete: bool,
    ) -> None:
        """`is_whole` is of the metadata; `scan_complete` says whether the scan looked at everything."""
        self._begun = begun
        self._session = session
        self._verified = verified
        self._scan = scan
        self._is_whole = is_whole
        self._scan_complete = scan_complete
        self._now_ms = begun.options.now_ms
        day = day_of(self._now_ms)
        cluster_id = begun.seen.cluster_id
        self._writer = TableWriter(begun.tables, begun.version, begun.run_id, cluster_id, day)

    def tables(self) -> dict[str, TableState]:
        """What the new version has."""
        appended, replayed = self._events()
        segments, history = (
            (*written, *self._kept(kind, replayed.history))
            for kind, written in ((SEGMENTS, replayed.segments), (SEGMENT_HISTORY, replayed.history))
        )
        now_ms, scan, verified = self._now_ms, self._scan, self._verified.result
        found = {
            EVENTS: (*self._kept_events(), *appended.files),
            SEGMENTS: segments,
            SEGMENT_HISTORY: history,
            FINDINGS: self._findings(),
            COPY_LAG_HOURLY: self._copy_lags(history, appended.earliest_ms),
        }
        of_today = {
            OBJECTS_DAILY: objects.stored_objects(self._session, scan.remote),
            ORPHANS_DAILY: objects.orphaned_objects(scan.verdicts, now_ms),
            COST_DAILY: daily.costs(replayed.figures, scan.options.price, now_ms),
            COVERAGE: daily.coverage(verified, now_ms),
            RETENTION_FORECAST: daily.forecast(replayed),
        }
        for kind, rows in of_today.items():
            earlier = [one for one in self._begun.files(kind) if one.day != self._writer.day]
            found[kind] = (*earlier, self._writer.write(kind, rows))
        for kind, files in found.items():
            if not files:  # whoever looks for a table finds its columns
                found[kind] = (self._writer.write(kind, kind.columns.empty_table()),)
        run_id = self._begun.run_id
        return {name: TableState(tuple(found[kind]), run_id, now_ms) for name, kind in TABLES.items()}

    def _events(self) -> tuple[Appended, Replayed]:
        begun, session, metadata = self._begun, self._session, self._begun.options.metadata
        ends = {number: end for number, (_, end) in begun.seen.offsets.items()}
        recorded = None if begun.before is None else begun.before.looked
        new = shares_between(metadata, first_unread(recorded, begun.seen), ends)
        appended = append_events(session, metadata, new, self._writer)
        layout, retention = self._scan.remote.layout, self._retention()
        return appended, replay_segments(
            session, metadata, ends, Replaying(self._writer, layout, retention, self._now_ms)
        )

    def _kept_events(self) -> list[DataFile]:
        files = self._begun.files(EVENTS)
        due = events_due(files, self._begun.options.keep_events_ms, self._now_ms)
        return kept_events(self._session, files, due, self._writer)

    def _kept(self, kind: TableKind, history: list[DataFile]) -> list[DataFile]:
        if self._is_whole:
            return []
        return kept_rows(self._session, kind, self._begun.files(kind), history, self._writer)

    def _retention(self) -> dict[str, int | None]:
        metadata = self._verified.result.metadata
        partitions = [] if metadata is None else metadata.partitions
        with self._cluster() as cluster:
            return {} if cluster is None else daily.retention_settings(cluster, partitions)

    @contextmanager
    def _cluster(self) -> Iterator[Cluster | None]:
        topics = self._begun.options.topics
        if topics.cluster is not None:
            with topics.cluster.open() as live:
                yield live
        elif topics.snapshot is not None:
            with OfflineClusterPlace(topics.snapshot).open() as offline:
                yield offline
        else:
            yield None

    def _findings(self) -> tuple[DataFile, ...]:
        level, result = self._begun.options.level, self._verified.result
        looks = (
            FindingsOfLook(LookKind.VERIFICATION, level, result.findings, self._is_whole and result.complete),
            FindingsOfLook(LookKind.SCAN, Level.LISTING, self._scan.findings, self._scan_complete),
        )
        known = file_rows(self._begun.tables, FINDINGS, self._begun.files(FINDINGS))
        return (self._writer.write(FINDINGS, merged_findings(known, looks, self._now_ms)),)

    def _copy_lags(self, history: tuple[DataFile, ...], earliest_ms: int | None) -> tuple[DataFile, ...]:
        """Hours before the first new event keep what they had."""
        known = self._begun.files(COPY_LAG_HOURLY)
        if earliest_ms is None or not history:
            return known
        first_day = day_of(earliest_ms)
        frame = files_frame(self._session, self._begun.tables, SEGMENT_HISTORY, history, daily.LAG_COLUMNS)
        written = [
            self._writer.write(COPY_LAG_HOURLY, rows, day)
            for day, rows in sorted(daily.copy_lags(frame, first_day).items())
        ]
        return (*(one for one in known if one.day is not None and one.day < first_day), *written)
