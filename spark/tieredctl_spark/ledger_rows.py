"""Where the verification ledger has its rows: the table `readings`, in a folder of its own or in a catalog."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from threading import Lock
from typing import Protocol

import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ports.object_store import WritableObjectStore
from tieredctl_spark.catalogs.place import Catalog
from tieredctl_spark.earlier_ledger import EarlierLedger
from tieredctl_spark.run_id import began_at
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_rows import Result
from tieredctl_spark.tables.files import folder_files
from tieredctl_spark.tables.frames import write_frame
from tieredctl_spark.tables.kinds import PROVENANCE, READINGS
from tieredctl_spark.tables.manifest import DataFile, LedgerManifest, TableState
from tieredctl_spark.tables.reading import files_frame
from tieredctl_spark.tables.table_store import commit, newest, remove_leftovers
from tieredctl_spark.tables.writing import TableWriter

_MOST_FILES = 1_000
_MOST_COMMITS_AHEAD = 1_000
"""Several runs enter chunks at once, each with files of a name that so many versions may still take up."""
_GIVEN_UP_AFTER = timedelta(days=1)
_MOST_SENT = 100_000
"""Ids of segments, each of 22 bytes, to every task."""
_READING = ["segmentId", "fingerprint", "level", "result"]


class LedgerRows(Protocol):
    """The rows of all runs."""

    def rows(self, columns: Sequence[str]) -> DataFrame:
        """Some columns of all of them, of READINGS.columns. A row may be there twice."""
        ...

    def of_segments(self, segments: DataFrame, columns: Sequence[str]) -> DataFrame:
        """The same of some segments, given by `segmentId`: of millions of others nothing is put together."""
        ...

    def of_run(self, run: str) -> DataFrame:
        """Those that one run has entered."""
        ...

    def append(self, rows: DataFrame, run: str, now: datetime) -> None:
        """Enters a run's rows, by READINGS.columns; all of them or none. `now` is a sign of its life."""
        ...

    def given_up(self, runs: Iterable[str], now: datetime) -> set[str]:
        """Those of some runs that have entered nothing for a day: each enters something every few minutes."""
        ...

    def close(self, run: str) -> None:
        """What is to be done when a run has ended."""
        ...


@dataclass(frozen=True, slots=True)
class FolderRows:
    """Parquet files, made current by a manifest. Any number of runs may enter rows at once: who was slower names its
    files in the next version."""

    session: SparkSession
    store: WritableObjectStore
    cluster_id: str | None = None
    """The cluster that the rows are about, as far as it is known."""
    _one_at_a_time: Lock = field(default_factory=Lock)

    def take_over(self, earlier: EarlierLedger) -> None:
        """Imports another ledger, once."""
        if earlier.run_id not in self._current().imported:
            writer = self._writer(earlier.run_id)
            files = write_frame(earlier.rows(), READINGS.columns, partial(writer.write, READINGS))

            def imported(known: LedgerManifest) -> LedgerManifest:
                if earlier.run_id in known.imported:
                    return known
                found = replace(known, imported=(*known.imported, earlier.run_id))
                return _with_files(found, writer, (*_files(known), *files))

            self._commit(imported, writer)

    def rows(self, columns: Sequence[str]) -> DataFrame:
        return self._frame(_files(self._current()), columns)

    def of_segments(self, segments: DataFrame, columns: Sequence[str]) -> DataFrame:
        few = segments.select("segmentId").limit(_MOST_SENT + 1).toArrow()["segmentId"]
        if len(few) > _MOST_SENT:
            return self.rows(columns).join(segments, "segmentId", "left_semi")
        # Tasks pass over the others before they hand rows to Spark.
        asked = pc.field("segmentId").isin(few.combine_chunks())
        return self._frame(_files(self._current()), columns, asked)

    def of_run(self, run: str) -> DataFrame:
        return self._frame(_of_runs(_files(self._current()), [run]), READINGS.columns.names)

    def append(self, rows: DataFrame, run: str, now: datetime) -> None:
        writer = self._writer(run)
        # One file, whatever the number of tasks: the manifest names each.
        files = write_frame(rows.repartition(1), READINGS.columns, partial(writer.write, READINGS))

        def entered(known: LedgerManifest) -> LedgerManifest:
            at_work = {**known.at_work, run: int(now.timestamp() * 1_000)}
            return _with_files(replace(known, at_work=at_work), writer, (*_files(known), *files))

        self._commit(entered, writer)

    def given_up(self, runs: Iterable[str], now: datetime) -> set[str]:
        known = self._current()
        return {run for run in runs if _is_given_up(known, run, now)}

    def close(self, run: str) -> None:
        """Puts files together, once there are many, but those of runs at work; removes what no version names."""
        known, now = self._current(), datetime.now(UTC)
        at_work = {one for one in known.at_work if one != run and not _is_given_up(known, one, now)}
        writer, replaced, written = self._writer(run), set[DataFile](), list[DataFile]()
        if len(_files(known)) > _MOST_FILES:
            replaced = {*_files(known)} - {*_of_runs(_files(known), at_work)}
            whole = self._frame(tuple(replaced), READINGS.schema.names)
            write = partial(writer.write_unchanged, READINGS, day=None)
            written = write_frame(_latest(whole), READINGS.schema, write)

        def closed(now_known: LedgerManifest) -> LedgerManifest:
            left = {
                one: moment for one, moment in now_known.at_work.items() if one in at_work or one not in known.at_work
            }
            found, files = replace(now_known, at_work=left), _files(now_known)
            if not replaced <= {*files}:  # another run put them together meanwhile
                return found
            return _with_files(found, writer, (*(one for one in files if one not in replaced), *written))

        remove_leftovers(self.store, self._commit(closed, writer))

    def _current(self) -> LedgerManifest:
        return newest(self.store, LedgerManifest) or LedgerManifest(0, "", "")

    def _writer(self, run: str) -> TableWriter:
        version = self._current().version + _MOST_COMMITS_AHEAD
        return TableWriter(self.store, version, run, self.cluster_id, "")

    def _commit(self, change: Callable[[LedgerManifest], LedgerManifest], writer: TableWriter) -> LedgerManifest:
        """Makes the next version current, whoever made others meanwhile."""
        # Of two threads of a run, one would take the other's version for its own.
        with self._one_at_a_time:
            while True:
                known = self._current()
                if known.version >= writer.version:  # its files may be removed by now
                    message = f"Others changed the ledger in {self.store.url} {_MOST_COMMITS_AHEAD} times meanwhile."
                    raise TieredctlError(ErrorCode.LOCKED, message, hint="Run it again.")
                made = replace(
                    change(known), version=known.version + 1, run_id=writer.run_id, parent_run_id=known.run_id
                )
                try:
                    commit(self.store, made)
                except TieredctlError as error:
                    if error.code is not ErrorCode.LOCKED:
                        raise
                else:
                    return made

    def _frame(
        self, files: tuple[DataFile, ...], columns: Sequence[str], where: pc.Expression | None = None
    ) -> DataFrame:
        return files_frame(self.session, self.store, READINGS, files, columns, where)


