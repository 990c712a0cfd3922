"""The engine of a job: it reads only what the ledger does not know to be sound, and enters what it reads."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import accumulate, count
from operator import attrgetter
from threading import Event
from typing import Any, NamedTuple

import pyarrow as pa
from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.ops.verification.tasks import tasks_in
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore
from tieredctl_spark.engine import Answers, checked_frame
from tieredctl_spark.failures import reason
from tieredctl_spark.ledger import Asked, Ledger
from tieredctl_spark.planned_work import PlannedWork, Reused, Unit, WorkTables, clear_work, reused, runs_at_work
from tieredctl_spark.read_rate import ReadRate
from tieredctl_spark.run_id import new_run_id
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_reading import READING_SCHEMA, SegmentReading, failed_report, result_row
from tieredctl_spark.segment_rows import REPORT_SCHEMA, Result, read_report
from tieredctl_spark.work_units import SECONDS_PER_UNIT, ChunkSize, UnitSize

_MOST_FAILED_CHUNKS = 64
_CHUNKS_AT_ONCE = 2
"""So that cores are not idle while a chunk's last unit is read."""
_LONGEST_READ_SECONDS = 2 * SECONDS_PER_UNIT
_UNITS_PER_BUDGET = 16


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What a run reads again, and how much of it. Sizes in bytes."""

    max_age: timedelta
    max_bytes: int | None = None
    read_rate: float | None = None
    """Bytes a second, on each machine."""


@dataclass(slots=True)
class RecordedEngine:
    """Gives the findings and the sums of what was read; results are in the ledger, committed every minute or two."""

    output: WorkTables
    ledger: Ledger
    options: RunOptions
    run: str = field(default_factory=new_run_id)
    reused: Reused = field(default_factory=Reused)
    postponed: int = 0
    """How many segments the budget left for another run."""
    _failures: Iterator[int] = field(default_factory=count)
    _ending: Event = field(default_factory=Event)

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """Reports, as every engine gives them; what the budget leaves counts as nothing read. Raises TieredctlError
        `no-credentials` where no executor has any, `usage` where the budget has no room for anything, and what Spark
        raises."""
        work = PlannedWork(self.output, store, layout, self.run)
        written, level = work.write(tasks)
        if level is None:
            return
        judged = work.kept(work.judged(self.ledger, Asked(level, datetime.now(UTC), self.options.max_age)))
        self.reused = reused(judged)
        budget = self.options.max_bytes
        work.divide(judged, UnitSize(most_bytes=budget / _UNITS_PER_BUDGET if budget else float("inf")))
        units = work.units()
        if self.reused.segments + sum(unit.segments for unit in units) != written:
            raise TieredctlError(ErrorCode.SPARK_FAILED, "Spark lost segments while it planned what to read.")
        chosen = _within(units, budget)
        if units and not chosen:
            # It would be the first each time, and nothing would ever be read.
            raise TieredctlError(
                ErrorCode.USAGE,
                f"--max-bytes {budget} has no room for what is to be read first: {counted(units[0].size, 'byte')}.",
                hint=f"Give --max-bytes at least {2 * units[0].size}.",
            )
        self.postponed = sum(unit.segments for unit in units[len(chosen) :])
        yield SegmentReport("", segments=self.postponed)
        yield SegmentReport(
            "", self.reused.bytes_read, self.reused.batches, self.reused.records, segments=self.reused.segments
        )
        reading = SegmentReading(store, layout, _LONGEST_READ_SECONDS, self._rate())
        sums = yield from self._read(work, chosen, reading)
        yield from _reports(self.ledger.run(self.run), sums)

    def tidy(self) -> None:
        """Once the results are written, and before the end: removes what killed runs left, and closes the ledger."""
        others = runs_at_work(self.output) - {self.run}
        for run in self.ledger.table.given_up(others, datetime.now(UTC)):
            clear_work(self.output, run)
        self.ledger.table.close(self.run)

    def end(self) -> None:
        """Removes what the run was to read. Until then it counts as one at work."""
        # Where Spark has failed, another run does it after a day.
        with suppress(PySparkException, Py4JError):
            clear_work(self.output, self.run)

    def counts(self, segments: int) -> dict[str, Any]:
        """What the summary says besides or otherwise: of `segments` that were to be read, those that were, now or
        before."""
        return {"segments": segments - self.postponed, "resumed": self.reused.segments, "postponed": self.postponed}

    def _rate(self) -> ReadRate | None:
        rate = self.options.read_rate
        return None if rate is None else ReadRate(rate, self.run)

    def _read(
        self, work: PlannedWork, units: list[Unit], reading: SegmentReading
    ) -> Generator[SegmentReport, None, Sums]:
        """Reads all units, and gives only reports of what was not looked at; returns the sums of what the run has
        entered."""
        seconds, before, answers = SECONDS_PER_UNIT, -1, Answers(reading.store.url)
        expected, sums = sum(unit.segments for unit in units), Sums()
        while units:
            begun = self._read_chunks(work, units, reading, answers)
            if begun < len(units):
                left = units[begun:]
                objects = work.of(left).agg(fn.sum(fn.size("objects"))).first()
                segments = sum(unit.segments for unit in left)
                expected -= segments
                why, number = str(answers.silent), int(objects[0]) if objects else 0
                yield SegmentReport("", not_looked_at=why, segments=segments, objects=number)
            done = self.ledger.run(self.run)
            sums = _sums(done)
            entered = sum(one.segments for one in sums.values())
            if entered == expected:
                break
            if entered <= before:
                raise TieredctlError(
                    ErrorCode.SPARK_FAILED, f"Spark gave no report of {counted(expected - entered, 'segment')}."
                )
            # They took longer than they should have: what was not begun in time is cut smaller.
            before, seconds = entered, seconds / 4
            work.divide_again(done, UnitSize(seconds), units[:begun])
            units = work.units()
        return sums

    def _read_chunks(self, work: PlannedWork, units: list[Unit], reading: SegmentReading, answers: Answers) -> int:
        """How many of the units were begun: all, unless the store fell silent."""
        size, following, begun = ChunkSize(), iter(units), 0
        waiting = deque[tuple[float, float, Future[None]]]()
        with ThreadPoolExecutor(_CHUNKS_AT_ONCE) as pool:
            try:
                while True:
                    while begun < len(units) and len(waiting) < _CHUNKS_AT_ONCE and answers.silent is None:
                        some = size.next_chunk(following, _seconds)
                        began = time.monotonic()
                        future = pool.submit(self._read_chunk, work, some, reading, answers)
                        waiting.append((sum(map(_seconds, some)), began, future))
                        begun += len(some)
                    if not waiting:
                        return begun
                    seconds, began, future = waiting.popleft()
                    future.result()
                    answers.demand_credentials()
                    size.note(seconds, time.monotonic() - began)
            except BaseException:
                self._ending.set()
                self.output.session.interruptTag(self.run)
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _read_chunk(self, work: PlannedWork, units: list[Unit], reading: SegmentReading, answers: Answers) -> None:
        session, began = self.output.session, datetime.now(UTC)
        results = checked_frame(work.of(units), len(units), reading.results, READING_SCHEMA)
        observation = Observation()
        session.addTag(self.run)
        try:
            self.ledger.commit(results.observe(observation, *_answers()), self.run, began)
        except (PySparkException, Py4JError) as error:
            if self._ending.is_set() or next(self._failures) >= _MOST_FAILED_CHUNKS:
                raise
            self._read_halves(work, units, reading, answers, reason(str(error)))
        else:
            answers.note(**observation.get)
        finally:
            session.removeTag(self.run)

    def _read_halves(
        self,
        work: PlannedWork,
        units: list[Unit],
        reading: SegmentReading,
        answers: Answers,
        why: str,
    ) -> None:
        """After a failure of Spark itself: one segment may have taken a worker with it, and is found by halving."""
        if len(units) > 1:
            halves = [units[: len(units) // 2], units[len(units) // 2 :]]
        elif units[0].segments > 1:
            halves = [[half] for half in units[0].halves]
        else:
            began, batches = datetime.now(UTC), work.of(units).toArrow().to_batches()
            rows = [
                result_row(kept, failed_report(task, reading.layout, why), reading.store.url)
                for batch in batches
                for kept, task in zip(batch.to_pylist(), tasks_in(batch), strict=True)
            ]
            table = pa.Table.from_pylist(rows, READING_SCHEMA)
            frame = self.output.session.createDataFrame(table, spark_schema(READING_SCHEMA))
            self.ledger.commit(frame, self.run, began)
            return
        for half in halves:
            self._read_chunk(work, half, reading, answers)


class Sum(NamedTuple):
    """Over the segments of one result."""

    segments: int
    bytes_read: int
    batches: int
    records: int
    objects: int
    not_looked_at: str | None


Sums = dict[Result, Sum]


def _sums(rows: DataFrame) -> Sums:
    totals = [fn.sum(name) for name in ("bytesRead", "batches", "records", "objects")]
    found = rows.groupBy("result").agg(fn.count("*"), *totals, fn.max("notLookedAt")).collect()
    return {Result(result): Sum(*one) for result, *one in found}


def _reports(rows: DataFrame, sums: Sums) -> Iterator[SegmentReport]:
    if sound := sums.get(Result.SOUND):
        yield SegmentReport("", sound.bytes_read, sound.batches, sound.records, segments=sound.segments)
    if over := sums.get(Result.NOT_LOOKED_AT):
        yield SegmentReport("", not_looked_at=over.not_looked_at, segments=over.segments, objects=over.objects)
    others = {Result.FOUND, Result.UNKNOWN} & sums.keys()
    if others:
        found = rows.where(fn.col("result").isin(*others))
        found = found.orderBy("topic", "topicId", "partition", "startOffset", "segmentId")
        yield from (read_report(row) for row in found.select(*REPORT_SCHEMA.names).toArrow().to_pylist())


_seconds = attrgetter("seconds")


def _answers() -> list[Column]:
    """What `Answers.note` takes, of a chunk's rows."""
    concern = [code.value for code in CONCERN_EVERY_OBJECT]
    of_all = fn.filter("unread", lambda one: one["code"].isin(concern))
    refusals = fn.filter("unread", lambda one: one["code"] == ErrorCode.NO_CREDENTIALS.value)
    why = fn.coalesce("notLookedAt", fn.get(of_all, 0)["message"])
    return [
        fn.count(fn.when(why.isNull(), True)).alias("answered"),
        fn.count(why).alias("unanswered"),
        fn.max(why).alias("why"),
        fn.max(fn.get(refusals, 0)["message"]).alias("refusal"),
    ]


def _within(units: list[Unit], budget: int | None) -> list[Unit]:
    """The first units, as many as a budget of bytes has room for."""
    if budget is None:
        return units
    ends = accumulate(unit.size for unit in units)
    return [unit for unit, end in zip(units, ends, strict=True) if end <= budget]
