"""The pipeline as a stream: a query of Spark's says when the metadata has news, and each of its batches is a run.

A run takes what is new since the offsets that the tables have, and not the rows of the batch. So events are there
once, whatever is killed: a batch that Spark gives again, since it does not know that its run had ended, has no news.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from queue import Empty, Queue

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_spark.failures import spark_failures
from tieredctl_spark.missing_streams import demand_streams
from tieredctl_spark.pipeline.run import PipelineOptions, PipelineRun, run_pipeline
from tieredctl_spark.remote_log_metadata import RemoteLogMetadata
from tieredctl_spark.session import has_jvm, spark_session
from tieredctl_spark.source_options import options_of

_SECONDS_BETWEEN_LOOKS = 0.5


@dataclass(frozen=True, slots=True)
class Following:
    """How the metadata is followed."""

    checkpoint: str
    """The folder of the query, as a path that Spark can write."""
    interval_ms: int
    """Between the beginnings of two batches, at least."""


def follow_pipeline(
    options: PipelineOptions, following: Following, settings: Mapping[str, str], ended: Callable[[PipelineRun], object]
) -> None:
    """Runs whenever the metadata has news, and where a listing is due, until it is interrupted; tells of each run.

    Raises TieredctlError as `run_pipeline` does, `missing-extra` for a release of PySpark without such streams, `usage`
    through Spark Connect, and `spark-failed`, where the query cannot go on.
    """
    demand_streams(RemoteLogMetadata.name())
    with spark_session(settings) as session, spark_failures():
        if not has_jvm(session):
            hint = "Leave --stream out, and let a scheduler begin the runs."
            raise TieredctlError(ErrorCode.USAGE, "A stream of the pipeline needs a session of its own.", hint=hint)
        with _batches(session, options, following) as batches:
            due = time.monotonic()  # at once: a query that is caught up has no batch
            while True:
                with batches.taken(due):
                    now_ms = time.time_ns() // 1_000_000
                    ended(run_pipeline(replace(options, now_ms=now_ms), settings))
                due = time.monotonic() + options.list_every_ms / 1_000


@contextmanager
def _batches(session: SparkSession, options: PipelineOptions, following: Following) -> Iterator[_Batches]:
    """Those of a query, which ends with this."""
    source, batches = session.readStream.format(RemoteLogMetadata.name()), _Batches()
    stream = source.options(**options_of(options.metadata)).load().writeStream.foreachBatch(batches.hand_over)
    stream = stream.option("checkpointLocation", following.checkpoint)
    batches.query = stream.trigger(processingTime=f"{following.interval_ms} milliseconds").start()
    try:
        yield batches
    finally:
        batches.answers.put("The stream has ended.")
        batches.query.stop()


@dataclass(slots=True)
class _Batches:
    """Handed over to the thread that runs, which alone can be interrupted."""

    asked: Queue[int] = field(default_factory=Queue)
    answers: Queue[str | None] = field(default_factory=Queue)
    query: StreamingQuery = field(init=False)

    def hand_over(self, _rows: DataFrame, number: int) -> None:
        """Spark's thread waits for the run."""
        self.asked.put(number)
        if (failure := self.answers.get()) is not None:
            raise RuntimeError(failure)  # nobody sees it: the thread that runs has ended

    @contextmanager
    def taken(self, due: float) -> Iterator[None]:
        """Waits for a batch, or for a moment, and answers once all is done."""
        is_asked = self._wait(due)
        yield
        if is_asked:
            self.answers.put(None)

    def _wait(self, due: float) -> bool:
        """Whether there is a batch: looked for once even if the moment has come. Raises what ended the query."""
        while True:
            left = due - time.monotonic()
            try:
                self.asked.get(timeout=min(max(left, 0), _SECONDS_BETWEEN_LOOKS))
            except Empty:
                if not self.query.isActive:
                    self.query.awaitTermination()
                    raise TieredctlError(ErrorCode.SPARK_FAILED, "Spark ended the stream.") from None
                if left <= 0:
                    return False
            else:
                return True
