"""The Spark session of every contender of the suite `scale`: two cores, and a driver with a heap of 1 GiB."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession
from tieredctl_spark.session import spark_session

_SETTINGS = {"spark.master": "local[2]", "spark.driver.memory": "1g", "spark.sql.shuffle.partitions": "8"}


@contextmanager
def small_session(**settings: str) -> Iterator[SparkSession]:
    """With other settings besides, underscores in their names for dots."""
    with spark_session(_SETTINGS | {name.replace("_", "."): value for name, value in settings.items()}) as session:
        session.sparkContext.setLogLevel("ERROR")
        yield session
