"""All segments that metadata ever named, with their states, in the blocks that executors keep."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame

from tieredctl.formats.uuid_columns import UuidSet
from tieredctl.formats.windows import Flags
from tieredctl_spark.arrow.state_blocks import BLOCK, BLOCK_SCHEMA, StateBlock, state_fields
from tieredctl_spark.arrow.state_columns import STATE_SCHEMA, uuids_of
from tieredctl_spark.worker_functions import mapped

Batches = Iterable[pa.RecordBatch]
_MOST_NAMED = 250_000
"""Ids that the driver and each task hold."""


@dataclass(frozen=True, slots=True)
class SegmentFrame:
    """A segment that several partitions claim is there for each. What is asked for is chosen in Python, so that Spark
    moves blocks, and rows of few segments."""

    blocks: DataFrame
    """The blocks, by BLOCK_SCHEMA."""
    wanted: tuple[Callable[[StateBlock], Flags], ...] = ()
    """Which segments of each block are meant; without any, all."""

    def those(self, wanted: Callable[[StateBlock], Flags]) -> SegmentFrame:
        """Some of them."""
        return replace(self, wanted=(*self.wanted, wanted))

    def named(self, ids: DataFrame, count: int) -> DataFrame:
        """By STATE_SCHEMA, those whose ids are in the only column of another DataFrame, of `count` rows at most. Very
        many are compared by Spark."""
        if count > _MOST_NAMED:
            return self.rows().join(ids, ids.columns, "left_semi").select(*STATE_SCHEMA.names)
        texts = ids.toArrow().column(0).drop_null().unique()
        those = UuidSet(uuids_of(texts))
        return self.those(lambda block: those.has(block.ids)).rows()

    def rows(self, *names: str) -> DataFrame:
        """By STATE_SCHEMA, or by `state_fields` of some columns."""
        chosen = names or tuple(STATE_SCHEMA.names)
        return self._mapped(lambda block: block.rows(chosen), state_fields(chosen))

    def partition_rows(self, *names: str) -> DataFrame:
        """Columns that are the same for all segments of a partition, once for each partition that has any."""
        return self._mapped(lambda block: block.partition_rows(names), state_fields(names)).distinct()

    def local(self) -> Iterator[StateBlock]:
        """The blocks, on the driver."""
        blocks = self._mapped(StateBlock.packed, BLOCK_SCHEMA) if self.wanted else self.blocks
        return _unpacked(blocks.toArrow().to_batches())

    def _mapped(self, change: Callable[[StateBlock], pa.Table], schema: pa.Schema) -> DataFrame:
        wanted = self.wanted

        def changed(batches: Batches) -> Iterator[pa.RecordBatch]:
            for block in _unpacked(batches):
                chosen = reduce(lambda some, choice: some.where(choice(some)), wanted, block)
                yield from change(chosen).to_batches()

        return mapped(self.blocks, changed, schema)


def _unpacked(batches: Batches) -> Iterator[StateBlock]:
    return (StateBlock.unpacked(one) for batch in batches for one in batch.column(BLOCK))
