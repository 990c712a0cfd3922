"""What is in a store of combined objects: each object with its state and its segments."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from tieredctl.errors import DecodeError, TieredctlError
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, JsonOnly, ResultRow, Size, Wide
from tieredctl.ops.documents import Document, epochs_document, partition_document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.object_store import ObjectStore, StoredObject
from tieredctl_proposals.model.wal_events import RemoteLogSegmentMetadataEntry
from tieredctl_proposals.ops.wal.contents import Segments, WalContents, by_place
from tieredctl_proposals.ops.wal.own_index import CONCERN_ONE_OBJECT
from tieredctl_proposals.wal.places import object_key
from tieredctl_proposals.wal.reading import read_object_index
from tieredctl_proposals.wal.replayed import KnownCombined, KnownWalSegment


@dataclass(frozen=True, slots=True)
class CombinedObject(ResultRow):
    """An object, by its events or else by its index; the size is None where it is missing."""

    combined_segment_id: str
    key: JsonOnly[str]
    state: str | None
    size: Size[int | None]
    last_modified_ms: JsonOnly[int | None]
    broker_id: Annotated[int | None, Column("BROKER", wide=True)]
    event_timestamp_ms: Annotated[int | None, Column("EVENT-TIME-MS", wide=True)]
    metadata_partition: JsonOnly[int | None]
    metadata_offset: JsonOnly[int | None]
    segments: list[Document]
    index: Wide[str | None] = None


@dataclass(frozen=True, slots=True)
class WalInspection:
    """A row for each combined object: those with events first, by their events; then the others, by key."""

    rows: Sequence[CombinedObject]
    summary: Document


def inspect_wal(store: ObjectStore, contents: WalContents, selection: Selection) -> WalInspection:
    """What the events and the listing have. Of objects without events the index is read, too.

    Raises TieredctlError where the store does not answer, and `unknown-topic` where it has nothing of a selection.
    """
    segments = by_place(contents.events.segments())
    objects = contents.events.combined()
    rows = [_known_row(contents, one, segments) for one in objects]
    named = {one.metadata.combined_segment_id for one in objects}
    rows += (
        _unknown_row(store, combined_id, stored)
        for combined_id, stored in sorted(contents.objects.items())
        if combined_id not in named
    )
    shown = [row for row in rows if _is_selected(row, selection)]
    selects = not shown or selection.names_several
    if selects and contents.is_there and not contents.events.findings and all(map(_is_known, rows)):
        partitions = {partition for row in rows for partition in _partitions(row)}
        hint = "List what is there with `tieredctl wal inspect`."
        partitions.update(contents.events.replayed.partitions)
        selection.demand_known(partitions, f"{store.url} has nothing of", hint)
    states = Counter(row.state or "none" for row in shown)
    summary = {
        "objects": sum(row.size is not None for row in shown),
        "bytes": sum(row.size or 0 for row in shown),
        "segments": sum(len(row.segments) for row in shown),
        "states": dict(sorted(states.items())),
        "otherObjects": contents.others_count,
        "endOffsets": {str(number): end for number, end in sorted(contents.events.log.end_offsets.items())},
    }
    return WalInspection(shown, summary)


def _known_row(contents: WalContents, one: KnownCombined, segments: Segments) -> CombinedObject:
    metadata = one.metadata
    stored = contents.objects.get(metadata.combined_segment_id)
    return CombinedObject(
        *(metadata.combined_segment_id, object_key(metadata.combined_segment_id), metadata.state.name),
        None if stored is None else stored.size,
        None if stored is None else stored.last_modified_ms,
        *(metadata.broker_id, metadata.event_timestamp_ms, one.metadata_partition, one.metadata_offset),
        [_segment(entry, segments.get((entry.topic_id_partition, entry.segment_id))) for entry in metadata.entries],
    )


def _unknown_row(store: ObjectStore, combined_id: str, stored: StoredObject) -> CombinedObject:
    """An object without events, as its index describes it; `index` says why not, where it cannot be read."""
    described, index = None, "none"
    try:
        described = read_object_index(store, stored)
        index = "none" if described is None else "read"
    except DecodeError as error:
        index = f"damaged: {error.reason}"
    except TieredctlError as error:
        if error.code not in CONCERN_ONE_OBJECT:
            raise
        index = f"unread: {error.message}"
    entries = () if described is None else described.entries
    return CombinedObject(
        *(combined_id, stored.key, None, stored.size, stored.last_modified_ms),
        None if described is None else described.broker_id,
        None if described is None else described.event_timestamp_ms,
        *(None, None, [_segment(entry, None) for entry in entries], index),
    )


def _segment(entry: RemoteLogSegmentMetadataEntry, segment: KnownWalSegment | None) -> Document:
    """A segment in an object; offsets, epochs and state are by the events about it, null where there are none."""
    metadata = None if segment is None else segment.metadata
    return {
        **partition_document(entry.topic_id_partition),
        "segmentId": entry.segment_id,
        "startOffset": None if metadata is None else metadata.start_offset,
        "endOffset": None if metadata is None else metadata.end_offset,
        "segmentLeaderEpochs": None if metadata is None else epochs_document(metadata.segment_leader_epochs),
        "state": None if metadata is None else metadata.state.name,
        "startFilePosition": entry.start_file_position,
        "endFilePosition": entry.end_file_position,
    }


def _is_selected(row: CombinedObject, selection: Selection) -> bool:
    """Whether any of its segments is; without a selection also what has none."""
    return selection == Selection() or any(map(selection.has, _partitions(row)))


def _partitions(row: CombinedObject) -> Iterator[TopicIdPartition]:
    return (TopicIdPartition(one["topicId"], one["topic"], one["partition"]) for one in row.segments)


def _is_known(row: CombinedObject) -> bool:
    """Whether it is known what an object has."""
    return row.index in (None, "read", "none")
