"""Partitions over their offsets on a page: those with the gravest trouble, and no more than a reader takes in."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tieredctl.model.finding_subjects import PartitionSubject
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.timeline.partition_timeline import (
    KnownLog,
    PartitionTimeline,
    are_all_events_read,
    partition_timeline,
)
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tieredctl.report.plot import Plot

MOST_PLOTS = 6


def timeline_plots(timelines: Iterable[PartitionTimeline]) -> Iterator[Plot]:
    """A plot of each that has anything."""
    from tieredctl.report.timelines import timeline_plot

    for number, one in enumerate(timelines, 1):
        if one.timeline.bounds is not None:
            title = f"{one.partition.topic}-{one.partition.partition} over its offsets"
            yield timeline_plot(f"timeline-{number}", title, one.timeline)


def plots_of_found(
    metadata: ReplayedMetadata,
    findings: Sequence[Finding],
    metadata_findings: Iterable[Finding],
    logs: Mapping[TopicIdPartition, KnownLog] | None = None,
) -> Iterator[Plot]:
    """The partitions that findings are about, the gravest first; `metadata_findings` tell what of the metadata could
    not be read."""
    is_complete = are_all_events_read(metadata_findings)
    return timeline_plots(
        partition_timeline(metadata, one, (logs or {}).get(one), is_complete=is_complete)
        for one in _gravest(metadata, findings)[:MOST_PLOTS]
    )


def sentences_of_not_drawn(metadata: ReplayedMetadata, findings: Sequence[Finding]) -> Iterator[str]:
    """That `plots_of_found` draws not all partitions, where it does not."""
    partitions = len(_gravest(metadata, findings))
    if partitions > MOST_PLOTS:
        yield f"Drawn are {MOST_PLOTS} of {partitions} partitions with findings, the gravest first."


def _gravest(metadata: ReplayedMetadata, findings: Iterable[Finding]) -> list[TopicIdPartition]:
    """The partitions that findings are about and the metadata knows, the gravest first."""
    gravest: dict[TopicIdPartition, int] = {}
    for finding in findings:
        if isinstance(finding.about, PartitionSubject):
            partition = finding.about.partition
            gravest[partition] = max(finding.severity, gravest.get(partition, finding.severity))
    known = [partition for partition in gravest if len(metadata.rows_of(partition))]
    return sorted(known, key=lambda partition: (-gravest[partition], partition))
