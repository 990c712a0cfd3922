"""What was verified when, how deep, in which versions of its objects, and with which result: a table that is joined,
never collected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.tasks import TASK_SCHEMA
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.ledger_rows import LedgerRows
from tieredctl_spark.segment_rows import Result
from tieredctl_spark.tables.kinds import READINGS

_RACE = timedelta(hours=1)
"""Times of objects may be coarse, and clocks differ: what changed this shortly before it was read may have changed
again since."""
_MOST_CLOCK_SKEW = timedelta(minutes=5)
_RISING_GRAVITY = (Result.NOT_LOOKED_AT, Result.SOUND, Result.UNKNOWN, Result.FOUND)
_COUNTS = ("bytesRead", "batches", "records")
_KNOWN = ("segmentId", "fingerprint", "level", "result", "checkedAt", *_COUNTS)
_COSTS = ("bytesToRead", "requests")


@dataclass(frozen=True, slots=True)
class Asked:
    """Since when a segment must have been read, and how deep, so that it need not be read again."""

    level: Level
    now: datetime
    max_age: timedelta


@dataclass(frozen=True, slots=True)
class Ledger:
    """What its rows mean. Each run adds its own in chunks."""

    table: LedgerRows

    def run(self, run: str) -> DataFrame:
        """What one run knows of each segment: of several rows the gravest, so that no finding is lost."""
        order = fn.struct(_gravity(), "checkedAt", "bytesRead", "batches", "records")
        gravest = fn.max_by(fn.struct(*READINGS.columns.names), order)
        return self.table.of_run(run).groupBy("fingerprint").agg(gravest.alias("one")).select("one.*")

    def commit(self, rows: DataFrame, run: str, began: datetime) -> None:
        """Writes a run's chunk: rows of READING_SCHEMA, of which none was read before `began`.

        It is the driver's time, since an executor's clock may be wrong, and an earlier one, since what changes later
        has to be read again."""
        self.table.append(rows.withColumn("checkedAt", fn.lit(began)), run, began)

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
        rows = self.table.of_segments(tasks.select("segmentId"), _KNOWN)
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
