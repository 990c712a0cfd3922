"""Partitions over their offsets on a page, and which are not drawn."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tieredctl.cli.findings.remedies import next_command
from tieredctl.model.counted import counted
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.timeline.partition_timeline import PartitionTimeline

if TYPE_CHECKING:
    from tieredctl.report.plot import Plot

_NAMED = 20


def timeline_plots(timelines: Iterable[PartitionTimeline]) -> Iterator[Plot]:
    """A plot of each that has anything."""
    from tieredctl.report.timelines import timeline_plot

    for number, one in enumerate(timelines, 1):
        if one.timeline.bounds is not None:
            title = f"{one.partition.topic}-{one.partition.partition} over its offsets"
            yield timeline_plot(f"timeline-{number}", title, one.timeline)


def sentences_of_not_drawn(left_out: Sequence[TopicIdPartition]) -> Iterator[str]:
    """Sentences that name partitions with findings and no plot, and the command that draws one."""
    if not left_out:
        return
    first, more = left_out[0], len(left_out) - _NAMED
    names = ", ".join(f"{one.topic}-{one.partition}" for one in left_out[:_NAMED])
    others = f" and {counted(more, 'other')}" if more > 0 else ""
    yield f"Not drawn, but with findings too: {names}{others}."
    chosen = f"--topic {shlex.quote(first.topic)} --partition {first.partition}"
    yield f"Draw another with: {next_command(f'tieredctl metadata segments --timeline {chosen} …')}"
