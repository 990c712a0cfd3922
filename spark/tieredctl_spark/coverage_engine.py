"""Which segments nobody has verified for a while: a question to the ledger, for which nothing is read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark.errors import PySparkException
from pyspark.sql import Column
from pyspark.sql import functions as fn

from tieredctl.model.size_sum import known_sum
from tieredctl.ops.verification.report import SegmentReport, SegmentTask
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl_spark.ledger import Asked, Ledger
from tieredctl_spark.output_folder import OutputFolder
from tieredctl_spark.planned_work import PlannedWork, clear_work
from tieredctl_spark.run_id import new_run_id


@dataclass(slots=True)
class CoverageEngine:
    """Takes the segments of a listing, and asks the ledger about each."""

    output: OutputFolder
    ledger: Ledger
    max_age: timedelta
    run: str = field(default_factory=new_run_id)
    _topics: list[dict[str, Any]] = field(default_factory=list)

    def check_segments(
        self, tasks: Iterable[SegmentTask], store: ObjectStore, layout: Layout
    ) -> Iterator[SegmentReport]:
        """One report, in which nothing was read."""
        work = PlannedWork(self.output, store, layout, self.run)
        written, level = work.write(tasks)
        if level is None:
            return
        judged = work.judged(self.ledger, Asked(level, datetime.now(UTC), self.max_age))
        size, is_due = fn.col("segmentSizeInBytes").cast("long"), ~fn.col("isSound")
        topics = judged.groupBy("topic", "topicId").agg(
            fn.count("*").alias("segments"),
            known_sum_of(size).alias("bytes"),
            fn.count(fn.when(is_due, True)).alias("segmentsNotVerified"),
            known_sum_of(fn.when(is_due, size).otherwise(0)).alias("bytesNotVerified"),
            fn.count(fn.when(fn.col("lastRead").isNull(), True)).alias("segmentsNeverRead"),
            fn.unix_millis(fn.min("lastRead")).alias("oldestReadMs"),
        )
        self._topics = topics.orderBy("topic", "topicId").toArrow().to_pylist()
        yield SegmentReport("", segments=written)

    def end(self) -> None:
        """Removes the segments that were asked about."""
        # Where Spark has failed, another run does it after a day.
        with suppress(PySparkException, Py4JError):
            clear_work(self.output, self.run)

    def counts(self, segments: int) -> dict[str, Any]:
        """What the summary says besides: of all topics together. Nothing was verified, so no segment counts."""
        names = ("segmentsNotVerified", "bytesNotVerified", "segmentsNeverRead")
        return {"segmentsKnown": segments, "segments": 0, "objects": 0} | {
            name: known_sum(topic[name] for topic in self._topics) for name in names
        }

    def topics(self) -> list[dict[str, Any]]:
        """By topic: segments and the bytes of their logs, and how many of them are not known to be sound since
        `max_age`, because they were read longer ago or never, have changed, or have something wrong. Bytes are null
        where those of one segment are unknown."""
        return self._topics


def known_sum_of(size: Column) -> Column:
    """The sum of sizes that are negative where they are unknown; null where one is."""
    return fn.when(fn.min(size) >= 0, fn.sum(size))
