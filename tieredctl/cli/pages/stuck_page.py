"""The page of `metadata stuck`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tieredctl.cli.pages.report import Reported
from tieredctl.model.findings import Finding
from tieredctl.model.tolerance import Tolerance
from tieredctl.ops.metadata.event_stream import EventStream

if TYPE_CHECKING:
    from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def stuck_page(
    stream: EventStream, metadata: ReplayedMetadata, stuck: Sequence[Finding], tolerance: Tolerance
) -> Reported:
    """What is stuck, where, and how long the copies took that ended."""
    from tieredctl.cli.pages.report_plots import findings_plot, uploads_plot
    from tieredctl.cli.pages.timeline_plots import sentences_of_not_drawn, timeline_plots
    from tieredctl.ops.status.facts import remote_segments
    from tieredctl.ops.timeline.partition_timeline import timelines_of_found

    plots = (findings_plot(stuck), uploads_plot(remote_segments(metadata).uploads))
    shown = [plot for plot in plots if plot is not None]
    timelines = timelines_of_found([metadata], stuck, stream.findings)
    shown += timeline_plots(timelines.drawn)
    return Reported(
        stream.source.describe(),
        [*stream.findings, *stuck],
        unknown=[*sentences_of_not_drawn(timelines.left_out)],
        plots=shown,
        tolerance=tolerance,
    )
