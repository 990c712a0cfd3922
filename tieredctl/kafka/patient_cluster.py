"""A live cluster that is asked with kafka-python, with retries while brokers die or leaders change."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError, missing_extra
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds, without_secrets
from tieredctl.kafka.kafka_python_client import KafkaPythonClient

TOPIC_DENIED, CLUSTER_DENIED = 29, 31

_Answer = TypeVar("_Answer")


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
                ErrorCode.BROKER_REFUSED, f"{self._bootstrap_server} refused: {self._said(error)}"
            ) from None
        except (KafkaError, OSError) as error:
            waited = f"did not answer within the request timeout of {self._request_timeout_seconds:g} s"
            message = f"{self._bootstrap_server} {waited}: {self._said(error)}"
            raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message) from None

    def _said(self, error: Exception) -> str:
        from kafka.errors import NodeNotReadyError

        if isinstance(error, NodeNotReadyError):  # its own words are about kafka-python's insides
            return "no broker takes connections."
        return without_secrets(str(error), self._properties)


def is_passing(error_code: int) -> bool:
    """Whether a retry may succeed soon: a new controller, leader or coordinator is being elected."""
    from kafka.errors import for_code

    return bool(error_code) and bool(for_code(error_code).retriable)
