"""Produce gateways: to which brokers of its rack a producer sends what a coordinator manages (KIP-1164, "Reducing
multi-DC commit operations").

Every broker computes the same placement from the same metadata, so it depends on nothing but what it is given.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice


@dataclass(frozen=True, slots=True)
class Deployment:
    """Where brokers are, and which of them each coordinator is on."""

    racks: Mapping[int, str]
    """Each broker's rack."""
    hosts: Mapping[int, int]
    """Each coordinator's broker: the leader of its partition of __diskless_metadata."""

    @classmethod
    def even(cls, brokers: int, racks: int, coordinators: int) -> Deployment:
        """Brokers 0, 1, … spread over racks 0, 1, … in turn, and coordinators over brokers."""
        places = {broker: str(broker % racks) for broker in range(brokers)}
        return cls(places, {coordinator: coordinator % brokers for coordinator in range(coordinators)})


@dataclass(frozen=True, slots=True)
class Gateways:
    """A placement: the coordinators that each broker is a produce gateway for, in ascending order."""

    deployment: Deployment
    coordinators: Mapping[int, tuple[int, ...]]

    def committed_to(self, broker: int) -> frozenset[int]:
        """The brokers with which it commits a file that has batches for all of its coordinators."""
        return frozenset(self.deployment.hosts[coordinator] for coordinator in self.coordinators[broker])

    def network_calls(self, broker: int) -> int:
        """At most how many commit calls a file takes that go to another broker: its own takes none."""
        return len(self.committed_to(broker) - {broker})

    def of(self, coordinator: int, rack: str) -> tuple[int, ...]:
        """A coordinator's gateways in a rack, in ascending order."""
        places = self.deployment.racks
        brokers = sorted(broker for broker, place in places.items() if place == rack)
        return tuple(broker for broker in brokers if coordinator in self.coordinators[broker])


def gateways_per_coordinator(brokers: int, coordinators: int, racks: int) -> int:
    """The KIP's `max(1, n_brokers / n_dcs / n_racks)`: in each rack. What is left over makes no broker a gateway for
    a second coordinator, so it is rounded down."""
    return max(1, brokers // (coordinators * racks))


def coordinators_per_gateway(brokers: int, coordinators: int, racks: int) -> int:
    """How many coordinators a broker is a gateway for at most, in racks of the same size."""
    return -(-coordinators * gateways_per_coordinator(brokers, coordinators, racks) * racks // brokers)


def placed_gateways(deployment: Deployment) -> Gateways:
    """Gateways of every coordinator in every rack.

    While a rack has fewer brokers than there are brokers with coordinators, coordinators of one broker have their
    gateway on one broker ("co-location"), and each gateway has as many of these groups as any other, or one less. Else
    no gateway commits to more than one broker. A broker is always a gateway for coordinators of its own, if it has any.
    """
    groups = _groups(deployment.hosts)
    racks = _brokers_by_rack(deployment.racks)
    most = gateways_per_coordinator(len(deployment.racks), len(deployment.hosts), len(racks)) if groups else 0
    placed: dict[int, tuple[int, ...]] = {}
    for brokers in racks.values():
        placed |= dict.fromkeys(brokers, ())
        if not groups:
            continue
        if len(brokers) < len(groups):
            placed |= _co_located(brokers, groups)
        else:
            placed |= _divided(brokers, groups, max(1, min(most, len(brokers) // len(deployment.hosts))))
    return Gateways(deployment, dict(sorted(placed.items())))


def _groups(hosts: Mapping[int, int]) -> dict[int, list[int]]:
    """The coordinators of each broker that has any."""
    groups: dict[int, list[int]] = {}
    for coordinator, host in sorted(hosts.items()):
        groups.setdefault(host, []).append(coordinator)
    return dict(sorted(groups.items()))


def _brokers_by_rack(racks: Mapping[int, str]) -> dict[str, list[int]]:
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(racks.items()):
        by_rack.setdefault(rack, []).append(broker)
    return by_rack


def _co_located(brokers: Sequence[int], groups: Mapping[int, list[int]]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Several whole groups on each broker of a rack.

    Brokers with a group of their own, which takes no network call, get the larger shares: so that none makes more than
    (racks - 1) calls where racks have the same size.
    """
    share, rest = divmod(len(groups), len(brokers))
    by_claim = sorted(brokers, key=lambda broker: broker not in groups)
    room = {broker: share + (place < rest) - (broker in groups) for place, broker in enumerate(by_claim)}
    taken = {broker: list(groups.get(broker, ())) for broker in brokers}
    least = [(len(taken[broker]), broker) for broker in brokers if room[broker]]
    heapify(least)
    remote = sorted((host for host in groups if host not in taken), key=lambda host: (-len(groups[host]), host))
    for host in remote:
        _, chosen = heappop(least)
        taken[chosen] += groups[host]
        room[chosen] -= 1
        if room[chosen]:
            heappush(least, (len(taken[chosen]), chosen))
    for broker, coordinators in taken.items():
        yield broker, tuple(sorted(coordinators))


def _divided(
    brokers: Sequence[int], groups: Mapping[int, list[int]], gateways: int
) -> Iterator[tuple[int, tuple[int, ...]]]:
    """At most one group, or a part of one, on each broker of a rack; each coordinator on so many of them."""
    claims = {host: coordinators * gateways for host, coordinators in groups.items()}
    holders = {host: [host] if host in brokers else [] for host in groups}
    others = (broker for broker in brokers if broker not in groups)
    for host, parts in _parts({host: len(claim) for host, claim in claims.items()}, len(brokers)).items():
        holders[host] += islice(others, parts - len(holders[host]))
        share, rest = divmod(len(claims[host]), parts)
        first = 0
        for place, broker in enumerate(holders[host]):
            after = first + share + (place < rest)
            yield broker, tuple(sorted(claims[host][first:after]))
            first = after


def _parts(claims: Mapping[int, int], brokers: int) -> dict[int, int]:
    """Over how many brokers each claim is divided, so that the largest part is as small as it can be."""
    parts = dict.fromkeys(claims, 1)
    largest = [(-claim, host) for host, claim in claims.items()]
    heapify(largest)
    for _ in range(min(brokers, sum(claims.values())) - len(claims)):
        _, host = heappop(largest)
        parts[host] += 1
        heappush(largest, (-claims[host] // parts[host], host))
    return parts
