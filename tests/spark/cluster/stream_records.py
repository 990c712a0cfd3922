"""A program for spark-submit: makes a table of what the stream `tiered_log` has, with options in JSON, in a folder."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession


def main() -> None:
    """`OPTIONS FOLDER`; prints how many rows each batch had, and leaves those of the table in the folder `rows`: beside
    the table's files are those of tasks that were killed."""
    options, folder = json.loads(sys.argv[1]), sys.argv[2]
    session = SparkSession.builder.getOrCreate()
    frame = session.readStream.format("tiered_log").options(**options).load()
    writer = frame.writeStream.option("checkpointLocation", f"{folder}/checkpoint").trigger(availableNow=True)
    query = writer.start(f"{folder}/table")
    query.awaitTermination()
    session.read.parquet(f"{folder}/table").write.parquet(f"{folder}/rows")
    rows = [progress.numInputRows for progress in query.recentProgress]
    sys.stdout.write(json.dumps({"summary": {"rows": rows}}))


if __name__ == "__main__":
    main()
