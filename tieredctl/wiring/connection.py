"""`doctor connect`: a connection tried step by step, and what its user may do."""

from __future__ import annotations

from tieredctl.kafka.connection_check import check_connection
from tieredctl.model.named_cluster import demand_named_cluster
from tieredctl.ports.connection_steps import ConnectionReport
from tieredctl.wiring.places import ClusterPlace


def connection_report(place: ClusterPlace) -> ConnectionReport:
    """What was tried. Raises TieredctlError for properties and addresses that cannot be used, and for another cluster
    than the one that was named."""
    report = check_connection(place.bootstrap_server, place.command_config)
    if report.allowed is not None:
        demand_named_cluster(report.cluster_id)
    return report
