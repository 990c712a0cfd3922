"""A store in a folder that is unmounted while a plan is carried out, and mounted again."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from tests.cli.crashed_cluster import CLUSTER_ID, ORPHANS, CrashedClusterOnDisk, planned_keys
from tieredctl.cli.arguments import clock_ms
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_in
from tieredctl.model.removal import ReceiptsHeader
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES
from tieredctl.ops.guards.lease import LEASE_MS
from tieredctl.ops.guards.own_objects import LEASE_KEY
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.apply import RemovalOutcome
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.plan_file import read_plan
from tieredctl.ops.orphan_removal.receipts import ReceiptFile
from tieredctl.ops.orphan_removal.use import PlanUser
from tieredctl.storage.file import FileStore

AT_ONCE = 10


def apply_in_batches(cluster: CrashedClusterOnDisk, before_each: Callable[[int], None]) -> RemovalOutcome:
    plan, store = read_plan(cluster.plan_file), FileStore(str(cluster.bucket))

    def open_receipts(header: ReceiptsHeader, _must_exist: bool) -> ReceiptFile:
        return ReceiptFile.begun(cluster.receipts_file, header)

    metadata = FreshMetadata(
        FollowedMetadata(partial(LogDirectories, [cluster.log_dir]), CLUSTER_ID),
        layout=layout_in(store, "aiven"),
        min_age_ms=plan.header.min_age_ms,
        topic_sources=NO_TOPIC_SOURCES,
        clock_ms=clock_ms,
    )
    limits = Limits(plan.header.min_age_ms, plan.header.max_percent)
    return PlanUser(
        plan, store, metadata, open_receipts, clock_ms, limits, pace=before_each, batch_objects=AT_ONCE
    ).run()


def let_the_lease_run_out(lease: Path) -> None:
    """What a few minutes would do to one that was never given back."""
    if lease.exists():
        earlier = lease.stat().st_mtime - LEASE_MS / 1_000
        os.utime(lease, (earlier, earlier))


@pytest.mark.parametrize("batches", [0, 1, 3])
def test_what_was_done_is_known_and_the_rest_is_done_later(
    planned: CrashedClusterOnDisk, tmp_path: Path, batches: int
) -> None:
    unmounted, begun = tmp_path / "unmounted", iter(range(batches))

    def unmount_behind_some(_objects: int) -> None:
        if next(begun, None) is None and planned.bucket.exists():
            planned.bucket.rename(unmounted)

    stopped = apply_in_batches(planned, unmount_behind_some)
    appeared_meanwhile = planned.bucket.exists()
    unmounted.rename(planned.bucket)
    let_the_lease_run_out(planned.bucket / LEASE_KEY)
    left = planned_keys(planned.plan_file) & set(planned.objects())
    resumed = planned.apply("-o", "json")

    assert stopped.stopped is not None
    assert (stopped.done, appeared_meanwhile) == (batches * AT_ONCE, False)
    assert len(left) == ORPHANS - stopped.done
    assert (resumed.exit_code, resumed.document()["summary"]["done"]) == (0, ORPHANS)
