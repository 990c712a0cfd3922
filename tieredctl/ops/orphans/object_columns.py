"""Objects of a listing as columns, with what their keys say and what the metadata calls it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.layouts.protocol import ExplainedKey, Layout
from tieredctl.model.ids import UUID_CHARACTERS, TopicIdPartition
from tieredctl.ops.orphans.key_columns import KeyColumns, KeyExplainer
from tieredctl.ops.orphans.listing import Listing

NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class ObjectColumns:
    """A row for each object."""

    keys: pa.BinaryArray
    sizes: Ints
    last_modified_ms: Ints
    said: KeyColumns
    is_explained: Flags
    partitions: Ints
    """The number of the partition, NO_PARTITION for one that the metadata does not know."""
    known_topic: Flags

    def segment_ids(self) -> pa.StringArray:
        count = len(self.said.stems)
        bounds = np.arange(0, (count + 1) * UUID_CHARACTERS, UUID_CHARACTERS, dtype=np.int32)
        return pa.StringArray.from_buffers(count, pa.py_buffer(bounds), pa.py_buffer(self.said.segment_ids))

    def explained(self, row: int) -> ExplainedKey | None:
        """What one key says."""
        stem = self.said.explained[int(self.said.stems[row])]
        if stem is None:
            return None
        segment_id = bytes(self.said.segment_ids[row]).decode("ascii")
        return stem._replace(start_offset=int(self.said.start_offsets[row]), segment_id=segment_id)


@dataclass(frozen=True, slots=True)
class KnownOwners:
    """The partitions that the metadata knows, numbered, and the topic ids that it or the cluster ever knew."""

    partitions: Mapping[TopicIdPartition, int]
    topic_ids: frozenset[str]


def object_columns(listing: Listing, layout: Layout, known: KnownOwners) -> Iterator[ObjectColumns]:
    """The objects of a listing, many at a time."""
    explainer = KeyExplainer(layout)
    for batch in listing.batches():
        keys, sizes, times = batch.columns
        said = explainer.explain(keys)
        stems = said.explained
        yield ObjectColumns(
            keys,
            numbers_in(sizes),
            numbers_in(times),
            said,
            np.array([stem is not None for stem in stems], np.bool_)[said.stems],
            np.array([_number(stem, known) for stem in stems], np.int64)[said.stems],
            np.array([stem is not None and stem.topic_id in known.topic_ids for stem in stems], np.bool_)[said.stems],
        )


def _number(stem: ExplainedKey | None, known: KnownOwners) -> int:
    return NO_PARTITION if stem is None else known.partitions.get(stem.topic_id_partition, NO_PARTITION)
