"""Where a job leaves its results: a folder in any file system that Spark's paths can name."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tieredctl_spark.schemas import spark_schema


class OutputFolder:
    """Tables as Parquet, and texts. Raises what Spark raises."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self._session = session
        self._url = url

    def read_table(self, name: str, schema: pa.Schema) -> pa.Table:
        """All rows of a table, in any order; none where it was never written."""
        path, files = self._located(name)
        if not files.exists(path):
            return schema.empty_table()
        return self._session.read.schema(spark_schema(schema)).parquet(path.toString()).toArrow()

    def write_table(self, name: str, table: pa.Table, *, append: bool = False) -> None:
        """Replaces a table, or adds rows to it: all of them or none."""
        rows = self._session.createDataFrame(table, spark_schema(table.schema)).coalesce(1)
        rows.write.mode("append" if append else "overwrite").parquet(f"{self._url}/{name}")

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Computes a DataFrame, replaces the table of that name with it, and gives the table."""
        path = f"{self._url}/{name}"
        frame.write.mode("overwrite").parquet(path)
        return self._session.read.schema(frame.schema).parquet(path)

    def write_text(self, name: str, text: str) -> None:
        """Replaces a file."""
        path, files = self._located(name)
        out = files.create(path, True)
        try:
            out.write(bytearray(text.encode("utf-8")))
        finally:
            out.close()

    def _located(self, name: str) -> tuple[Any, Any]:
        """Hadoop's Path, and the FileSystem that holds it."""
        context: Any = self._session.sparkContext
        path = context._jvm.org.apache.hadoop.fs.Path(f"{self._url}/{name}")
        return path, path.getFileSystem(context._jsc.hadoopConfiguration())
