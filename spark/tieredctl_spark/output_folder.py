"""Where a job leaves its results: a folder in any file system that Spark's paths can name."""

from __future__ import annotations

import json
import re
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, DataFrameWriter, SparkSession

from tieredctl_spark.schemas import spark_schema
from tieredctl_spark.session import has_jvm

_NOTHING = pa.schema({"nothing": pa.string(), "folder": pa.string()})
_TEXT = pa.schema({"value": pa.string()})
_RUN_FOLDER = re.compile(r"/run=([^/]+)/")


class OutputFolder:
    """Tables as Parquet, and texts, each a folder as Spark's own writers make it. Raises what Spark raises."""

    def __init__(self, session: SparkSession, url: str) -> None:
        self.session = session
        self._url = url.rstrip("/")

    @property
    def url(self) -> str:
        """As Spark understands it; through Spark Connect as it was given."""
        if (path := self._path("")) is None:
            return self._url
        return str(path.getFileSystem(self._hadoop).makeQualified(path).toString())

    def frame(self, name: str, schema: pa.Schema) -> DataFrame:
        """A table as it is when it is read; without rows where it was never written."""
        if not self._has(name):
            return self.session.createDataFrame(schema.empty_table(), spark_schema(schema))
        return self.session.read.schema(spark_schema(schema)).parquet(f"{self._url}/{name}").select(*schema.names)

    def write_frame(self, name: str, frame: DataFrame) -> None:
        """Replaces a table."""
        _replacing(frame).parquet(f"{self._url}/{name}")

    def write_table(self, name: str, table: pa.Table, *, append: bool = False) -> None:
        """Replaces a table with rows that are here, in one file, or adds them to it."""
        rows = self.session.createDataFrame(table, spark_schema(table.schema)).coalesce(1)
        (rows.write.mode("append") if append else _replacing(rows)).parquet(f"{self._url}/{name}")

    def runs(self, name: str) -> set[str]:
        """The runs that have rows in a table that has a folder `run=ID` for each."""
        if not self._has(name):
            return set()
        anything = self.session.read.schema("any string").option("recursiveFileLookup", "true")
        files = anything.parquet(f"{self._url}/{name}").inputFiles()
        return {match[1] for match in map(_RUN_FOLDER.search, files) if match}

    def clear(self, name: str) -> None:
        """Removes a table with all folders below it. Through Spark Connect its files alone: an empty folder stays."""
        if not self._removed(name):
            self._empty(name)

    def _removed(self, name: str) -> bool:
        """Whether it could be removed: PySpark has no public way to, and a Connect session none at all."""
        if (path := self._path(f"/{name}")) is None:
            return False
        path.getFileSystem(self._hadoop).delete(path, True)
        return True

    def _path(self, below: str) -> Any:
        """As Hadoop has it; None through Spark Connect."""
        session: Any = self.session
        return session._jvm.org.apache.hadoop.fs.Path(self._url + below) if has_jvm(session) else None

    @property
    def _hadoop(self) -> Any:
        session: Any = self.session
        return session._jsparkSession.sessionState().newHadoopConf()

    def _empty(self, name: str) -> None:
        # Without partitions, Spark leaves a file of no rows.
        empty = self.session.createDataFrame(_NOTHING.empty_table(), spark_schema(_NOTHING))
        _replacing(empty).partitionBy("folder").parquet(f"{self._url}/{name}")

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        """Computes a DataFrame, replaces the table of that name with it, and gives the table."""
        self.write_frame(name, frame)
        return self.session.read.schema(frame.schema).parquet(f"{self._url}/{name}")

    def write_text(self, name: str, text: str) -> None:
        """Replaces a text: a folder that holds it in one file, with `_SUCCESS` beside it once it is whole."""
        # A list would go through Python on an executor, where its own environment takes seconds to start.
        rows = pa.table({"value": [text]}, _TEXT)
        frame = self.session.createDataFrame(rows, spark_schema(_TEXT)).coalesce(1)
        _replacing(frame).text(f"{self._url}/{name}")

    def _has(self, name: str) -> bool:
        """Whether a table was written."""
        # Of one path that is not there, FileStreamSink logs a trace; of several, Spark says no more than this.
        paths = [f"{self._url}/{name}"] * 2
        try:
            _ = self.session.read.schema("any string").parquet(*paths).schema  # Spark Connect looks for it only now
        except AnalysisException as error:
            if error.getCondition() != "PATH_NOT_FOUND":
                raise
            return False
        return True


def json_line(document: object) -> str:
    """A document as a job prints it, and leaves it in its folder."""
    return json.dumps(document) + "\n"


def _replacing(frame: DataFrame) -> DataFrameWriter:
    """Clusters may be configured to leave the partitions that a write does not mention."""
    return frame.write.mode("overwrite").option("partitionOverwriteMode", "static")
