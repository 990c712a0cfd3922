"""A cluster goes on while it is verified: what was found is only believed if its segment is still what it was."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.model.events import RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

_NEIGHBOURS = ("segmentId", "previousSegmentId")


def confirmed(
    findings: Iterable[Finding], before: RemotePartitionMetadataStore, after: RemotePartitionMetadataStore
) -> list[Finding]:
    """The findings whose segments are in the same state in metadata read afterwards.

    A segment that retention removed meanwhile is not missing; an object whose copy began meanwhile is not a stranger.
    """
    then, now = _states(before), _states(after)
    return [finding for finding in findings if all(then.get(one) == now.get(one) for one in _segments_of(finding))]


def _segments_of(finding: Finding) -> list[object]:
    return [finding.evidence[name] for name in _NEIGHBOURS if finding.evidence.get(name)]


def _states(store: RemotePartitionMetadataStore) -> dict[object, RemoteLogSegmentState]:
    return {known.metadata.segment_id: known.metadata.state for _, known in store.segments()}
