"""What was verified when, how deep, in which versions of its objects, and with which result: a table that is joined,
never collected."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.tasks import TASK_SCHEMA
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.run_id import began_at
from tieredctl_spark.segment_reading import READING_SCHEMA
from tieredctl_spark.segment_rows import Result

_CHUNKS, _BASES, _COMPLETE = "ledger/chunks", ("ledger/base0", "ledger/base1"), "ledger/complete"
RESULT_SCHEMA = pa.schema([*READING_SCHEMA, ("checkedAt", pa.timestamp("us", "UTC"))])
"""A row for each segment that was read; `checkedAt` is a time before that, by the clock of the job's driver."""
_BASE_SCHEMA = pa.schema([*RESULT_SCHEMA, ("generation", pa.int64())])
_COMPLETE_SCHEMA = pa.schema({"generation": pa.int64()})
_RACE = timedelta(hours=1)
"""Times of objects may be coarse, and clocks differ: what changed this shortly before it was read may have changed
again since."""
_MOST_CLOCK_SKEW = timedelta(minutes=5)
_GIVEN_UP_AFTER = timedelta(days=1)
_RISING_GRAVITY = (Result.NOT_LOOKED_AT, Result.SOUND, Result.UNKNOWN, Result.FOUND)
_COUNTS = ("bytesRead", "batches", "records")
_COSTS = ("bytesToRead", "requests")


@dataclass(frozen=True, slots=True)
class Asked:
    """Since when a segment must have been read, and how deep, so that it need not be read again."""

    level: Level
    now: datetime
    max_age: timedelta


class Ledger:
    """The ledger in an output folder. Each run adds its rows in chunks, which can be written twice."""

    def __init__(self, output: OutputFolder) -> None:
        self._output = output

    def rows(self) -> DataFrame:
        """All rows of all runs, by RESULT_SCHEMA. A row may be there twice."""
        # Chunks are looked up first: those that are compacted meanwhile are in a base by then.
        chunks = self._output.frame(_CHUNKS, RESULT_SCHEMA)
        bases = [self._output.frame(name, _BASE_SCHEMA).drop("generation") for name in _BASES]
        return chunks.unionByName(bases[0]).unionByName(bases[1])

    def runs(self) -> set[str]:
        """The runs that have entered something, and were not compacted."""
        return self._output.runs(_CHUNKS)

    def run(self, run: str) -> DataFrame:
        """What one run knows of each segment: of several rows the gravest, so that no finding is lost."""
        rows = self._output.frame(f"{_CHUNKS}/run={run}", RESULT_SCHEMA)
        order = fn.struct(_gravity(), "checkedAt", "bytesRead", "batches", "records")
        gravest = fn.max_by(fn.struct(*RESULT_SCHEMA.names), order)
        return rows.groupBy("fingerprint").agg(gravest.alias("one")).select("one.*")

    def commit(self, rows: DataFrame, run: str, chunk: int, began: datetime) -> None:
        """Writes a run's chunk, or replaces it: rows of READING_SCHEMA, of which none was read before `began`.

        It is the driver's time, since an executor's clock may be wrong, and an earlier one, since what changes later
        has to be read again."""
        self._output.write_frame(f"{_CHUNKS}/run={run}/chunk={chunk:06d}", rows.withColumn("checkedAt", fn.lit(began)))

    def judged(self, tasks: DataFrame, asked: Asked) -> DataFrame:
        """The same tasks, which have a fingerprint, with what is known of each. `soundAt`, and as `sound_…` the counts
        of that reading: where it need not be read again. What could not be read later is read again, and so is whatever
        had a finding: which of two readings was the later one, only drivers' clocks could tell. `lastRead`: when its
        segment was last read so deep, whatever the result and whatever has changed; and `lastTried`, which counts even
        if it could not be read."""
        judged = tasks.join(self._known(tasks, asked.level), "segmentId", "left")
        fits = fn.get(fn.filter("readings", lambda one: one["fingerprint"] == fn.col("fingerprint")), 0)
        judged = judged.withColumn("reading", fits)
        last = fn.col("reading.last")
        at = last["checkedAt"]
        lasting = (at >= fn.lit(asked.now - asked.max_age)) & (at <= fn.lit(asked.now + _MOST_CLOCK_SKEW))
        is_sound = (last["result"] == Result.SOUND.value) & ~fn.col("reading.hadFinding") & lasting
        of_sound = {"soundAt": at} | {f"sound_{name}": last[name] for name in _COUNTS}
        added = (fn.when(is_sound, value).alias(name) for name, value in of_sound.items())
        return judged.select(*tasks.columns, *added, "lastRead", "lastTried")

    def _known(self, tasks: DataFrame, level: Level) -> DataFrame:
        """A row for each segment of some tasks: `readings`, the last one of each fingerprint; `lastRead`, `lastTried`.
        Of millions of other segments the ledger may know, nothing is put together."""
        rows = self.rows().join(tasks.select("segmentId"), "segmentId", "left_semi")
        rows = rows.where(fn.col("result") != Result.NOT_LOOKED_AT.value)
        is_deep, was_read = _as_deep_as(level), fn.col("result").isin(Result.SOUND.value, Result.FOUND.value)
        counts = (fn.col("result") != Result.SOUND.value) | is_deep
        last = fn.struct("result", "checkedAt", *_COUNTS)
        order = fn.when(counts, fn.struct("checkedAt", _gravity()))
        # The rows of a segment are together from here on.
        each = rows.groupBy("segmentId", "fingerprint").agg(
            fn.max_by(last, order).alias("last"),
            fn.max(fn.col("result") == Result.FOUND.value).alias("hadFinding"),
            fn.max(fn.when(is_deep & was_read, fn.col("checkedAt"))).alias("lastRead"),
            fn.max(fn.when(is_deep, fn.col("checkedAt"))).alias("lastTried"),
        )
        return each.groupBy("segmentId").agg(
            fn.collect_list(fn.struct("fingerprint", "last", "hadFinding")).alias("readings"),
            fn.max("lastRead").alias("lastRead"),
            fn.max("lastTried").alias("lastTried"),
        )

    def given_up(self, runs: AbstractSet[str], now: datetime) -> set[str]:
        """Those runs that have entered nothing for a day: each enters something every few minutes."""
        return {run for run in runs if now - self._last_sign(run) > _GIVEN_UP_AFTER}

    def _last_sign(self, run: str) -> datetime:
        entered = self._output.frame(f"{_CHUNKS}/run={run}", RESULT_SCHEMA).agg(fn.unix_millis(fn.max("checkedAt")))
        last = entered.toArrow().column(0)[0].as_py()
        return began_at(run) if last is None else datetime.fromtimestamp(last / 1_000, UTC)

    def compact(self, runs: AbstractSet[str]) -> None:
        """Puts the latest rows of each segment and result together into few files, and removes all others of these
        runs, which must have ended. Only one at a time may do this.

        There are two bases, of which the older one is replaced: killed at any moment, nothing is lost, and what is then
        there twice does no harm.
        """
        complete = self._output.frame(_COMPLETE, _COMPLETE_SCHEMA).agg(fn.max("generation")).first()
        generation = int(complete[0]) + 1 if complete is not None and complete[0] is not None else 0
        target, other = _BASES[generation % 2], _BASES[(generation + 1) % 2]
        base = self._output.frame(other, _BASE_SCHEMA).drop("generation")
        rows = self._of_runs(runs).unionByName(base)
        named = fn.struct(*RESULT_SCHEMA.names)
        kept = rows.where(fn.col("result") != Result.NOT_LOOKED_AT.value)
        each = kept.groupBy("segmentId", "fingerprint", "level", "result")
        kept = each.agg(fn.max_by(named, "checkedAt").alias("last"))
        latest = kept.select("last.*").withColumn("generation", fn.lit(generation).cast("long"))
        self._output.write_frame(target, latest)
        self._output.write_table(_COMPLETE, pa.table({"generation": [generation]}, _COMPLETE_SCHEMA))
        for run in sorted(runs):
            self._output.clear(f"{_CHUNKS}/run={run}")

    def _of_runs(self, runs: AbstractSet[str]) -> DataFrame:
        schema = pa.schema([*RESULT_SCHEMA, ("run", pa.string())])
        return self._output.frame(_CHUNKS, schema).where(fn.col("run").isin(sorted(runs))).select(*RESULT_SCHEMA.names)


