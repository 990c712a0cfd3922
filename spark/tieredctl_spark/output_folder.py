"""Where a job leaves its results: a folder in any file system that Spark's paths can name."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as fn

from tieredctl_spark.schemas import spark_schema


class OutputFolder:
    """Tables as Parquet, and texts, each a folder as Spark's own writers make it. Raises what Spark raises."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.session = session
        self._url = url.rstrip("/")

    def frame(self, name: str, schema: pa.Schema) -> DataFrame:
        """A table as it is when it is read; without rows where it was never written."""
        try:
            frame = self.session.read.schema(spark_schema(schema)).parquet(f"{self._url}/{name}")
            _ = frame.schema  # Spark Connect looks for the path only now
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return self.session.createDataFrame(schema.empty_table(), spark_schema(schema))
        return frame.select(*schema.names)

    def write_frame(self, name: str, frame: DataFrame, *, append: bool = False) -> None:
        """Replaces a table, or adds rows to it."""
        frame.write.mode("append" if append else "overwrite").parquet(f"{self._url}/{name}")

    def write_table(self, name: str, table: pa.Table, *, append: bool = False) -> None:
        """The same for rows that are here, in one file."""
        rows = self.session.createDataFrame(table, spark_schema(table.schema)).coalesce(1)
        self.write_frame(name, rows, append=append)

    def clear(self, name: str, schema: pa.Schema, partitions: Sequence[str]) -> None:
        """Removes all files of a table that is partitioned by folders."""
        empty = self.session.createDataFrame(schema.empty_table(), spark_schema(schema))
        for column in partitions:
            empty = empty.withColumn(column, fn.lit(""))
        empty.write.mode("overwrite").partitionBy(*partitions).parquet(f"{self._url}/{name}")

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Computes a DataFrame, replaces the table of that name with it, and gives the table."""
        self.write_frame(name, frame)
        return self.session.read.schema(frame.schema).parquet(f"{self._url}/{name}")

    def write_text(self, name: str, text: str) -> None:
        """Replaces a text: a folder that holds it in one file, with `_SUCCESS` beside it once it is whole."""
        self.session.createDataFrame([(text,)], "value string").coalesce(1).write.mode("overwrite").text(
            f"{self._url}/{name}"
        )
