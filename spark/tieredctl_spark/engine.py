"""`--engine spark`: the local engine's checks, run on executors."""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.ops.verification.engine import Engine
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.tasks import task_batches
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.orphan_scan import OpenedSparkScan, opened_spark_scan
from tieredctl_spark.readings import Reading
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.segment_reading import SegmentReading
from tieredctl_spark.session import spark_session
from tieredctl_spark.work_units import ChunkSize, UnitSize, estimated_seconds
from tieredctl_spark.worker_functions import mapped

if TYPE_CHECKING:
    from tieredctl_inkless.ops.diskless.object_reading import ObjectReport
    from tieredctl_inkless.ops.diskless.object_tasks import ObjectTasks

_NUMBERS_TRIED = 64
"""How many numbers are tried for each slot: that none of so many leads to it is less likely than a broken machine."""
_INTERRUPT_TAG = "tieredctl-check-segments"
_PICKLED = pa.schema({"report": pa.binary()})
_Report = TypeVar("_Report")

Check = Callable[[Iterable[pa.RecordBatch]], Iterator[pa.RecordBatch]]


def spark_engine(settings: dict[str, str]) -> Engine:
    """The engine of the entry point `spark`: `settings` are Spark's properties, such as `spark.master`."""
    return SparkEngine(settings)


class SparkEngine:
    """Runs `check_segment` in Spark's Python workers, in the active session or in one of its own.

    Executors need the same Python packages as the driver, and access to the store. Of sound segments only their sums
    come back.
    """

    def __init__(self, settings: Mapping[str, str]) -> None:
        """`settings` are for a session of its own; an active one is used as it is."""
        self._settings = settings

    def opened_scan(
        self, places: ScanPlaces, options: ScanOptions, *, lists_all: bool
    ) -> AbstractContextManager[OpenedSparkScan]:
        """`orphans scan`, as the local engine opens it. Raises TieredctlError as that does, `missing-extra` and
        `spark-failed`."""
        return opened_spark_scan(self._settings, places, options, lists_all=lists_all)

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """Reports, as every engine gives them. Raises TieredctlError `missing-extra`, `spark-failed`, and
        `no-credentials` where no executor has any."""
        return self._read(task_batches(tasks), SegmentReading(store, layout))

    def read_objects(self, tasks: ObjectTasks, store: ObjectStore, level: Level) -> Iterator[ObjectReport]:
        """Reports of diskless objects, as every engine gives them. Raises TieredctlError as `check_segments` does."""
        # Only with the package of diskless topics, which asks for it.
        from tieredctl_spark.object_reading import ObjectReading

        return self._read(tasks.batches(), ObjectReading(store, level))

    def _read(self, batches: Iterable[pa.RecordBatch], reading: Reading[_Report]) -> Iterator[_Report]:
        units, answers, size = cut_into_units(batches), Answers(reading.store.url), ChunkSize()
        with spark_session(self._settings) as session:
            while chunk := size.next_chunk(units, _seconds):
                if answers.silent is not None:
                    yield from (reading.passed_over(unit, answers.silent) for unit in chunk)
                    continue
                began = time.monotonic()
                reports = _reports(session, chunk, reading)
                size.note(sum(map(_seconds, chunk)), time.monotonic() - began)
                answered = [reading.answered(report) for report in reports]
                if missing := sum(map(len, chunk)) - sum(one.answered + one.unanswered for one in answered):
                    raise TieredctlError(ErrorCode.SPARK_FAILED, f"Spark gave no report of {counted(missing, 'task')}.")
                for one in answered:
                    answers.note(*one)
                answers.demand_credentials()
                yield from reports


