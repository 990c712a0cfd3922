"""The cluster that the user named: whatever turns out to belong to another one is refused, as soon as that is known."""

from __future__ import annotations

from contextvars import ContextVar

from tieredctl.errors import ErrorCode, TieredctlError

_named_cluster: ContextVar[str | None] = ContextVar("named_cluster", default=None)


def name_cluster(cluster_id: str) -> str:
    """Has `demand_named_cluster` refuse any other cluster for as long as this command runs."""
    _named_cluster.set(cluster_id)
    return cluster_id


def demand_named_cluster(cluster_id: str | None) -> None:
    """Raises TieredctlError `another-cluster` if a cluster was named and this is another. None is not known."""
    demand_same_cluster(cluster_id, _named_cluster.get())


def demand_same_cluster(cluster_id: str | None, named: str | None) -> None:
    """Raises TieredctlError `another-cluster` if two ids that should be of the same cluster differ."""
    if None not in (cluster_id, named) and named != cluster_id:
        raise TieredctlError(ErrorCode.ANOTHER_CLUSTER, f"This is cluster {cluster_id}, not {named}.")
