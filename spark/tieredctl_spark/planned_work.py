"""What a run is to read, as a table: a checkpoint, cut into units."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple, Protocol

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ops.verification.tasks import TASK_SCHEMA, task_batches
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.ledger import Asked, Ledger, is_unchanged_since, with_fingerprint
from tieredctl_spark.run_id import is_run_id
from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.work_units import UNIT_COLUMNS, UnitSize, estimated_seconds
from tieredctl_spark.worker_functions import mapped

_TASKS, _WORK = "tasks", "work"
_ROWS_AT_ONCE = 100_000
_PLACE = ("topic", "topicId", "partition", "startOffset", "segmentId")
_SUMMED_UP = ("sound_bytesRead", "sound_batches", "sound_records")
DUE_SCHEMA = pa.schema([*TASK_SCHEMA, ("fingerprint", pa.string())])
_WORK_SCHEMA = pa.schema([*DUE_SCHEMA, *UNIT_COLUMNS])
_SLOTS = pa.schema({"slot": pa.int32(), "part": pa.int32(), "unit": pa.int64(), "first": pa.int64(), "end": pa.int64()})


class WorkTables(Protocol):
    """Where a run keeps what it is to read: an `OutputFolder`, or `KeptWork`."""

    @property
    def session(self) -> SparkSession: ...
    def frame(self, name: str, schema: pa.Schema) -> DataFrame: ...
    def write_frame(self, name: str, frame: DataFrame) -> None: ...
    def write_table(self, name: str, table: pa.Table, *, append: bool = False) -> None: ...
    def keep(self, frame: DataFrame, name: str) -> DataFrame: ...
    def clear(self, name: str) -> None: ...
    def runs(self, name: str) -> set[str]: ...


class Unit(NamedTuple):
    """A unit of work: its part and number there, how many segments, bytes and requests it has, and where its rows
    are."""

    part: int
    number: int
    segments: int
    size: int
    requests: int
    first_row: int
    end_row: int
    """The first that is no longer its own."""

    @property
    def seconds(self) -> float:
        """How long it takes, by estimate."""
        return float(estimated_seconds(self.size, self.requests))

    @property
    def halves(self) -> tuple[Unit, Unit]:
        """Both at least of a segment. Bytes and requests are shared by guess."""
        middle = (self.first_row + self.end_row) // 2
        half = self._replace(size=self.size // 2, requests=self.requests // 2)
        return (
            half._replace(segments=middle - self.first_row, end_row=middle),
            half._replace(segments=self.end_row - middle, first_row=middle),
        )


@dataclass(frozen=True, slots=True)
class Reused:
    """What need not be read again: how many segments, and the sums of their readings."""

    segments: int = 0
    bytes_read: int = 0
    batches: int = 0
    records: int = 0


class PlannedWork:
    """The tasks of a run, and those of them that are due. Other runs in the same folder have theirs."""

    def __init__(self, output: WorkTables, store: ObjectStore, layout: Layout, run: str) -> None:
        self._output = output
        self._store = store
        self._layout = layout
        self._run = run
        self._round = 0

    def write(self, tasks: Iterable[SegmentTask]) -> tuple[int, Level | None]:
        """Writes all tasks in pieces; how many there are, and how deep they go."""
        written, level = 0, None
        for table in _larger(task_batches(tasks)):
            self._output.write_table(f"{_TASKS}/run={self._run}", table, append=written > 0)
            written, level = written + len(table), Level(table.column("level")[0].as_py())
        return written, level

    @property
    def tasks(self) -> DataFrame:
        """All tasks, with their fingerprints."""
        tasks = self._output.frame(f"{_TASKS}/run={self._run}", TASK_SCHEMA)
        return with_fingerprint(tasks, self._store, self._layout)

    def judged(self, ledger: Ledger, asked: Asked) -> DataFrame:
        """All tasks, with `soundAt` and the counts of an earlier reading where they need not be read again, and
        `lastRead` and `lastTried`."""
        judged = ledger.judged(self.tasks, asked)
        holds = fn.col("soundAt").isNotNull() & is_unchanged_since(fn.col("soundAt"))
        return judged.withColumn("isSound", fn.coalesce(holds, fn.lit(False)))

    def kept(self, judged: DataFrame) -> DataFrame:
        """The same, computed once: in whole what is due, and of the rest what `reused` sums up. Otherwise each look at
        it, and the sampling of its order, would put the whole ledger and all tasks together again."""
        due = [fn.when(~fn.col("isSound"), fn.col(name)).alias(name) for name in DUE_SCHEMA.names]
        wanted = judged.select("isSound", "lastTried", *_SUMMED_UP, *due)
        return self._output.keep(wanted, f"{_WORK}/run={self._run}/judged")

    def divide(self, judged: DataFrame, size: UnitSize) -> None:
        """Writes what is due, cut into units: what was never tried first, then what was tried longest ago. What can
        never be read must not come before all others each time."""
        due = judged.where(~fn.col("isSound")).orderBy(fn.col("lastTried").asc_nulls_first(), *_PLACE)
        self._write(due.select(*DUE_SCHEMA.names), size)

    def divide_again(self, done: DataFrame, size: UnitSize, units: Sequence[Unit]) -> None:
        """The same for what is in some units and not `done`."""
        left = self.of(units).join(done.select("fingerprint"), "fingerprint", "left_anti").orderBy(*_PLACE)
        self._write(left.select(*DUE_SCHEMA.names), size)

    def _write(self, due: DataFrame, size: UnitSize) -> None:
        cut = mapped(due, partial(_cut, size=size), _WORK_SCHEMA)
        self._round += 1
        self._output.write_frame(self._folder, cut)

    def units(self) -> list[Unit]:
        """The units of what is due, in their order."""
        sums = (fn.count("*"), fn.sum("bytesToRead"), fn.sum("requests"), fn.min("row"), fn.max("row") + 1)
        rows = self._work.groupBy("part", "unit").agg(*sums).toArrow()
        return sorted(Unit(*row) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True))

    def of(self, units: Sequence[Unit]) -> DataFrame:
        """The rows of some units that follow each other, with the `slot` of each."""
        places = [(slot, one.part, one.number, one.first_row, one.end_row) for slot, one in enumerate(units)]
        rows = pa.Table.from_pylist([dict(zip(_SLOTS.names, place, strict=True)) for place in places], _SLOTS)
        named = self._output.session.createDataFrame(rows, spark_schema(_SLOTS))
        work = self._work.where(fn.col("part").between(units[0].part, units[-1].part))
        within = (fn.col("row") >= fn.col("first")) & (fn.col("row") < fn.col("end"))
        return work.join(fn.broadcast(named), ["part", "unit"]).where(within).select(*_WORK_SCHEMA.names, "slot")

    @property
    def _work(self) -> DataFrame:
        return self._output.frame(self._folder, _WORK_SCHEMA)

    @property
    def _folder(self) -> str:
        return f"{_WORK}/run={self._run}/{self._round}"


def runs_at_work(output: WorkTables) -> set[str]:
    """The runs that have not ended, or were killed."""
    return {name for name in output.runs(_TASKS) if is_run_id(name)}


def clear_work(output: WorkTables, run: str) -> None:
    """Removes what a run was to read."""
    output.clear(f"{_WORK}/run={run}")
    output.clear(f"{_TASKS}/run={run}")  # last: as long as these are there, the run counts as one at work


def _larger(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.Table]:
    """Batches put together: a Spark job for each would take longer than writing it."""
    some: list[pa.RecordBatch] = []
    for batch in batches:
        some.append(batch)
        if sum(map(len, some)) >= _ROWS_AT_ONCE:
            yield pa.Table.from_batches(some)
            some = []
    if sum(map(len, some)):
        yield pa.Table.from_batches(some)


def reused(judged: DataFrame) -> Reused:
    """The sums over what need not be read again."""
    sums = [fn.coalesce(fn.sum(name), fn.lit(0)) for name in _SUMMED_UP]
    row = judged.where("isSound").agg(fn.count("*"), *sums).first()
    return Reused(*row) if row is not None else Reused()


def _cut(batches: Iterable[pa.RecordBatch], size: UnitSize) -> Iterator[pa.RecordBatch]:
    context = TaskContext.get()
    return size.cut(batches, context.partitionId() if context else 0)
