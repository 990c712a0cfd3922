"""Records as Parquet or Arrow's stream, and as the bytes of a format."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

    from tieredctl.records.part_folder import ByteSink


_GROUP_BYTES = 32 << 20


class RecordOutput(StrEnum):
    """`-o` of `remote records`."""

    TABLE = "table"
    WIDE = "wide"
    JSONL = "jsonl"
    CSV = "csv"
    PARQUET = "parquet"
    ARROW = "arrow"

    @property
    def is_binary(self) -> bool:
        """Whether it is not text."""
        return self in (RecordOutput.PARQUET, RecordOutput.ARROW)

    @property
    def is_table(self) -> bool:
        """Whether it is for people to read."""
        return self in (RecordOutput.TABLE, RecordOutput.WIDE)


class Forward(io.RawIOBase):
    """A stream that need not be able to seek, such as a pipe, of which is known how far it was written."""

    def __init__(self, out: ByteSink) -> None:
        self._out = out
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._out.write(data)
        size = memoryview(data).nbytes
        self._written += size
        return size

    def tell(self) -> int:
        return self._written


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: ByteSink) -> None:
    """A file whose row groups have some MiB each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with pq.ParquetWriter(Forward(out), schema, compression="zstd") as writer:
        group: list[pa.RecordBatch] = []
        size = 0
        for batch in batches:
            group.append(batch)
            size += batch.nbytes
            if size >= _GROUP_BYTES:
                writer.write_table(pa.Table.from_batches(group))
                group.clear()
                size = 0
        if group:
            writer.write_table(pa.Table.from_batches(group))


def write_arrow(schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: ByteSink) -> None:
    """Arrow's IPC stream."""
    import pyarrow as pa

    with pa.ipc.new_stream(Forward(out), schema) as writer:
        for batch in batches:
            writer.write_batch(batch)


WRITERS: dict[RecordOutput, Callable[[pa.Schema, Iterable[pa.RecordBatch], ByteSink], None]] = {
    RecordOutput.PARQUET: write_parquet,
    RecordOutput.ARROW: write_arrow,
}
