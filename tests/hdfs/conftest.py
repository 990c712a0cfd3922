"""HDFS, and folders there."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from tests.rigs.availability import rig_unavailable
from tests.rigs.hdfs import HdfsCluster
from tests.rigs.prerequisites import RigMissing

_numbers = count()


@pytest.fixture(scope="session")
def hdfs_cluster() -> Iterator[HdfsCluster]:
    """Hadoop's own mini cluster."""
    try:
        cluster = HdfsCluster()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with cluster:
        yield cluster


@pytest.fixture
def new_url(hdfs_cluster: HdfsCluster) -> Callable[[], str]:
    """Makes a folder of the cluster, each time another."""

    def url() -> str:
        folder = f"/stores/{next(_numbers)}"
        hdfs_cluster.ask("PUT", folder, "MKDIRS")
        return f"hdfs://cluster:8020{folder}"

    return url


@pytest.fixture
def reached(hdfs_cluster: HdfsCluster) -> dict[str, str]:
    """How the cluster is reached: the namenode on standby first."""
    return {"namenode": f"{hdfs_cluster.standby},{hdfs_cluster.active}", "user": "kafka"}
