"""What was put back is as old as it was before: nothing has to wait until it seems old enough again."""

from __future__ import annotations

from pathlib import Path

from tests.cli.command_line import Tieredctl
from tests.cli.crashed_cluster import AGED, CAPTURE, ENOUGH, LONG_AGO, crashed_cluster_on_disk, planned_keys, put


def test_a_file_that_was_put_back_has_its_time_and_mode(tieredctl: Tieredctl, captures: Path, tmp_path: Path) -> None:
    cluster = crashed_cluster_on_disk(tieredctl, captures / CAPTURE, tmp_path)
    for key, data in cluster.objects().items():
        put(cluster, key, data).chmod(0o640)
    cluster.plan(*ENOUGH, *AGED)
    planned = planned_keys(cluster.plan_file)

    applied, restored = cluster.apply(), cluster.restore()
    again = cluster.plan(*ENOUGH, *AGED, "--force")

    files = [cluster.bucket / key for key in planned]
    assert (applied.exit_code, restored.exit_code, again.exit_code) == (0, 0, 0)
    assert {(file.stat().st_mtime, file.stat().st_mode & 0o777) for file in files} == {(LONG_AGO, 0o640)}
    assert planned_keys(cluster.plan_file) == planned
