"""Of several partitions' records those that are asked for: so many at most, and those that hold a text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa
import pyarrow.compute as pc

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.records.arrow_records import DAMAGE, as_text


class TextPattern:
    """A regular expression, RE2's, for the text of keys and values: UTF-8, where bytes that are not have U+FFFD."""

    def __init__(self, pattern: str) -> None:
        """Raises TieredctlError `usage` where it is none."""
        self._pattern = pattern
        try:
            self._found(pa.array([""]))
        except pa.ArrowInvalid as error:
            raise _no_expression(pattern, str(error).partition(": ")[2] or str(error)) from None
        except UnicodeEncodeError:
            raise _no_expression(pattern, "it is not UTF-8") from None

    def matching(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The records whose key or value has a match, and the rows about damage."""
        for batch in batches:
            kept = pc.or_(*(pc.fill_null(self._found(as_text(batch.column(name))), False) for name in ("key", "value")))
            if DAMAGE.name in batch.schema.names:
                kept = pc.or_(kept, pc.is_valid(batch.column(DAMAGE.name)))
            some = batch.filter(kept)
            if some.num_rows:
                yield some

    def _found(self, texts: pa.Array) -> pa.Array:
        return pc.match_substring_regex(texts, self._pattern)


def _no_expression(pattern: str, reason: str) -> TieredctlError:
    return TieredctlError(ErrorCode.USAGE, f"{pattern!r} is not a regular expression: {reason}.")


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
