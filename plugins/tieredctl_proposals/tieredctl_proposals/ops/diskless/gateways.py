"""Produce gateways of a cluster as rows, with what they do to the number of commit calls (KIP-1164)."""

from __future__ import annotations

from collections.abc import Iterator

from tieredctl.ops.documents import Document
from tieredctl_proposals.coordinator.gateways import Gateways, coordinators_per_gateway, gateways_per_coordinator


def gateway_rows(placed: Gateways) -> Iterator[Document]:
    """A row for each broker: the coordinators on it, those that it is a gateway for, and a file's commit calls."""
    on: dict[int, list[int]] = {broker: [] for broker in placed.coordinators}
    for coordinator, host in sorted(placed.deployment.hosts.items()):
        on[host].append(coordinator)
    for broker, coordinators in placed.coordinators.items():
        yield {
            "broker": broker,
            "rack": placed.deployment.racks[broker],
            "coordinators": on[broker],
            "gatewayFor": list(coordinators),
            "commitCalls": len(placed.committed_to(broker)),
            "networkCalls": placed.network_calls(broker),
        }


def gateway_summary(placed: Gateways) -> Document:
    """How many gateways there are, and the most commit calls that a file takes, step by step of the KIP's section:
    without gateways, with them, where those of coordinators on one broker are on one broker too, and where a call to
    the own broker does not count."""
    racks, hosts = placed.deployment.racks, placed.deployment.hosts
    numbers = (len(racks), len(hosts), len(set(racks.values())))
    with_coordinators = len(set(hosts.values()))
    each = coordinators_per_gateway(*numbers)
    return {
        "brokers": numbers[0],
        "racks": numbers[2],
        "coordinators": numbers[1],
        "gatewaysPerRack": gateways_per_coordinator(*numbers),
        "coordinatorsPerGateway": max(map(len, placed.coordinators.values())),
        "saturatedAt": numbers[1] * numbers[2],
        "mostCommitCalls": {
            "withoutGateways": with_coordinators,
            "withGateways": min(with_coordinators, each),
            "coLocated": max(len(placed.committed_to(broker)) for broker in racks),
            "overTheNetwork": max(map(placed.network_calls, racks)),
        },
    }
