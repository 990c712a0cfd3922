"""One run: looks, writes what is new, and makes it current as a whole.

The metadata's ends are noted first; then the store is listed and compared with it; then events up to those ends are
appended, replayed, and become tables. The manifest is written last: until then nobody sees any of it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pyarrow as pa
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
from tieredctl.wiring.offline_cluster import OfflineClusterPlace
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.topics_place import TopicsPlace
from tieredctl.wiring.verify import Verified, verify
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.engine import SparkEngine
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.kept_work import KeptWork
from tieredctl_spark.ledger import Ledger
from tieredctl_spark.ledger_place import ledger_beside
from tieredctl_spark.ledger_rows import LedgerRows
from tieredctl_spark.orphan_scan import SparkScan
from tieredctl_spark.pipeline import coverage, daily, objects
from tieredctl_spark.pipeline.catalog_tables import CatalogVersions
from tieredctl_spark.pipeline.events import shares_between
from tieredctl_spark.pipeline.finding_history import FindingsOfLook, LookKind, merged_findings
from tieredctl_spark.pipeline.folder_tables import FolderVersions
from tieredctl_spark.pipeline.look import MetadataLook, demand_same_sources, first_unread, look_at
from tieredctl_spark.pipeline.run_tables import RunIdentity, RunTables, Versions
from tieredctl_spark.pipeline.segments import Replaying
from tieredctl_spark.recorded_engine import RecordedEngine, RunOptions
from tieredctl_spark.run_id import new_run_id
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.due import day_of, first_kept_day, is_listing_due
from tieredctl_spark.tables.kinds import (
    COPY_LAG_HOURLY,
    COST_DAILY,
    COVERAGE,
    FINDINGS,
    OBJECTS_DAILY,
    ORPHANS_DAILY,
    RETENTION_FORECAST,
    SEGMENT_HISTORY,
    SEGMENTS,
)
from tieredctl_spark.tables.manifest import Looked, Manifest, State
from tieredctl_spark.tables.table_store import Opened, TablesPlace, demand_apart

_STUCK_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class PipelineOptions:
    """What a run is about. Times in ms."""

    metadata: MetadataPlace
    store: StorePlace
    topics: TopicsPlace
    tables: TablesPlace | CatalogPlace
    level: Level = Level.LISTING
    max_age_ms: int = 12 * _STUCK_AFTER_MS
    """Segments that the ledger knows to be sound for longer are read again, where the level says so."""
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
    """Runs once. `settings` are Spark's, for a session of its own. Without news, tables in a folder need none.

    Raises TieredctlError as verification and scans do, `locked` where another run was faster, and as
    `demand_same_sources` and `CatalogPlace.open` do.
    """
    remote = options.store.open()
    options.metadata.demand_usable()
    begun = _Begun(options, look_at(options.metadata), remote.store.url, remote.layout.name)
    if isinstance(options.tables, CatalogPlace):
        options.tables.demand_release()
        with spark_session(settings) as session, spark_failures():
            return _run(begun, settings, CatalogVersions(options.tables.open(session)))
    demand_apart(options.tables, remote.store.url)
    ledger = ledger_beside(options.tables)
    return _run(begun, settings, FolderVersions(opened(options.tables), lambda: opened(ledger)))


@dataclass(frozen=True, slots=True)
class _Begun:
    options: PipelineOptions
    seen: MetadataLook
    store_url: str
    layout: str
    run_id: str = field(default_factory=new_run_id)

    def is_due(self, recorded: Looked) -> bool:
        """Whether another look may find what the recorded one did not."""
        options = self.options
        known = self.seen.after(recorded)
        has_news = recorded.offsets != known.document() or recorded.cluster_id != known.cluster_id
        is_other = (recorded.layout, recorded.level) != (self.layout, options.level.value)
        is_old = is_listing_due(options.now_ms - recorded.listed_ms, options.list_every_ms)
        return has_news or is_other or is_old

    def next(self, before: Manifest | None, looked: Looked, tables: Mapping[str, State]) -> Manifest:
        version, parent = (1, "") if before is None else (before.version + 1, before.run_id)
        return Manifest(version, self.run_id, parent, self.options.now_ms, looked, tables)


def _run(begun: _Begun, settings: Mapping[str, str], versions: Versions) -> PipelineRun:
    before = versions.current()
    if before is not None:
        demand_same_sources(before.looked, begun.seen, begun.store_url, versions.url)
    if before is not None and not begun.is_due(before.looked):
        found = PipelineRun(begun.next(before, before.looked, before.tables), had_news=False)
    else:
        with spark_session(settings) as session, spark_failures():
            found = _looked(begun, session, settings, versions, before)
    return replace(found, leftovers=versions.commit(found.manifest))


def _looked(
    begun: _Begun, session: SparkSession, settings: Mapping[str, str], versions: Versions, before: Manifest | None
) -> PipelineRun:
    options, engine, seen = begun.options, SparkEngine(settings), begun.seen
    readings, age = versions.readings(seen.cluster_id), timedelta(milliseconds=min(options.max_age_ms, options.now_ms))
    reader = RecordedEngine(KeptWork(session), Ledger(readings), RunOptions(age), begun.run_id)
    verified = verify(
        options.metadata,
        options.store,
        VerifyOptions(level=options.level, clock=Clock(options.now_ms, _STUCK_AFTER_MS)),
        topics=options.topics,
        make_engine=lambda: reader,
    )
    if options.level is not Level.LISTING:  # which reads nothing
        reader.tidy()
    how = ScanOptions(options.now_ms, options.min_age_ms, key=usable_key(), price=storage_price(options.store.url))
    places = ScanPlaces(options.metadata, options.store, options.topics)
    with engine.opened_scan(places, how, lists_all=False) as opened:
        scan = opened.scan
        whole = scan.facts.certainty.is_whole and is_whole(verified.metadata_findings)
        scan_complete = whole and scan.summary()["complete"] and opened.topics.silence is None
        looked_ms = options.now_ms if before is None else before.looked_ms
        first_kept = first_kept_day(options.keep_events_ms, options.now_ms, looked_ms)
        run = RunIdentity(begun.run_id, seen.cluster_id, options.now_ms, first_kept)
        tables = versions.opened(before, run)
        look = _Look(begun, verified, scan, whole, scan_complete, readings)
        look.write(session, tables, first_unread(None if before is None else before.looked, seen))
        states = tables.states()
        complete = scan_complete and verified.result.complete
    findings = (*verified.result.findings, *scan.findings)
    code = exit_code_of(findings)
    if not complete:
        code = worst(code, ExitCode.INCOMPLETE)
    known = seen.after(None if before is None else before.looked)
    looked = Looked(
        begun.store_url,
        begun.layout,
        known.cluster_id,
        known.topic_id,
        known.document(),
        options.level.value,
        options.now_ms,
        options.list_every_ms,
        options.keep_events_ms,
        complete,
        int(code),
    )
    return PipelineRun(begun.next(before, looked, states), had_news=True, findings=findings)


@dataclass(frozen=True, slots=True)
class _Look:
    """What a run saw, which becomes rows."""

    begun: _Begun
    verified: Verified
    scan: SparkScan
    is_whole: bool
    """Whether the metadata is whole."""
    scan_complete: bool
    """Whether the scan looked at everything."""
    readings: LedgerRows

    def write(self, session: SparkSession, tables: RunTables, first_unread: Mapping[int, int]) -> None:
        """All tables. Events are new from the offsets `first_unread` on."""
        options, scan = self.begun.options, self.scan
        ends = {number: end for number, (_, end) in self.begun.seen.offsets.items()}
        earliest_ms = tables.append_events(options.metadata, shares_between(options.metadata, first_unread, ends))
        replaying = Replaying(options.metadata, ends, scan.remote.layout, self._retention(), options.now_ms)
        replayed = tables.replay(replaying, is_whole=self.is_whole)
        tables.replace(FINDINGS, merged_findings(tables.known(FINDINGS), self._findings(), options.now_ms))
        if earliest_ms is not None:  # hours before the first new event keep what they had
            first_day = day_of(earliest_ms)
            lags = daily.copy_lags(tables.rows(SEGMENT_HISTORY, daily.LAG_COLUMNS), first_day)
            tables.replace_days(COPY_LAG_HOURLY, first_day, lags)
        tables.replace(OBJECTS_DAILY, objects.stored_objects(session, scan.remote, self._scanned()))
        tables.replace(ORPHANS_DAILY, objects.orphaned_objects(scan.verdicts, options.now_ms))
        tables.replace(COST_DAILY, daily.costs(replayed.figures, scan.options.price, options.now_ms))
        segments = tables.rows(SEGMENTS, coverage.SEGMENT_COLUMNS)
        readings = self.readings.rows(coverage.READING_COLUMNS)
        read = coverage.read(segments, readings, self.begun.store_url)
        tables.replace(COVERAGE, pa.concat_tables([coverage.compared(self.verified.result, options.now_ms), read]))
        tables.replace(RETENTION_FORECAST, daily.forecast(replayed))

    def _scanned(self) -> objects.Stored:
        summary = self.scan.summary()
        return objects.Stored(summary["objects"], summary["bytes"])

    def _retention(self) -> dict[str, int | None]:
        metadata = self.verified.result.metadata
        partitions = [] if metadata is None else metadata.partitions
        with self._cluster() as cluster:
            return {} if cluster is None else daily.retention_settings(cluster, partitions)

    @contextmanager
    def _cluster(self) -> Iterator[Cluster | None]:
        topics = self.begun.options.topics
        if topics.cluster is not None:
            with topics.cluster.open() as live:
                yield live
        elif topics.snapshot is not None:
            with OfflineClusterPlace(topics.snapshot).open() as offline:
                yield offline
        else:
            yield None

    def _findings(self) -> tuple[FindingsOfLook, FindingsOfLook]:
        level, result = self.begun.options.level, self.verified.result
        return (
            FindingsOfLook(LookKind.VERIFICATION, level, result.findings, self.is_whole and result.complete),
            FindingsOfLook(LookKind.SCAN, Level.LISTING, self.scan.findings, self.scan_complete),
        )
