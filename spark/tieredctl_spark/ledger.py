"""What was verified when, how deep, in which versions of its objects, and with which result: a table that is joined,
never collected."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as fn

from tieredctl.layouts.protocol import Layout
from tieredctl.ops.verification.report import Level
from tieredctl.ops.verification.tasks import TASK_SCHEMA
from tieredctl.storage.protocol import ObjectStore
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.segment_reading import RESULT_SCHEMA
from tieredctl_spark.segment_rows import Result

_CHUNKS, _BASES, _COMPLETE = "ledger/chunks", ("ledger/base0", "ledger/base1"), "ledger/complete"
_BASE_SCHEMA = pa.schema([*RESULT_SCHEMA, ("generation", pa.int64())])
_COMPLETE_SCHEMA = pa.schema({"generation": pa.int64()})
_RACE = timedelta(hours=1)
"""Times of objects may be coarse, and clocks differ: what changed this shortly before it was read may have changed
again since."""
_MOST_CLOCK_SKEW = timedelta(minutes=5)
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
        bases = [self._output.frame(name, _BASE_SCHEMA).drop("generation") for name in _BASES]
        return self._output.frame(_CHUNKS, RESULT_SCHEMA).unionByName(bases[0]).unionByName(bases[1])

    def run(self, run: str) -> DataFrame:
        """The rows of one run."""
        return self._output.frame(f"{_CHUNKS}/run={run}", RESULT_SCHEMA)

    def commit(self, rows: DataFrame, run: str, chunk: int) -> None:
        """Writes a run's chunk, or replaces it."""
        self._output.write_frame(f"{_CHUNKS}/run={run}/chunk={chunk:06d}", rows)

    def sound(self, asked: Asked) -> DataFrame:
        """By fingerprint, what need not be read again: `soundAt`, and the counts of that reading. Whatever else was
        seen of the same bytes later, if only that they could not be read, counts more."""
        known = self.rows().where((fn.col("result") != Result.SOUND.value) | _as_deep_as(asked.level))
        known = known.where(fn.col("result") != Result.NOT_LOOKED_AT.value)
        last = fn.struct("result", "checkedAt", "bytesRead", "batches", "records")
        latest = known.groupBy("fingerprint").agg(fn.max_by(last, "checkedAt").alias("last"))
        at = fn.col("last.checkedAt")
        lasting = (at >= fn.lit(asked.now - asked.max_age)) & (at <= fn.lit(asked.now + _MOST_CLOCK_SKEW))
        return latest.where((fn.col("last.result") == Result.SOUND.value) & lasting).select(
            "fingerprint",
            at.alias("soundAt"),
            *(fn.col(f"last.{name}").alias(f"sound_{name}") for name in ("bytesRead", "batches", "records")),
        )

    def last_read(self, level: Level) -> DataFrame:
        """By segment id, when it was last read so deep, whatever the result and whatever has changed: `lastRead`."""
        read = fn.col("result").isin(Result.SOUND.value, Result.FOUND.value) & _as_deep_as(level)
        return self.rows().where(read).groupBy("segmentId").agg(fn.max("checkedAt").alias("lastRead"))

    def compact(self) -> None:
        """Puts the latest rows of each segment together into few files, and removes all others.

        There are two bases, of which the older one is replaced: killed at any moment, nothing is lost, and what is then
        there twice does no harm.
        """
        complete = self._output.frame(_COMPLETE, _COMPLETE_SCHEMA).agg(fn.max("generation")).first()
        generation = int(complete[0]) + 1 if complete is not None and complete[0] is not None else 0
        target, other = _BASES[generation % 2], _BASES[(generation + 1) % 2]
        base = self._output.frame(other, _BASE_SCHEMA).drop("generation")
        rows = self._output.frame(_CHUNKS, RESULT_SCHEMA).unionByName(base)
        named = fn.struct(*RESULT_SCHEMA.names)
        kept = rows.where(fn.col("result") != Result.NOT_LOOKED_AT.value)
        kept = kept.groupBy("segmentId", "fingerprint", "level").agg(fn.max_by(named, "checkedAt").alias("last"))
        latest = kept.select("last.*").withColumn("generation", fn.lit(generation).cast("long"))
        self._output.write_frame(target, latest)
        self._output.write_table(_COMPLETE, pa.table({"generation": [generation]}, _COMPLETE_SCHEMA))
        self._output.clear(_CHUNKS, RESULT_SCHEMA, ("run", "chunk"))


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


def _as_deep_as(level: Level) -> Column:
    return fn.col("level").isin({level.value, Level.FULL.value})