@dataclass(frozen=True, slots=True)
class CatalogRows:
    """A table of Iceberg's or Delta's, to which runs append at once; upkeep is left to the format's own procedures."""

    catalog: Catalog
    cluster_id: str | None = None

    def create(self) -> None:
        """Makes the table, unless it is there."""
        self.catalog.create(READINGS.name, READINGS.schema)

    def take_over(self, earlier: EarlierLedger) -> None:
        """Imports another ledger, once."""
        if self.of_run(earlier.run_id).isEmpty():
            rows = earlier.rows()
            if not rows.isEmpty():
                self.append(rows, earlier.run_id)

    def rows(self, columns: Sequence[str]) -> DataFrame:
        return self.catalog.frame(READINGS.name).select(*columns)

    def of_segments(self, segments: DataFrame, columns: Sequence[str]) -> DataFrame:
        return self.rows(columns).join(segments, "segmentId", "left_semi")

    def of_run(self, run: str) -> DataFrame:
        rows = self.catalog.frame(READINGS.name).where(fn.col("runId") == run)
        return rows.select(*READINGS.columns.names)

    def append(self, rows: DataFrame, run: str, now: datetime | None = None) -> None:  # noqa: ARG002 - rows say it
        own = {"clusterId": self.cluster_id, "runId": run, "schemaVersion": READINGS.schema_version}
        types = {one.name: one.dataType for one in spark_schema(PROVENANCE)}
        whole = rows.withColumns({name: fn.lit(value).cast(types[name]) for name, value in own.items()})
        whole.writeTo(self.catalog.full_name(READINGS.name)).append()

    def given_up(self, runs: Iterable[str], now: datetime) -> set[str]:
        signs = {run: began_at(run) for run in runs}
        if signs:
            entered = self.catalog.frame(READINGS.name).where(fn.col("runId").isin(*signs)).groupBy("runId")
            last = entered.agg(fn.unix_millis(fn.max("checkedAt")).alias("ms")).collect()
            signs |= {row.runId: datetime.fromtimestamp(row.ms / 1_000, UTC) for row in last}
        return {run for run, sign in signs.items() if now - sign > _GIVEN_UP_AFTER}

    def close(self, run: str) -> None:
        """Nothing."""


def _files(known: LedgerManifest) -> tuple[DataFile, ...]:
    return folder_files(known.tables, READINGS.name)


def _of_runs(files: Iterable[DataFile], runs: Iterable[str]) -> tuple[DataFile, ...]:
    """Those that some runs wrote, by their names."""
    return tuple(one for one in files if any(f"-{run}-" in one.path for run in runs))


def _with_files(known: LedgerManifest, writer: TableWriter, files: tuple[DataFile, ...]) -> LedgerManifest:
    now_ms = int(datetime.now(UTC).timestamp() * 1_000)
    state = TableState(files, writer.run_id, now_ms, READINGS.schema_version)
    return replace(known, tables={READINGS.name: state})


def _is_given_up(known: LedgerManifest, run: str, now: datetime) -> bool:
    entered = known.at_work.get(run)
    sign = began_at(run) if entered is None else datetime.fromtimestamp(entered / 1_000, UTC)
    return now - sign > _GIVEN_UP_AFTER


def _latest(rows: DataFrame) -> DataFrame:
    """The latest rows of each segment and result."""
    kept = rows.where(fn.col("result") != Result.NOT_LOOKED_AT.value)
    last = fn.max_by(fn.struct(*READINGS.schema.names), "checkedAt").alias("last")
    return kept.groupBy(*_READING).agg(last).select("last.*")