def with_fingerprint(tasks: DataFrame, store: ObjectStore, layout: Layout) -> DataFrame:
    """Tasks with a `fingerprint` of all that determines the check: store and layout, the segment's metadata, and its
    objects' keys, sizes, versions and times as the store listed them."""
    content = fn.transform(
        fn.array_sort("objects"),
        lambda one: fn.struct(*(one[name] for name in ("part", "key", "size", "lastModifiedMs", "version"))),
    )
    determining = [name for name in TASK_SCHEMA.names if name not in {"level", "objects", *_COSTS}]
    all_of_it = fn.struct(
        fn.lit(store.url).alias("store"), fn.lit(layout.name).alias("layout"), *determining, content.alias("objects")
    )
    return tasks.withColumn("fingerprint", fn.sha2(fn.to_json(all_of_it, {"ignoreNullFields": "false"}), 256))


def is_unchanged_since(moment: Column) -> Column:
    """Whether the listing shows that a task's objects are those that were read at a moment, where the fingerprint is
    the same: each has a version, or else a time well before it."""
    before = fn.unix_millis(moment) - fn.lit(_RACE // timedelta(milliseconds=1))

    def is_certain(one: Column) -> Column:
        modified = one["lastModifiedMs"]
        return fn.coalesce(one["version"].isNotNull() | ((modified > 0) & (modified < before)), fn.lit(False))

    return (fn.size("objects") > 0) & fn.forall("objects", is_certain)


def _gravity() -> Column:
    """The larger, the graver a result."""
    return fn.array_position(fn.lit([result.value for result in _RISING_GRAVITY]), fn.col("result"))


def _as_deep_as(level: Level) -> Column:
    return fn.col("level").isin({level.value, Level.FULL.value})
