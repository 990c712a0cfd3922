"""`remote ls` and `remote du`: what is in a store, object by object or in totals."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.layout import ExplainedKey, Layout, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject, list_unreserved

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PARTS = tuple(Part)
_EVERYTHING = Selection()


_Owner = tuple[str, str, int | None, Part | None]
"""Topic, topic id, partition and part, as deep as is asked for."""


class Depth(StrEnum):
    """What each row of `remote du` is about."""

    TOPIC = "topic"
    PARTITION = "partition"
    PART = "part"


class ListedObject(NamedTuple):
    """An object, and its segment by its key; None where the layout does not explain the key."""

    stored: StoredObject
    explained: ExplainedKey | None


@dataclass(slots=True)
class Totals:
    """How much was counted; bytes as stored."""

    objects: int = 0
    bytes: int = 0

    def count(self, stored: StoredObject) -> None:
        self.objects += 1
        self.bytes += stored.size


@dataclass(slots=True)
class Inventory:
    """The selected objects of a store. An object whose key the layout does not explain is only in an inventory of
    all."""

    store: ObjectStore
    layout: Layout | None
    """None explains no key."""
    selection: Selection = _EVERYTHING
    total: Totals = field(default_factory=Totals)
    """Totals of all objects read so far, as is `unexplained`."""
    unexplained: int = 0
    storage_classes: dict[str, Totals] = field(default_factory=dict)
    """The same by storage class, for a store that reports it."""
    partitions: set[TopicIdPartition] = field(default_factory=set)
    """The partitions that own the objects among which some are selected."""
    segment_ids: set[str] = field(default_factory=set)
    """The selected segments that have objects, where segments are named."""

    def objects(self) -> Iterator[ListedObject]:
        """Every object but tieredctl's own, by ascending key. Streams."""
        everything = self.selection == _EVERYTHING
        self.partitions, self.segment_ids = set(), set()
        for stored in list_unreserved(self.store, prefix_of(self.selection, self.layout)):
            explained = None if self.layout is None else self.layout.explain(stored.key)
            if explained and not everything:
                self.partitions.add(explained.topic_id_partition)
            if everything or (explained and self._selects(explained)):
                self.total.count(stored)
                if stored.storage_class is not None:
                    self.storage_classes.setdefault(stored.storage_class, Totals()).count(stored)
                self.unexplained += explained is None
                if explained and self.selection.segment_ids:
                    self.segment_ids.add(explained.segment_id)
                yield ListedObject(stored, explained)

    def demand_known(self) -> None:
        """Raises TieredctlError `unknown-topic` or `unknown-segment` if the store, once listed, has no object of
        something that is selected, with the nearest names."""
        if self.selection == _EVERYTHING:
            return
        sentence, hint = f"{self.store.url} has no object of", "List what is there with `tieredctl remote du`."
        self.selection.demand_known(self.partitions, sentence, hint)
        unknown = [one for one in self.selection.segment_ids if one not in self.segment_ids]
        if unknown or not self.total.objects:
            without = replace(self.selection, segment_ids=tuple(unknown))
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, f"{sentence} {without}.", hint=hint)

    def rows(self) -> Iterator[Document]:
        """`remote ls`: one row per object. Raises TieredctlError as `demand_known` does."""
        for one in self.objects():
            yield object_document(one) | {"storageClass": one.stored.storage_class}
        self.demand_known()

    def usage(self, depth: Depth = Depth.PART) -> list[Document]:
        """`remote du`: totals for each topic, partition or part of one, and one row for what the layout cannot explain.

        By topic, topic id, partition, and parts in the order of `Part`; fields below the depth are null. Memory grows
        with the number of rows. Raises TieredctlError as `demand_known` does.
        """
        totals: dict[_Owner | None, Totals] = {}
        for stored, explained in self.objects():
            totals.setdefault(explained and _owner(explained, depth), Totals()).count(stored)
        self.demand_known()
        unexplained = totals.pop(None, None)
        owners = sorted((owner for owner in totals if owner), key=_place_of)
        rows = [_usage_document(*owner, totals[owner]) for owner in owners]
        return rows + ([_usage_document(None, None, None, None, unexplained)] if unexplained else [])

    def summary(self) -> Document:
        """Totals of what was read so far."""
        classes = sorted(self.storage_classes.items())
        return {
            "objects": self.total.objects,
            "bytes": self.total.bytes,
            "unexplained": self.unexplained,
            "storageClasses": {name: {"objects": one.objects, "bytes": one.bytes} for name, one in classes},
        }

    def _selects(self, explained: ExplainedKey) -> bool:
        return self.selection.has_segment(explained.topic_id_partition, explained.segment_id)


def _owner(explained: ExplainedKey, depth: Depth) -> _Owner:
    partition = None if depth is Depth.TOPIC else explained.partition
    part = explained.part if depth is Depth.PART else None
    return explained.topic, explained.topic_id, partition, part


def _place_of(owner: _Owner) -> tuple[str, str, int, int]:
    topic, topic_id, partition, part = owner
    return topic, topic_id, partition or 0, 0 if part is None else _PARTS.index(part)


def prefix_of(selection: Selection, layout: Layout | None) -> str:
    """What the keys of all selected objects begin with."""
    named = selection.topics, selection.topic_ids, selection.numbers
    if layout is None or any(len(values) != 1 for values in named):
        return ""
    return layout.partition_prefix(TopicIdPartition(selection.topic_ids[0], selection.topics[0], selection.numbers[0]))


def object_document(listed: ListedObject) -> Document:
    """An object as `remote ls` shows it; null where the layout does not explain the key."""
    stored, explained = listed
    return {
        "key": stored.key,
        "size": stored.size,
        "lastModified": iso_8601(stored.last_modified_ms),
        "segmentId": explained.segment_id if explained else None,
        "topicId": explained.topic_id if explained else None,
        "partition": explained.partition if explained else None,
        "part": explained.part.value if explained else None,
    }


def iso_8601(timestamp_ms: int) -> str | None:
    """Milliseconds since the epoch as `2026-11-21T10:51:00.123Z`; None for a time outside the years 1 to 9999, which
    a file system may hold."""
    try:
        moment = _EPOCH + timedelta(milliseconds=timestamp_ms)
    except OverflowError:
        return None
    return moment.isoformat(timespec="milliseconds").removesuffix("+00:00") + "Z"


def _usage_document(
    topic: str | None, topic_id: str | None, partition: int | None, part: Part | None, totals: Totals
) -> Document:
    return {
        "topic": topic,
        "topicId": topic_id,
        "partition": partition,
        "part": part and part.value,
        "objects": totals.objects,
        "bytes": totals.bytes,
    }
