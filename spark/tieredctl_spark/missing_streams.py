"""What stands for a stream where this release of PySpark has none."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any, NoReturn

import pyarrow as pa
import pyspark
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl_spark.worker_failures import one_sentence

_STREAMS_SINCE = "4.2"


def demand_streams(source: str) -> None:
    """Raises TieredctlError `missing-extra` where this release has none."""
    if find_spec("pyspark.sql.streaming.datasource") is None:
        hint = "Leave --stream out, and let a scheduler begin each run."
        raise TieredctlError(ErrorCode.MISSING_EXTRA, _missing(source), hint=hint)


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
        with one_sentence():
            raise TieredctlError(ErrorCode.MISSING_EXTRA, f"{_missing(self._source)} {hint}", hint=hint)


def _missing(source: str) -> str:
    return f"A stream of {source} needs PySpark {_STREAMS_SINCE} or later; this is {pyspark.__version__}."
