"""Explains an offset by the metadata: which segment has it, and which objects that segment has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.drawing.timeline import Timeline
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.documents import Document
from tieredctl.ops.explanation.explanation import Explanation
from tieredctl.ops.metadata.completeness import is_whole_for_partitions_here
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection, one_partition
from tieredctl.ops.metadata.state import replayed
from tieredctl.ops.timeline.partition_timeline import KnownLog, partition_timeline
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

if TYPE_CHECKING:
    from tieredctl.ports.layout import Layout
    from tieredctl.ports.object_store import ObjectStore


def explain_metadata(stream: EventStream, selection: Selection, offset: int, epoch: int | None = None) -> Explanation:
    """Explains an offset of the one selected partition by metadata alone.

    The lineage of leaders is unknown: of several leader epochs that hold the offset remotely, the latest is taken,
    unless `epoch` is given. Raises TieredctlError as `one_partition` does."""
    store = replayed(stream, replace(selection, numbers=()))
    partition = one_partition(store.caches, selection, stream)
    remote = store.caches[partition]
    epochs = remote.epochs() if epoch is None else [epoch]
    lookups = ((one, remote.remote_log_segment_metadata(one, offset)) for one in reversed(epochs))
    leader_epoch, segment = next(
        ((one, segment_of_epoch) for one, segment_of_epoch in lookups if segment_of_epoch), (None, None)
    )
    highest = [remote.highest_offset_for_epoch(one) for one in remote.epochs()]
    return Explanation(
        partition,
        offset,
        timestamp_ms=None,
        leader_epoch=leader_epoch,
        segment=segment,
        other_segments=other_segments(remote, offset, segment),
        highest_remote_offset=max((one for one in highest if one is not None), default=None),
        timeline=timeline_of(stream, store, partition),
        live=None,
    )


def timeline_of(
    stream: EventStream, store: ReplayedMetadata, partition: TopicIdPartition, log: KnownLog | None = None
) -> Timeline:
    """The whole partition, with what is known of its log."""
    is_complete = is_whole_for_partitions_here(stream.findings)
    return partition_timeline(store, partition, log, is_complete=is_complete).timeline


def other_segments(remote: RemoteLogMetadataCache, offset: int, segment: KnownSegment | None) -> list[KnownSegment]:
    """Those with an offset that no look-up of it reaches; `segment` is the one that does."""
    return [
        other
        for other in remote.list_remote_log_segments()
        if other is not segment and other.metadata.start_offset <= offset <= other.metadata.end_offset
    ]


class ExplainedObjects(NamedTuple):
    """A segment's objects as documents, and a finding for each promised one that is missing."""

    items: Sequence[Document]
    findings: Sequence[Finding]


def segment_objects(store: ObjectStore, layout: Layout, segment: RemoteLogSegmentMetadata) -> ExplainedObjects:
    """The objects that the layout promises for a segment in COPY_SEGMENT_FINISHED, and any others that exist. `size` is
    in bytes, as stored; null for missing ones. Raises TieredctlError as the store does."""
    # Without a store, an offset is explained by metadata alone.
    from tieredctl.ops.verification.other_forms import OtherForms, report_missing
    from tieredctl.ops.verification.report import SegmentFindings

    promised = layout.promised_objects(segment)
    keys = promised | layout.optional_objects(segment)
    findings = SegmentFindings(segment, keys)
    items: list[Document] = []
    for part, key in keys.items():
        stored = store.head(key)
        if stored is not None or part in promised:
            size = stored.size if stored else None
            items.append({"part": part.value, "key": key, "size": size, "inStore": stored is not None})
        if stored is None and part in promised:
            report_missing(part, findings)
    if len(findings.found) == len(promised):
        return ExplainedObjects(items, OtherForms(store, layout).judge([segment]))
    return ExplainedObjects(items, findings.found)
