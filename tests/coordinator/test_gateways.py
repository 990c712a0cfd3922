"""KIP-1164, "Reducing multi-DC commit operations": its scenarios, its formula, and what a placement keeps to."""

from __future__ import annotations

from collections import Counter
from itertools import product
from random import Random

from hypothesis import given
from hypothesis import strategies as st
from tieredctl_proposals.coordinator.gateways import (
    Deployment,
    Gateways,
    coordinators_per_gateway,
    gateways_per_coordinator,
    placed_gateways,
)

SCENARIOS = {3: (1, 12, 3), 6: (1, 6, 3), 12: (1, 3, 3), 24: (1, 2, 2), 36: (1, 1, 1), 108: (3, 1, 1)}
"""Those of the KIP, all of which have 3 racks and 12 coordinators, by brokers: gateways for a coordinator in a rack,
coordinators of a gateway, and commit calls of a file to other brokers or the own one.

The third says up to n_brokers, but who is a gateway for 3 coordinators calls no more than 3 brokers. The fourth rounds
its 1.5 up to 2, which is the most and not what each of them has. The sixth divides by 18 brokers: that would be 6
coordinators for each gateway, not 1, but it has 108."""


def test_the_scenarios_of_the_proposal() -> None:
    for brokers, (gateways, coordinators, calls) in SCENARIOS.items():
        placed = placed_gateways(Deployment.even(brokers, racks=3, coordinators=12))

        assert gateways_per_coordinator(brokers, 12, 3) == gateways, brokers
        assert coordinators_per_gateway(brokers, 12, 3) == coordinators, brokers
        assert max(len(held) for held in placed.coordinators.values()) == coordinators, brokers
        assert all(len(placed.of(one, rack)) == gateways for one, rack in product(range(12), "012")), brokers
        assert max(len(placed.committed_to(broker)) for broker in range(brokers)) == calls, brokers


def test_scenario_4_half_of_24_brokers_are_gateways_for_2_and_half_for_1() -> None:
    placed = placed_gateways(Deployment.even(24, 3, 12))

    assert Counter(len(held) for held in placed.coordinators.values()) == {1: 12, 2: 12}


def test_the_number_of_gateways_is_rounded_down_so_that_none_gets_a_second_coordinator() -> None:
    """From the saturation point on, a broker is a gateway for one coordinator at most."""
    for brokers, gateways in ((35, 1), (36, 1), (71, 1), (72, 2), (108, 3), (1, 1)):
        assert gateways_per_coordinator(brokers, 12, 3) == gateways, brokers
    for brokers in (36, 37, 60, 72, 100, 108):
        placed = placed_gateways(Deployment.even(brokers, 3, 12))
        assert max(len(held) for held in placed.coordinators.values()) == 1, brokers


def test_co_location_of_gateways_mirrors_that_of_coordinators() -> None:
    placed = placed_gateways(Deployment.even(6, racks=3, coordinators=12))

    assert [placed.of(0, rack) for rack in "012"] == [placed.of(6, rack) for rack in "012"]
    assert placed.deployment.hosts[0] == placed.deployment.hosts[6] == 0


def test_a_coordinators_own_broker_is_its_gateway_so_that_the_bound_is_one_less() -> None:
    placed = placed_gateways(Deployment.even(12, racks=3, coordinators=12))

    assert all(one in placed.coordinators[one] for one in range(12))
    assert {placed.network_calls(broker) for broker in range(12)} == {2}


def test_in_one_rack_the_bound_of_racks_minus_one_does_not_hold() -> None:
    """It would be 0, but a gateway that has no coordinator itself has to call the one that has."""
    placed = placed_gateways(Deployment.even(24, racks=1, coordinators=12))

    assert {placed.network_calls(broker) for broker in range(12)} == {0}
    assert {placed.network_calls(broker) for broker in range(12, 24)} == {1}


def test_racks_of_other_sizes_do_not_keep_to_the_bound() -> None:
    """The only broker of a rack is the gateway for all: it commits to as many brokers as have coordinators."""
    racks = {0: "a"} | dict.fromkeys(range(1, 9), "b")

    placed = placed_gateways(Deployment(racks, {one: one for one in range(9)}))

    assert placed.network_calls(0) == 8
    assert max(placed.network_calls(broker) for broker in range(1, 9)) == 1


@st.composite
def deployments(draw: st.DrawFn) -> Deployment:
    """Any racks and any leaders."""
    brokers = draw(st.lists(st.integers(0, 200), min_size=1, max_size=40, unique=True))
    racks = draw(st.integers(1, 5))
    places = {broker: str(draw(st.integers(0, racks - 1))) for broker in brokers}
    hosts = draw(st.lists(st.sampled_from(brokers), max_size=40))
    return Deployment(places, dict(enumerate(hosts)))


@given(deployments())
def test_every_coordinator_has_a_gateway_in_every_rack_and_its_own_broker_commits_to_itself(
    deployment: Deployment,
) -> None:
    placed = placed_gateways(deployment)

    assert placed.coordinators.keys() == deployment.racks.keys()
    for coordinator, host in deployment.hosts.items():
        assert all(placed.of(coordinator, rack) for rack in set(deployment.racks.values()))
        assert host in placed.committed_to(host)


@given(deployments())
def test_brokers_of_a_rack_are_called_upon_evenly(deployment: Deployment) -> None:
    placed = placed_gateways(deployment)
    groups = len(set(deployment.hosts.values()))

    for rack in set(deployment.racks.values()):
        brokers = [broker for broker, place in deployment.racks.items() if place == rack]
        committed = [len(placed.committed_to(broker)) for broker in brokers]
        assert max(committed) - min(committed) <= 1
        assert max(committed) == -(-groups // len(brokers))


@given(deployments(), st.randoms(use_true_random=False))
def test_every_broker_computes_the_same_whatever_order_it_knows_the_others_in(
    deployment: Deployment, order: Random
) -> None:
    racks, hosts = list(deployment.racks.items()), list(deployment.hosts.items())
    order.shuffle(racks)
    order.shuffle(hosts)

    placed = placed_gateways(Deployment(dict(racks), dict(hosts)))

    assert list(placed.coordinators.items()) == list(placed_gateways(deployment).coordinators.items())


@given(st.integers(2, 5), st.integers(1, 9), st.data())
def test_in_racks_of_one_size_commits_to_other_brokers_stay_below_the_number_of_racks(
    racks: int, size: int, data: st.DataObject
) -> None:
    brokers = racks * size
    hosts = data.draw(st.lists(st.integers(0, brokers - 1), max_size=3 * brokers))

    placed = placed_gateways(Deployment(Deployment.even(brokers, racks, 0).racks, dict(enumerate(hosts))))

    assert max(map(placed.network_calls, range(brokers))) <= racks - 1


def test_without_coordinators_there_are_no_gateways() -> None:
    assert placed_gateways(Deployment.even(3, 3, 0)) == Gateways(Deployment.even(3, 3, 0), {0: (), 1: (), 2: ()})
