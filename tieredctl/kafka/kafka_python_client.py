"""A kafka-python client for requests that librdkafka lacks: configured by Kafka's client properties, with retries."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds, without_secrets
from tieredctl.kafka.connection_settings import kafka_python_settings
from tieredctl.kafka.properties import Properties
from tieredctl.kafka.server_connection import demand_connection
from tieredctl.kafka.tracing import traced_answer, traced_request

if TYPE_CHECKING:
    from kafka.errors import KafkaError

_Answer = TypeVar("_Answer")

TOPIC_DENIED, CLUSTER_DENIED = 29, 31
"""Kafka's codes of two errors of authorization."""

_TRIES_TO_BOOTSTRAP = 5
_SECONDS_BETWEEN_TRIES = 0.1
_LEAST_SECONDS_A_TRY = 1.0
_SECONDS_OF_A_CHECK = 5.0


def bootstrapped(bootstrap: Callable[[int], _Answer], settings: Mapping[str, Any], timeout_seconds: float) -> _Answer:
    """What `bootstrap` gives, which is told how many milliseconds it may take: several times, each twice as long as the
    one before, together as long as given. kafka-python asks one of the bootstrap servers, drawn at random, and waits
    for no other where this one hangs. Raises what the last try raises, and what is no timeout at once."""
    from kafka.errors import KafkaTimeoutError

    tries = _TRIES_TO_BOOTSTRAP if len(settings["bootstrap_servers"]) > 1 else 1
    milliseconds = timeout_seconds * 1000 / (2**tries - 1)
    for number in range(tries - 1):
        with suppress(KafkaTimeoutError):
            return bootstrap(int(milliseconds * 2**number))
    return bootstrap(int(milliseconds * 2 ** (tries - 1)))


class KafkaPythonClient:
    """Knows the cluster's brokers, and learns of changes as it is used. To be closed.

    Its event loop takes whatever is raised inside it for a failure of a request or connection, so it has a thread of
    its own: signals are handled in the main thread, where an interrupt ends the wait for an answer.
    """

    def __init__(self, bootstrap_server: str, properties: Properties, timeout_seconds: float) -> None:
        """Connects. Raises TieredctlError for unsupported properties, and where a server refuses or none answers;
        whatever kafka-python raises where none lists the brokers in time."""
        from kafka.net.manager import KafkaConnectionManager
        from kafka.net.selector import NetworkSelector

        settings = kafka_python_settings(bootstrap_server, properties)
        demand_connection(bootstrap_server, properties, timeout_seconds)
        self._properties = properties
        self._checked: set[int] = set()
        self._is_closed = False
        self._loop = NetworkSelector(**settings)
        self._connections = KafkaConnectionManager(
            self._loop, **settings, request_timeout_ms=int(timeout_seconds * 1000)
        )
        try:
            self._loop.start()
            with traced_request(bootstrap_server, "list brokers"):
                bootstrapped(self._connections.bootstrap, settings, timeout_seconds)
        except BaseException:
            self.close()
            raise

    @property
    def cluster_id(self) -> str | None:
        cluster_id: str | None = self._connections.cluster.cluster_id
        return cluster_id

    def broker_ids(self) -> Sequence[int]:
        """By the newest metadata that it has."""
        return sorted(broker.node_id for broker in self._connections.run(self._connections.cluster.brokers))

    def answer(self, node_id: int | None, request: Any, timeout_seconds: float, *, awaits_broker: bool = True) -> Any:
        """The answer of a broker; of any one, if none is given.

        Retries after temporary errors, for the time given: if any broker will do, with another one. Without
        `awaits_broker` it does not wait for an unreachable one: another may lead its partitions meanwhile. Raises other
        errors as kafka-python does, TieredctlError where the broker refuses this client, and ValueError once this is
        closed."""
        from kafka.errors import KafkaError

        if self._is_closed:
            raise ValueError("the client is closed")
        deadline = time.monotonic() + timeout_seconds
        a_try = timeout_seconds
        if node_id is None:
            a_try = max(_LEAST_SECONDS_A_TRY, timeout_seconds / max(1, len(self.broker_ids())))
        while True:
            try:
                broker = self._connections.run(self._connections.least_loaded_node) if node_id is None else node_id
                return self._answer_of(broker, request, min(a_try, max(0.1, deadline - time.monotonic())))
            except KafkaError as error:
                is_away = _is_away(error)
                if is_away and isinstance(broker, int):
                    self._demand_access(broker)
                if not (error.retriable or is_away) or time.monotonic() > deadline or (is_away and not awaits_broker):
                    raise
                self.hear_of_changes()

    def hear_of_changes(self) -> None:
        """Asks for the cluster's brokers again, which takes a moment."""
        self._connections.cluster.request_update()
        time.sleep(_SECONDS_BETWEEN_TRIES)

    def close(self) -> None:
        """Ends the connections."""
        self._is_closed = True
        self._loop.stop()
        self._connections.close()
        self._loop.close()

    def _answer_of(self, broker: int | str | None, request: Any, seconds: float) -> Any:
        async def answer() -> Any:
            sent = self._connections.send(request, node_id=broker)
            return await self._connections.wait_for(sent, seconds * 1000)

        return traced_answer(f"broker {broker}", request, lambda: self._connections.run(answer))

    def _demand_access(self, broker: int) -> None:
        """Checks once why a broker cannot be reached: one that refuses this client will keep refusing."""
        node = self._connections.run(self._connections.cluster.broker_metadata, broker)
        if node is None or broker in self._checked:
            return
        self._checked.add(broker)
        host = f"[{node.host}]" if ":" in node.host else node.host
        try:
            demand_connection(f"{host}:{node.port}", self._properties, _SECONDS_OF_A_CHECK, waits_for_restart=False)
        except TieredctlError as error:
            if error.code is not ErrorCode.BROKER_UNREACHABLE:
                raise


