"""A connection to a cluster, tried step by step: each bootstrap server, then the brokers that it names.

A login that one server refused is not tried with another: no account is locked by repetition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from tieredctl.installation import missing_extra
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.client_libraries import load_client_libraries
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds
from tieredctl.kafka.connection_attempt import ConnectionAttempt
from tieredctl.kafka.connection_settings import server_addresses
from tieredctl.kafka.properties import Properties
from tieredctl.model.counted import counted
from tieredctl.ports.connection_steps import ConnectionReport, ConnectionStep, Step, StepOutcome
from tieredctl.process.progress import note

_AT_ONCE = 16
_SECONDS_OF_A_BROKER = 5.0
_ADVERTISED_HINT = "Correct advertised.listeners of that broker, or this machine's DNS and firewall."


def check_connection(bootstrap_server: str, command_config: Path | None) -> ConnectionReport:
    """Tries all of it, and changes nothing. Raises TieredctlError for properties and addresses that cannot be used."""
    _load_library()
    properties = read_client_properties(command_config)
    seconds = timeout_seconds(properties, REQUEST_TIMEOUT_SECONDS)
    addresses = server_addresses(bootstrap_server)
    attempts: list[ConnectionAttempt] = []
    for host, port in addresses:
        refused = next((one.server for one in attempts if one.is_refused), None)
        attempt = ConnectionAttempt(host, port, properties)
        attempt.run(seconds, None if refused is None else f"{refused} refused it already")
        attempts.append(attempt)
    steps = [step for one in attempts for step in one.steps()]
    accepted = next((one for one in attempts if one.cluster is not None), None)
    if accepted is None:
        return ConnectionReport(steps, [one.error for one in attempts if one.error is not None])
    named = [_Broker(one.node_id, one.host, one.port) for one in accepted.cluster.brokers]
    attempt_at = dict(zip(addresses, attempts, strict=True))
    steps += _of_brokers(accepted.server, named, attempt_at, properties, min(seconds, _SECONDS_OF_A_BROKER))
    return ConnectionReport(steps, (), accepted.cluster.cluster_id, accepted.server, accepted.allowed)


class _Broker(NamedTuple):
    node_id: int
    host: str
    port: int

    @property
    def address(self) -> tuple[str, int]:
        return self.host, self.port


def _of_brokers(
    server: str,
    named: list[_Broker],
    attempt_at: Mapping[tuple[str, int], ConnectionAttempt],
    properties: Properties,
    seconds: float,
) -> Iterator[ConnectionStep]:
    """Whether clients reach the brokers where these say that they are; up to a login, which is tried at bootstrap
    servers alone: `attempt_at` has these by address."""

    def tried(broker: _Broker) -> ConnectionAttempt:
        attempt = ConnectionAttempt(broker.host, broker.port, properties)
        attempt.run(seconds, "only a bootstrap server is signed in to")
        return attempt

    unreached = [
        _unreached(broker, attempt_at[broker.address])
        for broker in named
        if _has_failed(attempt_at.get(broker.address))
    ]
    others = [one for one in named if one.address not in attempt_at]
    for count, (broker, attempt) in enumerate(zip(others, _at_once(tried, others), strict=True), 1):
        note("brokers tried", count, len(others))
        if _has_failed(attempt):
            unreached.append(_unreached(broker, attempt))
        yield from (step for step in attempt.steps() if step.step is not attempt.failed_at and _is_told(step))
    yield from unreached
    if not unreached:
        ids = sorted(one.node_id for one in named)
        observation = f"{counted(len(named), 'broker')} reached at the advertised address" + "es" * (len(named) != 1)
        yield ConnectionStep(server, Step.BROKERS, StepOutcome.OK, observation, None, {"brokerIds": ids})


def _has_failed(attempt: ConnectionAttempt | None) -> bool:
    return attempt is not None and attempt.error is not None


def _is_told(step: ConnectionStep) -> bool:
    """Whether a step of an advertised broker is told: its other steps are as those of a bootstrap server."""
    return step.outcome not in (StepOutcome.OK, StepOutcome.NOT_TRIED)


def _unreached(broker: _Broker, attempt: ConnectionAttempt) -> ConnectionStep:
    assert attempt.error is not None
    failure = f"broker {broker.node_id} is advertised there, and {attempt.failed_at} failed: {attempt.error.message}"
    evidence = {"brokerId": broker.node_id, "failedStep": attempt.failed_at}
    return ConnectionStep(attempt.server, Step.BROKERS, StepOutcome.FAILED, failure, _ADVERTISED_HINT, evidence)


def _at_once(try_one: Callable[[_Broker], ConnectionAttempt], brokers: list[_Broker]) -> Iterator[ConnectionAttempt]:
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(try_one, brokers)


def _load_library() -> None:
    load_client_libraries()
    try:
        import cryptography  # noqa: F401
        import kafka  # noqa: F401
    except ImportError as error:
        raise missing_extra(f"This needs {error.name}, which is not installed.", "kafka") from None
