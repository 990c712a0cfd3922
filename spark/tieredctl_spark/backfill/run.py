"""One run of a backfill: reads of a topic what is new in remote storage, and appends it to the table of its records.

Files are written by tasks; those of about a minute's work become current together, with the offsets up to which each
partition was read. A run that is killed loses what was not current yet, and the next one reads it again.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tieredctl.errors import ErrorCode, ExitCode, TieredctlError, worst
from tieredctl.model.findings import Finding, exit_code_of
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.object_store import ObjectStore
from tieredctl.records.request import Isolation, OnDamage, RecordRequest
from tieredctl.wiring.places import MetadataPlace, Remote, StorePlace
from tieredctl.wiring.records import TopicRecords, topic_records
from tieredctl_spark.backfill.history_tables import CatalogHistory, FolderHistory, HistoryTables
from tieredctl_spark.backfill.written_shares import HistoryShare, WrittenShare, write_shares
from tieredctl_spark.catalogs.claimed_tables import WritingRun
from tieredctl_spark.catalogs.place import CatalogPlace
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.record_ends import Readable, readable
from tieredctl_spark.record_shares import TASK_BYTES, RecordShare, record_shares
from tieredctl_spark.run_id import new_run_id
from tieredctl_spark.session import spark_session
from tieredctl_spark.tables.kinds import BACKFILL_TABLES, RECORDS
from tieredctl_spark.tables.manifest import BackfillManifest, DataFile, TableState
from tieredctl_spark.tables.table_store import Opened, TablesPlace, demand_apart, demand_no_tables, remove_leftovers
from tieredctl_spark.tables.writing import TableWriter
from tieredctl_spark.work_units import ChunkSize, estimated_seconds


@dataclass(frozen=True, slots=True)
class BackfillOptions:
    """What a run is about."""

    metadata: MetadataPlace
    store: StorePlace
    selection: Selection
    """The selection of one topic, by its name."""
    tables: TablesPlace
    isolation: Isolation = Isolation.READ_UNCOMMITTED
    task_bytes: int = TASK_BYTES
    """The bytes of logs, as brokers wrote them; a task reads about as many."""
    catalog: CatalogPlace | None = None
    """Where the tables are instead; `tables` then has files until their rows are there."""
    most_unfolded: int | None = None
    """As `RecordRequest` has it."""


@dataclass(frozen=True, slots=True)
class BackfillRun:
    """What a run did."""

    manifest: BackfillManifest
    records: int
    """How many it appended."""
    findings: tuple[Finding, ...]
    """Why the metadata may not name all segments, or not say which of them serve what."""
    unread: Mapping[int, str]
    """By partition, why it was not read to its end: the next run reads on there."""
    leftovers: int
    """How many files of earlier runs were removed."""

    @property
    def exit_code(self) -> ExitCode:
        """The worst one of all that the tables lack, of what is left to the next run, and of the metadata."""
        left = ExitCode.INCOMPLETE if self.unread else ExitCode.CLEAN
        return worst(ExitCode(self.manifest.exit_code), left, exit_code_of(self.findings))


def run_backfill(
    options: BackfillOptions, settings: Mapping[str, str], opened: Opened = TablesPlace.open_writable
) -> BackfillRun:
    """Runs once. `settings` are Spark's, for a session of its own, which files need only if there is anything to read.

    Raises TieredctlError as the places and `CatalogPlace.open` do, `locked` where another run was faster, `usage` where
    the tables are of another topic or isolation, and `world-changed` where the topic was recreated, or lost the end
    that was read.
    """
    remote = options.store.open()
    options.metadata.demand_usable()
    demand_apart(options.tables, remote.store.url)
    if options.catalog is None:
        return _run(options, settings, remote, FolderHistory(opened(options.tables)))
    options.catalog.demand_release()
    demand_no_tables(opened(options.tables))
    files = opened(waiting_place(options.tables, options.catalog))
    with spark_session(settings) as session, spark_failures():
        return _run(options, settings, remote, CatalogHistory(options.catalog.open(session), files))


def waiting_place(files: TablesPlace, catalog: CatalogPlace) -> TablesPlace:
    """Where files wait for a namespace's tables: runs into other namespaces, which may share the folder, remove what no
    version names."""
    return TablesPlace(f"{files.url.rstrip('/')}/{catalog.url}", files.options)


def _run(
    options: BackfillOptions, settings: Mapping[str, str], remote: Remote[ObjectStore], tables: HistoryTables
) -> BackfillRun:
    with topic_records(options.metadata, options.store, options.selection) as topic:
        history = _History.opened(options, tables, topic)
        shares = list(history.shares(topic))
    before = history.rows
    if shares:
        with spark_session(settings) as session, spark_failures():
            for chunk, size in _chunks(share for share in shares if share.number not in history.unread):
                began = time.monotonic()
                written = write_shares(session, options.metadata, remote, chunk, history.writer())
                size.note(_seconds(chunk), time.monotonic() - began)
                history.append(chunk, written)
    elif not history.manifest.version:
        history.append([], [])
    leftovers = remove_leftovers(tables.files, history.manifest)
    findings = (*topic.findings, *(one for partition in topic.partitions for one in partition.findings))
    return BackfillRun(history.manifest, history.rows - before, findings, history.unstable | history.unread, leftovers)


def _chunks(shares: Iterator[HistoryShare]) -> Iterator[tuple[list[HistoryShare], ChunkSize]]:
    """Shares whose files become current together."""
    size = ChunkSize()
    while chunk := size.next_chunk(shares, lambda share: _seconds([share])):
        yield chunk, size


def _seconds(shares: list[HistoryShare]) -> float:
    """The seconds of one core, by estimate."""
    return float(estimated_seconds(TASK_BYTES, 0)) * len(shares)


@dataclass(slots=True)
class _History:
    """The tables as they grow."""

    options: BackfillOptions
    tables: HistoryTables
    cluster_id: str | None
    manifest: BackfillManifest
    """The newest version; its number is 0 where there is none yet."""
    run_id: str = field(default_factory=new_run_id)
    unread: dict[int, str] = field(default_factory=dict)
    """By partition, why this run reads no further in it."""
    unstable: dict[int, str] = field(default_factory=dict)
    """By partition, why it is not known up to where its transactions have ended."""

    @classmethod
    def opened(cls, options: BackfillOptions, tables: HistoryTables, topic: TopicRecords) -> _History:
        """As the last run left them."""
        partition = topic.partitions[0].partition
        empty = {name: TableState() for name in BACKFILL_TABLES}
        about = partition.topic, partition.topic_id, options.isolation.value
        found = tables.current() or BackfillManifest(0, "", "", *about, {}, 0, 0, empty)
        if (found.topic, found.isolation) != (partition.topic, options.isolation):
            message = f"The tables in {tables.url} are of {found.topic} with {found.isolation}."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Name another folder or namespace.")
        if found.topic_id != partition.topic_id:
            message = f"{found.topic} was recreated: its id is {partition.topic_id} now, and was {found.topic_id}."
            raise TieredctlError(
                ErrorCode.WORLD_CHANGED, message, hint="Name another folder or namespace: one for each id."
            )
        return cls(options, tables, topic.stream.source.cluster_id, found)

    @property
    def rows(self) -> int:
        """How many records are there."""
        return self.manifest.tables[RECORDS.name].rows

    def shares(self, topic: TopicRecords) -> Iterator[HistoryShare]:
        """What is new, by partition and offset. Raises TieredctlError `world-changed` where a log lost its end: a
        partition of which no event is here is not known to have, where events may be missing."""
        findings, partitions = topic.findings, {one.partition.partition: one for one in topic.partitions}
        for number, begin in self._known_offsets().items():
            if number not in partitions and findings:
                self.unread[number] = f"{findings[0].code}: {findings[0].subject}: {findings[0].message}"
                continue
            end = partitions[number].end_offset if number in partitions else 0
            if end is not None and end < begin:
                name = f"{self.manifest.topic}-{number}"
                message = f"{name} ends at offset {end} in remote storage, but was read up to offset {begin}."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message, hint="Begin in another folder or namespace.")
        for number, partition in partitions.items():
            known = readable(partition, topic.store, topic.layout, self.options.isolation)
            if (doubt := known.doubt) is not None:
                self.unstable[number] = f"{doubt.code}: {doubt.message}"
            begin = self._known_offsets().get(number, known.first)
            if begin < known.end:
                for share in self._of_partition(known, begin, topic, findings):
                    findings = []  # once
                    yield share

    def _known_offsets(self) -> dict[int, int]:
        """Where the selected partitions continue."""
        wanted = self.options.selection.numbers
        known = {int(number): offset for number, offset in self.manifest.next_offsets.items()}
        return {number: offset for number, offset in known.items() if not wanted or number in wanted}

    def _of_partition(
        self, known: Readable, begin: int, topic: TopicRecords, findings: Sequence[Finding]
    ) -> Iterator[HistoryShare]:
        options = self.options
        request = RecordRequest(
            *(begin, known.end, options.isolation, OnDamage.SKIP), most_unfolded=options.most_unfolded
        )
        gone = list(known.gone(begin, known.end))
        shares = record_shares(
            *(known.remote, topic.store, topic.layout, request, findings),
            task_bytes=options.task_bytes,
            continues=True,
        )
        # Where retention took all that is new, nothing is read, and what is gone is still to be reported.
        for share in shares or [RecordShare(known.remote, request, findings)]:
            planned = HistoryShare(share)
            yield replace(planned, gone=[one for one in gone if one[0] in range(planned.start, planned.end)])

    def writer(self) -> TableWriter:
        """The writer of files for the next version."""
        run = self._writing()
        return TableWriter(self.tables.files, self.manifest.version + 1, run.run_id, run.cluster_id, run.day)

    def append(self, shares: Sequence[HistoryShare], written: Sequence[WrittenShare]) -> None:
        """Makes the next version current, with what was written of some shares. What follows one in its partition that
        was not read to its end is left to the next run."""
        known = self.manifest
        offsets, lost, code = dict(known.next_offsets), known.lost_offsets, known.exit_code
        files: dict[str, list[DataFile]] = {}
        for share, one in zip(shares, written, strict=True):
            if share.number in self.unread:
                continue
            offsets[str(share.number)], lost = one.next_offset, lost + one.lost_offsets
            code = int(worst(ExitCode(code), ExitCode(one.exit_code)))
            for name, some in one.files.items():
                files.setdefault(name, []).extend(some)
            if one.unread is not None:
                self.unread[share.number] = one.unread
        following = replace(
            known,
            version=known.version + 1,
            run_id=self.run_id,
            parent_run_id=known.run_id,
            next_offsets=offsets,
            lost_offsets=lost,
            exit_code=code,
        )
        self.manifest = self.tables.append(following, files, self._writing())

    def _writing(self) -> WritingRun:
        return WritingRun(self.run_id, self.cluster_id, time.time_ns() // 1_000_000)
