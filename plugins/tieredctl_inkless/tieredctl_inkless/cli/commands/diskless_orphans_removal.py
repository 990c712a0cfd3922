"""`tieredctl diskless orphans plan`, `apply` and `purge`: what brokers left in the bucket, removed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated
from uuid import uuid4

import typer

from tieredctl.cli.arguments import clock_ms, given_path, pairs
from tieredctl.cli.commands.removal_application import apply_plan, chosen_plan
from tieredctl.cli.commands.removal_plan import show_plan
from tieredctl.cli.commands.removal_purge import age_in_quarantine_ms, purge_copies
from tieredctl.cli.options import ClusterId, MinAge, StoreOptions
from tieredctl.cli.removal_options import (
    AllowYoung,
    ApplyLimitOptions,
    ApplyOptions,
    PlanSizeOptions,
    PurgeOptions,
)
from tieredctl.cli.view import ProgressView
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.ownership import DisklessCause
from tieredctl.model.quantities import duration_ms
from tieredctl.wiring.places import StorePlace
from tieredctl_inkless.cli.diskless_places import ControlPlaneUri, DisklessOptions

_CLUSTER_HINT = "Give --cluster-id, as `kafka-cluster cluster-id` prints it."
OwnClusterId = Annotated[
    str | None, typer.Option(metavar="ID", help="The cluster's id, which the control plane does not know.")
]


def plan(
    *,
    to: Annotated[Path, typer.Option("--to", metavar="PLAN", parser=given_path, help="Write the plan here.")],
    places: DisklessOptions,
    cause: Annotated[
        list[DisklessCause] | None, typer.Option(help="Only objects of this cause; repeat it for several.")
    ] = None,
    min_age: MinAge = "24h",
    allow_young: AllowYoung = False,
    cluster_id: OwnClusterId = None,
    size: PlanSizeOptions,
    view: ProgressView,
) -> ExitCode:
    """Write a plan to remove what no file of the control plane needs. Changes nothing in the bucket.

    Files whose batches are gone without being marked for deletion are damage, and are not planned.
    For example: tieredctl diskless orphans plan --to PLAN --control-plane service=inkless --store s3://bucket
    --cluster-id ID
    """
    from tieredctl.ops.orphan_removal.limits import PlanOptions
    from tieredctl_inkless.wiring.diskless_removal import write_diskless_plan

    options = PlanOptions(
        plan_id=uuid4().hex,
        mode=size.mode,
        cluster_id=_named_cluster(cluster_id),
        valid_for_ms=duration_ms(size.valid_for),
        max_percent=size.max_percent,
        max_missing=size.max_missing,
        max_objects=size.max_objects,
        max_bytes=size.max_bytes,
        causes=frozenset(cause or DisklessCause),
        allow_young=allow_young,
    )
    written = write_diskless_plan(
        *(places.place(), places.bucket(), duration_ms(min_age), options, to, clock_ms),
        force=size.force,
        dry_run=size.dry_run,
    )
    if left := written.planning.not_ours:
        are = "object is left: its file" if left == 1 else "objects are left: their files"
        has = "has" if left == 1 else "have"
        view.say(f"{left} orphaned {are} {has} lost all batches without being marked. See `tieredctl diskless verify`.")
    command = "diskless orphans apply"
    planned, totals = written.planning.planned, written.totals
    return show_plan(view, written.source, planned, totals, to, command, dry_run=size.dry_run)


def apply(
    *,
    plan: Annotated[
        Path, typer.Argument(metavar="PLAN", parser=given_path, help="The file that `diskless orphans plan` wrote.")
    ],
    control_plane: ControlPlaneUri = None,
    store_option: StoreOptions = None,
    limits: ApplyLimitOptions,
    cluster_id: ClusterId = None,
    how: ApplyOptions,
    view: ProgressView,
) -> ExitCode:
    """Apply a plan, or resume an interrupted one: the control plane is asked again before each removal.

    The plan is not trusted: only objects that are orphaned now are removed. Exit 5 if something was skipped, failed, or
    stopped the run.
    For example: tieredctl diskless orphans apply PLAN --control-plane service=inkless
    """
    from tieredctl_inkless.wiring.diskless_removal import DisklessOwners

    chosen = chosen_plan(plan, limits, how, view)
    place = DisklessOptions(control_plane).place()
    store = StorePlace(chosen.header.store, pairs("--store-option", store_option))
    return apply_plan(chosen, store, DisklessOwners(place), how, cluster_id, clock_ms, view)


def purge(
    *,
    how: PurgeOptions,
    places: DisklessOptions,
    cluster_id: OwnClusterId = None,
    view: ProgressView,
) -> ExitCode:
    """Permanently delete old quarantined objects that are still orphaned (exit 4 if some are not).

    For example: tieredctl diskless orphans purge --older-than 14d --control-plane service=inkless --store s3://bucket
    --cluster-id ID
    """
    from tieredctl_inkless.wiring.diskless_removal import diskless_purge

    older_than_ms = age_in_quarantine_ms(how)
    named = _named_cluster(cluster_id)
    purge = diskless_purge(
        *(places.bucket(), places.place()),
        cluster_id=named,
        older_than_ms=older_than_ms,
        max_percent=how.max_percent,
        clock_ms=clock_ms,
    )
    return purge_copies(purge, how, named, view)


def _named_cluster(cluster_id: str | None) -> str:
    if cluster_id is None:
        message = "The control plane does not say which cluster it belongs to."
        raise TieredctlError(ErrorCode.USAGE, message, hint=_CLUSTER_HINT)
    return cluster_id
