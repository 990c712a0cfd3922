"""Log directories beside a live cluster: those of another cluster say nothing of it."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.tiering.model_cluster import CLUSTER_ID, NOW_MS, ModelCluster
from tests.wal.local_partitions import CLUSTER_ID as OTHER_CLUSTER_ID
from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock
from tieredctl.wiring.doctor import diagnose_cluster
from tieredctl.wiring.places import ClusterPlace, MetadataPlace


@pytest.fixture
def other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A log directory of another cluster than the live one."""
    made = ModelCluster()
    monkeypatch.setattr(ClusterPlace, "open", lambda _: nullcontext(made))
    monkeypatch.setattr(ClusterPlace, "open_with_groups", lambda _: nullcontext(made))
    monkeypatch.setattr(MetadataPlace, "open_source", lambda _: made.source())
    return write_partition(tmp_path, ORDERS[0], [batch(0)]).parent


def test_doctor_refuses_them(other: Path) -> None:
    with pytest.raises(TieredctlError) as refused:
        diagnose_cluster(ClusterPlace("model:9092"), Clock(NOW_MS, 1), log_dirs=[other])

    assert refused.value.code is ErrorCode.ANOTHER_CLUSTER
    assert refused.value.message == f"{other} is of cluster {OTHER_CLUSTER_ID}, not {CLUSTER_ID}."
