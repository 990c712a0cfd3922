"""`tieredctl snapshot clean`: removes what retention no longer keeps of a stopped node's snapshots and log."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tieredctl.cli.arguments import GREATEST_INT64, given_path, now_ms
from tieredctl.cli.confirmation import ApplyChoice, demand_confirmation
from tieredctl.cli.options import ClusterId, Now, Yes
from tieredctl.cli.result_listing import result_listing
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ExitCode
from tieredctl.model.counted import counted
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.snapshots.cleaning import CleanedFilesRow
from tieredctl.ops.snapshots.cleaning_plan import PlannedFilesRow
from tieredctl.wiring.snapshot_cleaning import snapshot_cleaning


def clean(
    *,
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="DIR", parser=given_path, help="A stopped node's __cluster_metadata-0, or its log directory."
        ),
    ],
    metadata_max_retention_ms: Annotated[
        int | None,
        typer.Option(metavar="MS", help="As in Kafka; by default the node's.", min=-1, max=GREATEST_INT64),
    ] = None,
    metadata_max_retention_bytes: Annotated[
        int | None,
        typer.Option(metavar="BYTES", help="As in Kafka; by default the node's.", min=-1, max=GREATEST_INT64),
    ] = None,
    server_properties: Annotated[
        Path | None,
        typer.Option(metavar="FILE", parser=given_path, help="The node's configuration, for the limits not given."),
    ] = None,
    now: Now = None,
    choice: ApplyChoice,
    receipts: Annotated[
        Path,
        typer.Option(metavar="FILE", parser=given_path, help="Where to record what was removed."),
    ] = Path("snapshot-clean.receipts"),
    cluster_id: ClusterId = None,
    yes: Yes = False,
    view: ProgressView,
) -> ExitCode:
    """Remove old snapshots of a stopped node, and the log before them, by Kafka's retention rules.

    The latest snapshot and the log after it always stay. If interrupted, run the same command again. For example:
    tieredctl snapshot clean /var/lib/kafka/data --metadata-max-retention-ms 86400000
    """
    apply = choice.is_made
    with snapshot_cleaning(
        folder,
        now_ms(now),
        max_age_ms=metadata_max_retention_ms,
        max_bytes=metadata_max_retention_bytes,
        server_properties=server_properties,
    ) as cleaning:
        plan = cleaning.plan
        summary = plan.summary()
        view.say(_sentence(summary))
        for name, source in plan.limit_sources.items():
            view.say(f"{name} is {summary[name]} ({source}).")
        if not apply or not plan.to_remove():
            advice = choice.advice(changes=bool(plan.to_remove()))
            return view.plan("SnapshotCleaningPlan", plan, PlannedFilesRow, advice=advice)
        cleaning.demand_applicable(receipts)
        what = f"Deleting {_amount(summary)} from {plan.cluster.path} for good"
        demand_confirmation(what, plan.cluster.cluster_id, yes=yes, typed_cluster_id=cluster_id)
        outcome = cleaning.apply(receipts)
    view.say(f"Removed {outcome.done} of {outcome.planned}, {size_text(outcome.bytes)}; see {receipts}.")
    ended = summary | outcome.counts() | {"applied": True, "receipts": str(receipts)}
    listing = result_listing("SnapshotCleaning", plan.source(), CleanedFilesRow, outcome.rows(), ended)
    return view.end(listing, outcome, plan.findings())


def _amount(summary: Document) -> str:
    snapshots, segments = counted(summary["snapshots"], "snapshot"), counted(summary["segments"], "segment")
    left_over = counted(summary["leftOver"], "left-over file")
    return f"{snapshots}, {segments} and {left_over} ({size_text(summary['bytes'])})"


def _sentence(summary: Document) -> str:
    return f"To remove: {_amount(summary)}. {size_text(summary['bytesKept'])} stays."
