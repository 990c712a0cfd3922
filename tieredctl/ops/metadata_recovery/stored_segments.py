"""The segments of a store, by its keys alone."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter

from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved


@dataclass(frozen=True, slots=True)
class StoredSegment:
    """What the store has of one segment."""

    identity: ExplainedKey
    objects: Mapping[Part, StoredObject]

    @property
    def stored_ms(self) -> int:
        """When its last object was written: nothing else in a store shows which copy came later."""
        return max(stored.last_modified_ms for stored in self.objects.values())

    @property
    def stored_bytes(self) -> int:
        """Of all its objects."""
        return sum(stored.size for stored in self.objects.values())

    def missing(self, layout: Layout) -> list[Part]:
        """The promised objects that are not there."""
        return [part for part in layout.promised_objects(self.identity) if part not in self.objects]


@dataclass(slots=True)
class StoreListing:
    """Lists a store, a partition at a time."""

    store: ObjectStore
    layout: Layout
    selection: Selection
    objects: int = 0
    """Objects that were listed."""
    unexplained: int = 0
    """Whose keys the layout does not know."""
    others: set[TopicIdPartition] = field(default_factory=set)
    """Partitions that are not selected."""

    def partitions(self) -> Iterator[tuple[TopicIdPartition, list[StoredSegment]]]:
        """Every partition with its segments, by start offset. Keys come sorted, so a partition's are together."""
        for partition, rows in groupby(self._explained(), key=itemgetter(0)):
            found: dict[str, tuple[ExplainedKey, dict[Part, StoredObject]]] = {}
            for _, explained, stored in rows:
                found.setdefault(explained.segment_id, (explained, {}))[1][explained.part] = stored
            segments = [StoredSegment(explained, objects) for explained, objects in found.values()]
            yield partition, sorted(segments, key=lambda one: (one.identity.start_offset, one.identity.segment_id))

    def _explained(self) -> Iterator[tuple[TopicIdPartition, ExplainedKey, StoredObject]]:
        for stored in list_unreserved(self.store):
            self.objects += 1
            explained = self.layout.explain(stored.key)
            if explained is None:
                self.unexplained += 1
            elif self.selection.has(partition := explained.topic_id_partition):
                yield partition, explained, stored
            else:
                self.others.add(partition)
