"""The objects that a destination lacks, put aside in a file in the order in which they are copied.

What the metadata promises comes first, the oldest records first: what is newest may still change. The rest follows. In
memory are only a number and a time for each object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from tempfile import NamedTemporaryFile
from types import TracebackType

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.uuid_columns import NOT_FOUND, UuidLookup, uuids_of_texts
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.key_text import key_text
from tieredctl.ops.remote.listing import LISTING_SCHEMA, record_batches, stored_object
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import StoredObject
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_ROWS_AT_ONCE = 1 << 12
_SCHEMA = LISTING_SCHEMA.set(len(LISTING_SCHEMA) - 1, pa.field("storageClass", pa.string()))
"""A file of batches cannot have a dictionary that grows."""
_AFTER_ALL_THAT_IS_PROMISED = 1 << 62
Turns = Callable[[pa.RecordBatch], Ints]
"""(objects by LISTING_SCHEMA) -> a number for each; the smallest is copied first."""


def oldest_first(objects: pa.RecordBatch) -> Ints:
    """By the time at which each object was written."""
    return numbers_in(objects.column("lastModifiedMs"))


class PromisedFirst:
    """What the metadata promises, by the time of its newest record; then the others, by when they were written."""

    def __init__(self, metadata: ReplayedMetadata, layout: Layout) -> None:
        rows = metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])
        self._promised = UuidLookup(metadata.rows.segment_ids.at(rows))
        self._times = metadata.max_timestamps(rows)
        self._layout = layout

    def __call__(self, objects: pa.RecordBatch) -> Ints:
        turns = oldest_first(objects) + _AFTER_ALL_THAT_IS_PROMISED
        explained = [self._layout.explain(key_text(key)) for key in objects.column("key").to_pylist()]
        ids, numbers = uuids_of_texts(["" if one is None else one.segment_id for one in explained])
        rows = self._promised.rows_of(ids)
        are_promised = rows != NOT_FOUND
        turns[np.array(numbers, np.int64)[are_promised]] = self._times[rows[are_promised]]
        return turns


class Difference:
    """Objects of a source, taken when this is entered."""

    def __init__(self, objects: Iterable[StoredObject], turns: Turns) -> None:
        self._taken = iter(objects)
        self._turns = turns
        self.objects = 0
        self.bytes = 0

    def __enter__(self) -> Difference:
        with ExitStack() as stack:
            file = stack.enter_context(NamedTemporaryFile(prefix="tieredctl-copy-"))
            turns: list[Ints] = []
            with pa.ipc.new_file(file, _SCHEMA) as writer:
                for batch in record_batches(self._taken, _ROWS_AT_ONCE):
                    turns.append(self._turns(batch))
                    self.objects += len(batch)
                    self.bytes += int(numbers_in(batch.column("size")).sum())
                    columns = [*batch.columns[:-1], batch.columns[-1].cast(pa.string())]
                    writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=_SCHEMA))
            file.flush()
            self.order: Ints = np.argsort(np.concatenate([np.zeros(0, np.int64), *turns]), kind="stable")
            self._mapped = stack.enter_context(pa.memory_map(file.name))
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def in_turn(self) -> Iterator[StoredObject]:
        """The objects in the order in which they are copied."""
        return self.at(self.order)

    def at(self, rows: Ints) -> Iterator[StoredObject]:
        """The objects of these rows, in this order. Row by row, objects come by ascending key."""
        if not self.objects:
            return
        file, opened = pa.ipc.open_file(self._mapped), -1
        for row in rows:
            number, place = divmod(int(row), _ROWS_AT_ONCE)
            if number != opened:
                batch, opened = file.get_batch(number), number
            yield stored_object(batch, place)
