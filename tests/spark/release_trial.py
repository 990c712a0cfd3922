"""All data sources and all jobs in one session of whatever PySpark this process has: what they give, as JSON."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import Any

Row = dict[str, Any]
SOURCES = (
    *("remote_log_metadata", "remote_objects", "segment_batches", "tiered_findings", "tiered_log"),
    "tiered_segments",
)
STREAMS = ("remote_log_metadata", "tiered_log")
TOPIC = "orders7"


def options_of(source: str, data: str, store: str) -> dict[str, str]:
    """Of batches and records those of a partition alone."""
    metadata, objects = {"log-dir": data}, {"store": store}
    if source == "remote_objects":
        return objects
    of_partition = metadata | objects | {"topic": TOPIC, "partition": "1"}
    return of_partition if source in ("segment_batches", "tiered_log") else metadata


def job_words(job: str, data: str, store: str, output: str) -> list[str]:
    """What a job is called with."""
    own = {"verify": ["--level", "headers"], "backfill": ["--topic", TOPIC, "--partition", "1"]}
    return ["--log-dir", data, "--store", store, "--output", f"{output}/{job}", *own.get(job, [])]


def plain(rows: Iterable[Row]) -> list[str]:
    """Rows in an order, as texts."""
    return sorted(json.dumps(row, default=_plain) for row in rows)


def _plain(value: datetime | bytes) -> str:
    return value.hex() if isinstance(value, bytes) else value.astimezone(UTC).isoformat()


def _tried(data: str, store: str, output: str) -> Row:
    import pyspark
    from pyspark.errors import PySparkException
    from pyspark.sql import SparkSession
    from tieredctl_spark.jobs import backfill, orphans, pipeline, usage, verify
    from tieredctl_spark.session import spark_session

    from tests.rigs.small_spark import INTERPRETED, SMALL

    def streamed(spark: SparkSession, source: str) -> int | str:
        """How many rows a stream has written; or why there is none."""
        where, why = (f"{output}/stream-{source}", f"{output}/checkpoint-{source}"), "connect back"
        while "connect back" in why:  # Spark gives a stream's Python ten seconds to start, few on a busy machine
            try:
                table = spark.readStream.format(source).options(**options_of(source, data, store)).load()
                writer = table.writeStream.option("checkpointLocation", where[1]).trigger(availableNow=True)
                writer.start(where[0]).awaitTermination()
                return spark.read.parquet(where[0]).count()
            except PySparkException as error:
                why = str(error)
        return why

    def refused(job: Callable[[Sequence[str]], int], words: Sequence[str]) -> Row:
        """How a job ends, and what it says, where it cannot do what is asked."""
        with redirect_stderr(io.StringIO()) as said:
            code = job(words)
        return {"code": code, "said": said.getvalue()}

    found: Row = {"release": pyspark.__version__}
    with spark_session({"spark.master": "local[2]"} | SMALL | INTERPRETED) as spark:
        for source in SOURCES:
            frame = spark.read.format(source).options(**options_of(source, data, store)).load()
            found[source] = plain(frame.toArrow().to_pylist())
        found["streams"] = {source: streamed(spark, source) for source in STREAMS}
        for name, job in (("backfill", backfill), ("orphans", orphans), ("usage", usage), ("verify", verify)):
            with redirect_stdout(io.StringIO()) as printed:
                code = job.main(job_words(name, data, store, output))
            found[name] = {"code": code, "summary": json.loads(printed.getvalue())["summary"]}
        in_a_catalog = [*job_words("backfill", data, store, f"{output}/waiting"), "--catalog", "lake.orders"]
        found["without a catalog"] = refused(backfill.main, in_a_catalog)
        with redirect_stdout(io.StringIO()) as printed:
            places = ["--log-dir", data, "--store", store, "--tables", f"{output}/tables"]
            has_streams = find_spec("pyspark.sql.streaming.datasource") is not None  # where it has, it would not end
            following = [*places, "--stream", f"{output}/checkpoint"]
            found["followed"] = None if has_streams else refused(pipeline.main, following)
            code = pipeline.main(places)
        items = json.loads(printed.getvalue())["items"]
        found["pipeline"] = {"code": code, "rows": {one["table"]: one["rows"] for one in items}}
    return found


if __name__ == "__main__":
    *where, answer = sys.argv[1:]
    Path(answer).write_text(json.dumps(_tried(*where)))