class Answers:
    """Whether the store answers the executors at all."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._answered = 0
        self._unanswered = 0
        self._refusal: str | None = None
        self._why = ""

    def note(self, answered: int, unanswered: int, why: str | None, refusal: str | None) -> None:
        """Takes those of some tasks, as `Answered`."""
        self._answered += answered
        self._unanswered += unanswered
        self._why = why or self._why
        self._refusal = refusal or self._refusal

    @property
    def silent(self) -> str | None:
        """The store's last error, where it did not answer once."""
        return self._why if self._unanswered and not self._answered else None

    def demand_credentials(self) -> None:
        """Raises TieredctlError where no executor was let in."""
        if self._refusal and not self._answered:
            message = f"No executor could read {self._url}: {self._refusal}"
            hint = "Give the executors the store's credentials: as files, environment variables or instance roles."
            raise TieredctlError(ErrorCode.NO_CREDENTIALS, message, hint=hint)


def checked_frame(frame: DataFrame, units: int, check: Check, schema: pa.Schema) -> DataFrame:
    """What `check` makes of rows that have a `slot`, from 0: each of the `units` is a Spark task of its own."""
    return mapped(_by_slot(frame, units), check, schema)


def _by_slot(frame: DataFrame, units: int) -> DataFrame:
    """The same rows, each slot's in a partition of its own."""
    slot = fn.col("slot").cast("int")
    if hasattr(frame, "repartitionById"):
        return frame.repartitionById(units, slot)
    # Spark 4.0 places rows by a hash alone: each slot gets a number whose hash leads to its partition.
    numbers = frame.sparkSession.range(_NUMBERS_TRIED * units).select(fn.col("id").cast("int").alias("number"))
    placed = fn.pmod(fn.hash("number"), fn.lit(units)).alias("place")
    places = numbers.groupBy(placed).agg(fn.min("number").alias("number")).toArrow().to_pylist()
    number_of = {row["place"]: row["number"] for row in places}
    numbers_by_slot = fn.array(*(fn.lit(number_of[place]) for place in range(units)))
    return frame.repartition(units, fn.element_at(numbers_by_slot, slot + 1))


@contextmanager
def interruptible(session: SparkSession) -> Iterator[None]:
    """Ctrl-C ends the Spark jobs that this thread starts."""
    session.addTag(_INTERRUPT_TAG)
    try:
        yield
    except KeyboardInterrupt:
        session.interruptTag(_INTERRUPT_TAG)
        raise
    finally:
        session.removeTag(_INTERRUPT_TAG)


def cut_into_units(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Tasks by unit, of batches that say what each task costs."""
    pieces = (piece for batch in UnitSize().cut(batches) for piece in _by_unit(batch))
    for _, some in groupby(pieces, lambda piece: piece.column("unit")[0].as_py()):
        yield pa.Table.from_batches(list(some))


def _seconds(unit: pa.Table) -> float:
    return float(estimated_seconds(*(pc.sum(unit.column(name)).as_py() for name in ("bytesToRead", "requests"))))


def _by_unit(batch: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
    """A batch in slices of one unit each."""
    runs = pc.run_end_encode(batch.column("unit")).run_ends.to_pylist()
    for first, end in zip([0, *runs], runs, strict=False):
        yield batch.slice(first, end - first)


def _reports(session: SparkSession, chunk: Sequence[pa.Table], reading: Reading[_Report]) -> list[_Report]:
    """The reports of some units, each of them a Spark task of its own. They travel pickled, as Spark's values do."""

    def pickled(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for report in reading.reports(batches):
            yield pa.RecordBatch.from_pydict({"report": [pickle.dumps(report)]}, _PICKLED)

    slots = [unit.append_column("slot", pa.array([slot] * len(unit), pa.int32())) for slot, unit in enumerate(chunk)]
    rows = pa.concat_tables(slots)
    with interruptible(session), spark_failures():
        frame = session.createDataFrame(rows, spark_schema(rows.schema))
        found = checked_frame(frame, len(chunk), pickled, _PICKLED).toArrow()
    return [pickle.loads(one) for one in found.column("report").to_pylist()]
