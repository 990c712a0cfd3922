"""Times as all tables of data sources have them: instants in UTC, of milliseconds."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

INSTANT = pa.timestamp("us", "UTC")
"""As Spark keeps it; its values are whole milliseconds."""
_NO_TIMESTAMP_MS = -1
"""Kafka's own word for none."""
_FIRST_MS, _END_MS = -62_135_596_800_000, 253_402_300_800_000
"""The beginning of the year 1, and of the year 10000."""


def instants(milliseconds: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """By ms since the epoch; null where Kafka has no timestamp, and outside the years 1 to 9999."""
    is_date = pc.and_(pc.greater_equal(milliseconds, _FIRST_MS), pc.less(milliseconds, _END_MS))
    is_known = pc.and_(is_date, pc.not_equal(milliseconds, _NO_TIMESTAMP_MS))
    known = pc.if_else(is_known, milliseconds, pa.scalar(None, pa.int64()))
    return pc.multiply(known, 1_000).cast(INSTANT)


def milliseconds_of(times: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """The same back, without nulls."""
    milliseconds = pc.divide(times.cast(INSTANT).cast(pa.int64()), 1_000)
    return pc.fill_null(milliseconds, _NO_TIMESTAMP_MS)
