"""Objects of a listing as columns, with the content of their keys, and the metadata's names for it.

Since when the metadata that was read would name an object's segment, had it ever been copied.

A broker writes an event before it copies a segment (RemoteLogManager.copyLogSegment). So what was stored before the
first record of the metadata partition that its events go to was announced in an earlier log, which was lost: the topic
was recreated, or a disk came back empty. Events that `recover metadata` writes again have records of today.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from tieredctl.formats.arrow_columns import numbers_in
from tieredctl.formats.windows import Flags, Ints
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import KnownTopics
from tieredctl.ops.metadata.coverage import MetadataCoverage
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.key_columns import KeyColumns, KeyExplainer
from tieredctl.ports.layout import ExplainedKey, Layout
from tieredctl.rlmm.partitioner import metadata_partition

NO_PARTITION = -1


@dataclass(frozen=True, slots=True)
class ObjectColumns:
    """A row for each object."""

    keys: pa.BinaryArray
    sizes: Ints
    last_modified_ms: Ints
    versions: pa.BinaryArray
    """As `StoredObject` has them, null if the listing does not report them."""
    storage_classes: pa.DictionaryArray
    """As the store names them, empty if the listing does not report them."""
    said: KeyColumns
    is_explained: Flags
    partitions: Ints
    """The number of the partition, NO_PARTITION for one that the metadata does not know."""
    known_topic: Flags
    absent_topic: Flags
    """Whether the cluster is known not to have its topic."""
    metadata_begins_ms: Ints
    """When the metadata of its partition begins, as `MetadataBegins` has it; NEVER_MS where no layout explains it."""

    def at(self, rows: Ints) -> ObjectColumns:
        """Some of the rows."""
        taken = pa.array(rows)
        return ObjectColumns(
            self.keys.take(taken),
            self.sizes[rows],
            self.last_modified_ms[rows],
            self.versions.take(taken),
            self.storage_classes.take(taken),
            replace(self.said, stems=self.said.stems[rows], names=self.said.names[rows]),
            self.is_explained[rows],
            self.partitions[rows],
            self.known_topic[rows],
            self.absent_topic[rows],
            self.metadata_begins_ms[rows],
        )

    def explained(self, row: int) -> ExplainedKey | None:
        """What one key says."""
        return self.said.of(row)


@dataclass(frozen=True, slots=True)
class KnownOwners:
    """The partitions that the metadata knows, numbered, the topics that it or the cluster ever knew, and since when
    the metadata would know others."""

    partitions: Mapping[TopicIdPartition, int]
    topics: KnownTopics
    begins: MetadataBegins


def object_columns(batches: Iterable[pa.RecordBatch], layout: Layout, owners: KnownOwners) -> Iterator[ObjectColumns]:
    """The objects of a listing's batches, many at a time."""
    explainer = KeyExplainer(layout)
    stems = _StemColumns(owners)
    for batch in batches:
        keys, sizes, times, versions, storage_classes = batch.columns
        explained = explainer.explain(keys)
        stems.extend(explained.explained)
        yield ObjectColumns(
            keys,
            numbers_in(sizes),
            numbers_in(times),
            versions,
            storage_classes,
            explained,
            stems.is_explained[explained.stems],
            stems.partitions[explained.stems],
            stems.known_topic[explained.stems],
            stems.absent_topic[explained.stems],
            stems.metadata_begins_ms[explained.stems],
        )


def selected_rows(objects: ObjectColumns, selection: Selection) -> Ints:
    """The rows that are selected."""
    if selection == Selection():
        return np.arange(len(objects.sizes))
    stems = [stem is not None and selection.has(stem.topic_id_partition) for stem in objects.said.explained]
    rows = np.flatnonzero(np.array([*stems, False], np.bool_)[objects.said.stems])
    if selection.segment_ids:
        wanted = [np.frombuffer(one.encode("ascii"), np.uint8) for one in selection.segment_ids]
        ids = objects.said.segment_ids[rows]
        rows = rows[np.logical_or.reduce([(ids == one).all(axis=1) for one in wanted])]
    return rows


class _StemColumns:
    """The facts about each stem, computed when it first occurs: there may be many, and batches."""

    def __init__(self, owners: KnownOwners) -> None:
        self._owners = owners
        self.is_explained = np.zeros(0, np.bool_)
        self.partitions = np.zeros(0, np.int64)
        self.known_topic = np.zeros(0, np.bool_)
        self.absent_topic = np.zeros(0, np.bool_)
        self.metadata_begins_ms = np.zeros(0, np.int64)

    def extend(self, explained: Sequence[ExplainedKey | None]) -> None:
        """`explained` begins with those that are known already."""
        new = explained[len(self.partitions) :]
        if not new:
            return
        numbers, known_topics = [self._number(stem) for stem in new], [self._is_known(stem) for stem in new]
        begins = [self._begins_ms(stem) for stem in new]
        self.is_explained = np.append(self.is_explained, [stem is not None for stem in new])
        self.partitions = np.append(self.partitions, numbers)
        self.known_topic = np.append(self.known_topic, known_topics)
        self.absent_topic = np.append(self.absent_topic, [self._is_absent(stem) for stem in new])
        self.metadata_begins_ms = np.append(self.metadata_begins_ms, np.array(begins, np.int64))

    def _number(self, stem: ExplainedKey | None) -> int:
        return NO_PARTITION if stem is None else self._owners.partitions.get(stem.topic_id_partition, NO_PARTITION)

    def _begins_ms(self, stem: ExplainedKey | None) -> int:
        return NEVER_MS if stem is None else self._owners.begins.of_partition(stem.topic_id_partition)

    def _is_known(self, stem: ExplainedKey | None) -> bool:
        return stem is not None and stem.topic_id in self._owners.topics

    def _is_absent(self, stem: ExplainedKey | None) -> bool:
        return stem is not None and self._owners.topics.live.is_live(stem.topic_id) is False


NEVER_MS = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class MetadataBegins:
    """When each metadata partition begins: by its first record, in its order. One with a wrong time in the middle of a
    log makes nothing look older than it is."""

    count: int
    """How many metadata partitions there are: where that is not sure, a count that explains where all events are."""
    first_records_ms: Mapping[int, int]

    @classmethod
    def of(cls, coverage: MetadataCoverage, first_records_ms: Mapping[int, int]) -> MetadataBegins:
        """The columns of what was read to its end."""
        count = coverage.counts[0] if coverage.counts else max(coverage.here, default=0) + 1
        return cls(count, first_records_ms)

    def of_partition(self, partition: TopicIdPartition) -> int:
        """When the metadata of a user partition begins, in ms; NEVER_MS where its log has no record, or one without a
        time."""
        number = metadata_partition(partition.topic_id, partition.partition, self.count)
        first_ms = self.first_records_ms.get(number, 0)
        return first_ms if first_ms > 0 else NEVER_MS
