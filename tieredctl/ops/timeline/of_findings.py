"""The partitions that findings are about, drawn: the gravest first, and no more than a reader takes in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.ops.metadata.completeness import is_whole_for_partitions_here
from tieredctl.ops.timeline.partition_timeline import (
    KnownLog,
    PartitionTimeline,
    partition_timeline,
)
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

MOST_DRAWN = 6


class FoundTimelines(NamedTuple):
    """Partitions with findings about their segments or offsets."""

    drawn: Sequence[PartitionTimeline] = ()
    left_out: Sequence[TopicIdPartition] = ()
    """Those that are not drawn, the gravest first."""


NOTHING_DRAWN = FoundTimelines()


def timelines_of_found(
    stores: Sequence[ReplayedMetadata],
    findings: Iterable[Finding],
    metadata_findings: Iterable[Finding],
    logs: Mapping[TopicIdPartition, KnownLog] | None = None,
) -> FoundTimelines:
    """Those that the metadata knows; `metadata_findings` tell what of it could not be read. The logs have to be older
    than the metadata."""
    is_complete = is_whole_for_partitions_here(metadata_findings)
    known = [
        (metadata, partition)
        for partition in _gravest_first(findings)
        for metadata in stores
        if len(metadata.rows_of(partition))
    ]
    drawn = [
        partition_timeline(metadata, partition, (logs or {}).get(partition), is_complete=is_complete)
        for metadata, partition in known[:MOST_DRAWN]
    ]
    return FoundTimelines(drawn, [partition for _, partition in known[MOST_DRAWN:]])


def logs_of_leaders(parts: Iterable[PartitionFacts]) -> dict[TopicIdPartition, KnownLog]:
    """What leaders reported before the metadata was read. Their leader epochs are those of the segments."""
    return {
        one.partition: KnownLog((), one.earliest_local, one.earliest, one.latest)
        for one in parts
        if one.earliest_local is not None
    }


def _gravest_first(findings: Iterable[Finding]) -> list[TopicIdPartition]:
    gravest: dict[TopicIdPartition, int] = {}
    for finding in findings:
        if isinstance(finding.about, PartitionSubject):
            partition = finding.about.partition
            gravest[partition] = max(finding.severity, gravest.get(partition, finding.severity))
    return sorted(gravest, key=lambda partition: (-gravest[partition], partition))
