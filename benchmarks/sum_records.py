"""A program for spark-submit: counts and sums a topic's records by partition, as `tiered_log` has them with the options
in JSON."""

from __future__ import annotations

import json
import sys

from pyspark.sql import SparkSession
from pyspark.sql import functions as fn


def main() -> None:
    """Prints a row for each partition: its number, how many records, sums of offsets, of bytes and CRC-32 of values."""
    frame = SparkSession.builder.getOrCreate().read.format("tiered_log").options(**json.loads(sys.argv[1]))
    records = frame.schema("partition int, offset long, value binary").load()
    sums = (fn.sum(one) for one in ("offset", fn.length("value"), fn.crc32("value")))
    rows = records.groupBy("partition").agg(fn.count("*"), *sums).orderBy("partition").collect()
    sys.stdout.write(json.dumps([list(row) for row in rows]))


if __name__ == "__main__":
    main()
