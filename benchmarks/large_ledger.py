"""A verification ledger of any size, about segments that no run is about: as it is once its files were put together."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
from tieredctl_spark.segment_rows import Result
from tieredctl_spark.tables.kinds import READINGS
from tieredctl_spark.tables.manifest import LedgerManifest, TableState
from tieredctl_spark.tables.table_store import TablesPlace, commit
from tieredctl_spark.tables.writing import TableWriter

from benchmarks.large_store import ALPHABET

_ROWS_AT_ONCE = 500_000
_RUN = "20260101T000000Z-000000"


def write_large_ledger(output: Path, rows: int) -> None:
    """Writes it where a job with that `--output` has its ledger."""
    store = TablesPlace.given(str(output / "ledger"), {}).open_writable()
    files = tuple(TableWriter(store, 1, _RUN, None, "").write_gathered(READINGS, _tables(rows)))
    commit(store, LedgerManifest(1, _RUN, "", tables={READINGS.name: TableState(files, _RUN)}))


def _tables(rows: int) -> Iterator[pa.Table]:
    random, moment = np.random.default_rng(1), datetime(2026, 1, 1, tzinfo=UTC)
    for first in range(0, rows, _ROWS_AT_ONCE):
        count = min(_ROWS_AT_ONCE, rows - first)
        known = {
            "topic": "orders",
            "topicId": "ABEiM0RVZneImaq7zN3u_w",
            "partition": 0,
            "startOffset": 0,
            "endOffset": 999,
            "segmentSizeInBytes": 1 << 20,
            "level": "headers",
            "bytesRead": 1_000,
            "batches": 2,
            "records": 100,
            "findings": [],
            "unread": [],
            "segments": 1,
            "objects": 5,
            "result": Result.SOUND.value,
            "checkedAt": moment,
        }
        columns = {one.name: pa.repeat(pa.scalar(known.get(one.name), one.type), count) for one in READINGS.columns} | {
            name: _texts(random, count, length) for name, length in (("segmentId", 22), ("fingerprint", 64))
        }
        yield pa.table(columns, READINGS.columns)


def _texts(random: np.random.Generator, count: int, length: int) -> pa.Array:
    letters = ALPHABET[random.integers(0, len(ALPHABET), (count, length), np.uint8)]
    offsets = np.arange(0, (count + 1) * length, length, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(letters))