def _is_away(error: KafkaError) -> bool:
    """Whether there is no connection to the broker, or it no longer exists."""
    from kafka.errors import KafkaConnectionError, NodeNotReadyError, UnknownBrokerIdError

    return isinstance(error, KafkaConnectionError | NodeNotReadyError | UnknownBrokerIdError)


class PatientCluster:
    """Requests to any broker, to a given one, and to each; failures are TieredctlError. To be closed."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Connects. Raises TieredctlError where no broker answers in time, or one refuses."""
        self._bootstrap_server = bootstrap_server
        self._properties = read_client_properties(command_config)
        self._request_timeout_seconds = timeout_seconds(self._properties, request_timeout_seconds)
        with self._failing_as_tieredctl():
            self._client = KafkaPythonClient(bootstrap_server, self._properties, self._request_timeout_seconds)

    @property
    def cluster_id(self) -> str | None:
        return self._client.cluster_id

    def describe(self) -> dict[str, object]:
        return {
            "kind": "cluster",
            "bootstrapServer": self._bootstrap_server,
            "clusterId": self.cluster_id,
        }

    def close(self) -> None:
        """Ends the connections."""
        self._client.close()

    def _broker_ids(self) -> Sequence[int]:
        return self._client.broker_ids()

    def _ask(
        self, node_id: int | None, request: Any, seconds: float | None = None, *, awaits_broker: bool = True
    ) -> Any:
        """The answer of a broker; of any one, if none is given. Waits for the request timeout, or at most `seconds`;
        without `awaits_broker` it fails at once where the broker cannot be reached."""
        patience = min(self._request_timeout_seconds, seconds or math.inf)
        with self._failing_as_tieredctl():
            return self._client.answer(node_id, request, patience, awaits_broker=awaits_broker)

    def _ask_until(self, is_settled: Callable[[Any], bool], request_of: Callable[[], Any]) -> Any:
        """The first settled answer of any broker; the last answer, if none is settled within the request timeout."""
        deadline = time.monotonic() + self._request_timeout_seconds
        while True:
            response = self._ask(None, request_of())
            if is_settled(response) or time.monotonic() > deadline:
                return response
            self._client.hear_of_changes()

    def _of_each_broker(self, ask: Callable[[int], _Answer]) -> Iterator[tuple[int, _Answer]]:
        """Each broker's answer. A broker that leaves the cluster meanwhile is left out; one that stays in it and does
        not answer within the request timeout is an error."""
        deadline = time.monotonic() + self._request_timeout_seconds
        for broker in self._broker_ids():
            while True:
                try:
                    answered = ask(broker)
                except TieredctlError as error:
                    if error.code is not ErrorCode.BROKER_UNREACHABLE:
                        raise
                    self._client.hear_of_changes()
                    if broker not in self._broker_ids():
                        break
                    if time.monotonic() > deadline:
                        raise
                else:
                    yield broker, answered
                    break

    def _demand_access(self, error_code: int, what: str, operation: str = "Describe") -> None:
        if error_code in (TOPIC_DENIED, CLUSTER_DENIED):
            operations = "operations" if " and " in operation else "operation"
            hint = f"The user needs the {operations} {operation} on {what}."
            may_not = "change" if operation.startswith("Alter") else "look at"
            raise TieredctlError(ErrorCode.BROKER_REFUSED, f"The user may not {may_not} {what}.", hint=hint)

    @contextmanager
    def _failing_as_tieredctl(self) -> Iterator[None]:
        try:
            from kafka.errors import (
                IncompatibleBrokerVersion,
                KafkaError,
                SaslAuthenticationFailedError,
                UnsupportedVersionError,
            )
        except ImportError:
            raise missing_extra("This needs kafka-python, which is not installed.", "kafka") from None
        try:
            yield
        except (IncompatibleBrokerVersion, UnsupportedVersionError):
            raise
        except SaslAuthenticationFailedError as error:
            raise TieredctlError(
                ErrorCode.BROKER_REFUSED, f"{self._bootstrap_server} refused: {self._error_text(error)}"
            ) from None
        except (KafkaError, OSError) as error:
            waited = f"did not answer within the request timeout of {self._request_timeout_seconds:g} s"
            message = f"{self._bootstrap_server} {waited}: {self._error_text(error)}"
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message) from None

    def _error_text(self, error: Exception) -> str:
        from kafka.errors import NodeNotReadyError

        if isinstance(error, NodeNotReadyError):  # its own words are about kafka-python's insides
            return "no broker takes connections."
        return without_secrets(str(error), self._properties)


def is_passing(error_code: int) -> bool:
    """Whether a retry may succeed soon: a new controller, leader or coordinator is being elected."""
    from kafka.errors import for_code

    return bool(error_code) and bool(for_code(error_code).retriable)
