"""Whether Kafka's metadata records the sizes of stored objects, which then must not change."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.completeness import is_whole
from tieredctl.ops.verification.suspects import IdentifiedSegment
from tieredctl.ports.layout import Layout
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_AT_ONCE = 1 << 16


def may_sizes_change(metadata: ReplayedMetadata, findings: Iterable[Finding], layout: Layout) -> bool:
    """Whether it is certain that no segment's custom metadata records the size of its objects; `findings` are about the
    metadata itself: what is not whole may lack the one that does."""
    if not is_whole(findings):
        return False
    rows = metadata.in_states([RemoteLogSegmentState.COPY_SEGMENT_FINISHED])
    rows = rows[metadata.have_custom_metadata(rows)]
    for first in range(0, len(rows), _AT_ONCE):
        some = rows[first : first + _AT_ONCE]
        partitions = [metadata.partitions[number] for number in metadata.rows.partitions[some].tolist()]
        ids, offsets = metadata.rows.segment_ids.at(some).texts(), metadata.start_offsets(some).tolist()
        segments = map(IdentifiedSegment, partitions, ids, offsets, metadata.custom_metadata(some))
        if any(layout.stored_size(segment) is not None for segment in segments):
            return False
    return True
