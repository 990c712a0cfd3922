"""Promised objects that a store has and its listing lacks, which may be older: they are asked for by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.in_parallel import in_parallel
from tieredctl.ops.metadata_recovery.event_rebuilding import StoredSegment
from tieredctl.ops.verification.asked_objects import AskedObjects
from tieredctl.ports.layout import Layout, Part
from tieredctl.ports.object_store import ObjectStore, StoredObject


def with_unlisted(
    partition: TopicIdPartition,
    listed: Sequence[StoredSegment],
    known: Iterable[RemoteLogSegmentMetadata],
    store: ObjectStore,
    layout: Layout,
) -> list[StoredSegment]:
    """A partition's segments by its listing, with what that lacks of them and of those whose copies finished as far as
    it is `known`; by start offset. Raises TieredctlError if the store does not answer."""
    promised = {one.identity.segment_id: layout.promised_objects(one.identity) for one in listed}
    finished = (one for one in known if one.state is RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
    promised = {one.segment_id: layout.promised_objects(one) for one in finished} | promised
    found: dict[str, dict[Part, StoredObject]] = {one.identity.segment_id: {**one.objects} for one in listed}
    identities = {one.identity.segment_id: one.identity for one in listed}
    lacked = [
        (segment_id, part, key)
        for segment_id, keys in promised.items()
        for part, key in keys.items()
        if part not in found.get(segment_id, ())
    ]
    if not lacked:
        return [*listed]
    asked = AskedObjects(store, [key for _, _, key in lacked], layout.partition_prefix(partition))
    answers = in_parallel(store, lambda one: asked.head(one[2]), lacked)
    for (segment_id, part, key), stored in zip(lacked, answers, strict=True):
        explained = None if stored is None else layout.explain(key)
        if stored is not None and explained is not None:
            identities.setdefault(segment_id, explained)
            found.setdefault(segment_id, {})[part] = stored
    segments = [StoredSegment(identities[segment_id], objects) for segment_id, objects in found.items()]
    return sorted(segments, key=lambda one: (one.identity.start_offset, one.identity.segment_id))
