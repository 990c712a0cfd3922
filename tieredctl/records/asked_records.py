"""Of several partitions' records those that are asked for: so many at most, and those that hold a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.records.arrow_records import DAMAGE


def matching(batches: Iterable[pa.RecordBatch], pattern: str) -> Iterator[pa.RecordBatch]:
    """The records whose key or value has a match of a regular expression (RE2's), and the rows about damage. Raises
    TieredctlError `usage` where it is none."""
    for batch in batches:
        try:
            found = [pc.match_substring_regex(batch.column(name), pattern) for name in ("key", "value")]
        except pa.ArrowInvalid as error:
            reason = str(error).partition(": ")[2] or str(error)
            raise TieredctlError(ErrorCode.USAGE, f"{pattern!r} is not a regular expression: {reason}.") from None
        kept = pc.or_(*(pc.fill_null(one, False) for one in found))
        if DAMAGE.name in batch.schema.names:
            kept = pc.or_(kept, pc.is_valid(batch.column(DAMAGE.name)))
        some = batch.filter(kept)
        if some.num_rows:
            yield some


def first_records(batches: Iterable[pa.RecordBatch], most: int) -> Iterator[pa.RecordBatch]:
    """So many at most, and the rows about damage before the last of them; no more is read than is needed for them."""
    left = most
    if not left:
        return
    for batch in batches:
        count = record_count(batch)
        if count >= left:
            yield batch.slice(0, left)  # a row about damage is a batch of its own
            return
        yield batch
        left -= count


def record_count(batch: pa.RecordBatch) -> int:
    """How many rows are records: those about damage are none."""
    if DAMAGE.name not in batch.schema.names:
        return int(batch.num_rows)
    return int(batch.column(DAMAGE.name).null_count)
