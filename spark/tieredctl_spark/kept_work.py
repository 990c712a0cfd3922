"""The work of one run on the disks of its executors, where no folder was given that Spark can write."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.schemas import spark_schema


@dataclass(frozen=True, slots=True)
class KeptWork:
    """`WorkTables` that end with the run."""

    session: SparkSession
    _frames: dict[str, list[DataFrame]] = field(default_factory=dict)

    def frame(self, name: str, schema: pa.Schema) -> DataFrame:
        empty = self.session.createDataFrame(schema.empty_table(), spark_schema(schema))
        frames = self._frames.get(name, [empty])
        return reduce(DataFrame.unionByName, frames).select(*schema.names)

    def write_frame(self, name: str, frame: DataFrame) -> None:
        self._frames[name] = [kept_by_executors(frame, name)]

    def write_table(self, name: str, table: pa.Table, *, append: bool = False) -> None:
        frame = self.session.createDataFrame(table, spark_schema(table.schema))
        self._frames[name] = [*(self._frames.get(name, []) if append else []), kept_by_executors(frame, name)]

    def keep(self, frame: DataFrame, name: str) -> DataFrame:
        self.write_frame(name, frame)
        return self._frames[name][0]

    def clear(self, name: str) -> None:
        for one in [one for one in self._frames if one.startswith(name)]:
            del self._frames[one]

    def runs(self, _name: str) -> set[str]:
        return set()
