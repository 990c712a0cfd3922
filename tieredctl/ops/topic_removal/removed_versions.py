"""Of what a removal took, or one before it, what the store keeps as versions."""

from __future__ import annotations

from tieredctl.layouts.protocol import Layout
from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.ops.topic_removal.topic_removal_plan import PartitionPlan, RemovalScope
from tieredctl.storage.protocol import ObjectStore


def keys_with_versions(plan: PartitionPlan, store: ObjectStore, layout: Layout, scope: RemovalScope) -> list[str]:
    """The keys of which versions or delete markers are kept: of a topic that is gone, all that the layout explains as
    the partition's; of a live one, those of segments that were planned, or whose deletion is recorded as finished."""
    prefix = layout.partition_prefix(plan.state.partition)
    ended = [one for one in plan.state.segments if one.state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED]
    removed = {segment.segment_id for segment in (*plan.segments, *ended)}
    found: dict[str, None] = {}
    for kept in store.kept_versions(prefix):
        explained = layout.explain(kept.key)
        if explained is None or explained.topic_id_partition != plan.state.partition:
            continue
        if not scope.topic_is_live or explained.segment_id in removed:
            found[kept.key] = None
    # Those that were copied under another prefix are in no listing of this one.
    found |= dict.fromkeys(stored.key for stored in plan.doomed() if not stored.key.startswith(prefix))
    return list(found)
