"""`diskless gateways` on the command line."""

from __future__ import annotations

from collections.abc import Mapping

from tests.cli.command_line import Tieredctl

NUMBERS = {"--brokers": "24", "--racks": "3", "--coordinators": "12"}


def gateways(numbers: Mapping[str, str]) -> tuple[str, ...]:
    return ("diskless", "gateways", *(word for number in numbers.items() for word in number))


SCENARIO_4 = gateways(NUMBERS)


def test_the_table_has_a_row_for_each_broker(tieredctl: Tieredctl) -> None:
    outcome = tieredctl(*SCENARIO_4)

    heading, first, *others = outcome.out.splitlines()
    assert outcome.exit_code == 0
    assert heading.split() == ["BROKER", "RACK", "COORDINATORS", "GATEWAY-FOR", "COMMIT-CALLS", "NETWORK-CALLS"]
    assert first.split() == ["0", "0", "0", "0", "7", "2", "1"]
    assert len(others) == 23
    for output in ("wide", "jsonl", "yaml", "csv"):
        other = tieredctl(*SCENARIO_4, "-o", output)
        assert (other.exit_code, len(other.out.splitlines()) >= 24) == (0, True), output


def test_long_lists_are_shortened_unless_the_table_is_wide(tieredctl: Tieredctl) -> None:
    words = gateways(NUMBERS | {"--brokers": "3"})

    assert "0 1 2 3 4 5 6 7 and 4 more" in tieredctl(*words).out
    assert "0 1 2 3 4 5 6 7 8 9 10 11" in tieredctl(*words, "-o", "wide").out


def test_numbers_that_make_no_cluster_are_refused_and_the_most_is_placed(tieredctl: Tieredctl) -> None:
    for name, number in (
        ("--brokers", "0"),
        ("--brokers", "many"),
        ("--racks", "-1"),
        ("--racks", "25"),
        ("--coordinators", "99999999999999999999"),
    ):
        assert tieredctl(*gateways(NUMBERS | {name: number}))[:2] == (2, ""), (name, number)
    most = gateways({"--brokers": "10000", "--racks": "100", "--coordinators": "10000"})
    assert tieredctl(*most).exit_code == 0


def test_the_document_has_the_bounds_of_each_step(tieredctl: Tieredctl) -> None:
    document = tieredctl(*SCENARIO_4, "-o", "json").document()

    summary = document["summary"]
    assert document["kind"] == "DisklessGateways"
    assert (summary["gatewaysPerRack"], summary["coordinatorsPerGateway"], summary["saturatedAt"]) == (1, 2, 36)
    assert list(summary["mostCommitCalls"].values()) == [12, 2, 2, 1]
    assert document["items"][0] == {
        "broker": 0,
        "rack": "0",
        "coordinators": [0],
        "gatewayFor": [0, 7],
        "commitCalls": 2,
        "networkCalls": 1,
    }
