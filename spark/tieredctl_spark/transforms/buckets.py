"""How many buckets rows are put into, and which one a row is in."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as fn

_ROWS = 500_000
"""A bucket's, about: it is in the memory of a Python worker as a whole."""


def bucket_count(rows: int) -> int:
    """For so many rows, those of events twice."""
    return max(1, -(-rows // _ROWS))


def bucket_of(count: int, *key: Column) -> Column:
    """The same for rows with the same key."""
    return fn.pmod(fn.xxhash64(*key), fn.lit(count)).cast("int").alias("bucket")
