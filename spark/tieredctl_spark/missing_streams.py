"""What stands for a stream where this release of PySpark has none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_spark.worker_failures import one_sentence

_STREAMS_SINCE = "4.2"


class NoStream(DataSourceStreamReader):
    """Says that this release of PySpark has no such streams, whichever end it asks for first: PySpark 4.1 hides what
    `streamReader` itself raises."""

    def __init__(self, source: str) -> None:
        self._source = source

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802 - Spark's name
        return self._refuse()

    def latestOffset(self, *_: Any, **__: Any) -> dict[str, Any]:  # noqa: N802 - as above; later releases give more
        return self._refuse()

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        raise AssertionError(f"{partition} of a stream that never began")

    def _refuse(self) -> NoReturn:
        hint = "Read it in batches: spark.read instead of spark.readStream."
        message = f"A stream of {self._source} needs PySpark {_STREAMS_SINCE} or later; this is {pyspark.__version__}."
        with one_sentence():
            raise TieredctlError(ErrorCode.MISSING_EXTRA, f"{message} {hint}", hint=hint)
