"""`diskless orphans plan`, `apply` and `purge`: each opens what it needs, and asks the control plane once more."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from tieredctl.config.plan_key import key_for_plan
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.removal import PlanTotals
from tieredctl.ops.documents import Document
from tieredctl.ops.guards.store_clock import demand_common_time
from tieredctl.ops.orphan_removal.limits import PlanOptions, demand_age
from tieredctl.ops.orphan_removal.plan_file import PlanFile, plan_if_any
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.orphan_removal import PlanApplication, QuarantinePurge
from tieredctl.wiring.places import StorePlace
from tieredctl_inkless.ops.diskless.bucket import read_bucket
from tieredctl_inkless.ops.diskless.fresh_control_plane import FreshControlPlane
from tieredctl_inkless.ops.diskless.orphan_plan import DisklessPlanning
from tieredctl_inkless.wiring.control_plane import ControlPlanePlace

_NUMBER = re.compile(r"[0-9]{1,20}")


class WrittenDisklessPlan(NamedTuple):
    """A plan that was written."""

    planning: DisklessPlanning
    totals: PlanTotals
    source: Document
    """Which control plane, which bucket."""


def write_diskless_plan(
    place: ControlPlanePlace,
    bucket: StorePlace,
    min_age_ms: int,
    plan: PlanOptions,
    to: Path,
    clock_ms: Callable[[], int],
    *,
    force: bool = False,
    dry_run: bool = False,
) -> WrittenDisklessPlan:
    """Lists the bucket, then reads the control plane, and writes a plan to the file `to`, signed with the user's key; a
    failure leaves nothing, nor does a dry run. `force` replaces an existing file.

    Raises TieredctlError if anything speaks against removing.
    """
    demand_age(min_age_ms, allow_young=plan.allow_young)
    control_plane, store = place.open(), bucket.open_store()
    demand_common_time(store, clock_ms)
    source = dict(control_plane.describe()) | {"store": store.url}
    key = key_for_plan(dry_run=dry_run)
    with (
        read_bucket(store, control_plane) as contents,
        plan_if_any(to, key, force=force, dry_run=dry_run) as writer,
    ):
        fresh = FreshControlPlane(control_plane, min_age_ms, clock_ms)
        planning = DisklessPlanning(contents, fresh, writer, plan, clock_ms())
        return WrittenDisklessPlan(planning, planning.run(), source)


@dataclass(frozen=True, slots=True)
class DisklessOwners:
    """The control plane of diskless topics, which has to be the one that the plan was made by."""

    control_plane: ControlPlanePlace

    @contextmanager
    def opened(self, _store: ObjectStore, application: PlanApplication) -> Iterator[FreshControlPlane]:
        plan = application.plan
        min_age_ms, clock_ms = application.limits.min_age_ms, application.clock_ms
        database, written = known_database(plan)
        yield FreshControlPlane(self.control_plane.open(), min_age_ms, clock_ms, database, written)


def known_database(plan: PlanFile) -> tuple[str, int]:
    """The database that a plan was made by, and how many bytes it had written to its log. Raises TieredctlError if the
    plan names none."""
    named = plan.header.control_plane
    if named is None:
        message = f"{plan.path} is not a plan for objects of diskless topics."
        raise TieredctlError(ErrorCode.USAGE, message, hint="Use `tieredctl orphans apply`.")
    database, _, written = named.rpartition("/")
    if not _NUMBER.fullmatch(written):
        raise TieredctlError(ErrorCode.PLAN_ALTERED, f"{plan.path} names no control plane: {named!r}.")
    return database, int(written)


def diskless_purge(
    store: StorePlace,
    place: ControlPlanePlace,
    *,
    cluster_id: str,
    older_than_ms: int,
    max_percent: float,
    clock_ms: Callable[[], int],
) -> QuarantinePurge:
    """The purge of a bucket by its control plane. Opens neither yet."""

    @contextmanager
    def opened(_store: ObjectStore) -> Iterator[FreshControlPlane]:
        yield FreshControlPlane(place.open(), 0, clock_ms)

    return QuarantinePurge(store, cluster_id, older_than_ms, max_percent, clock_ms, opened)
