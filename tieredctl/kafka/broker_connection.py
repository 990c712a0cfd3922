"""What a client of librdkafka needs: Kafka's client properties, and a sentence for each reason why one cannot continue.

librdkafka reports reasons to a callback, not to the caller that waits for an answer; this joins the two.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds, without_secrets
from tieredctl.kafka.connection_settings import librdkafka_settings
from tieredctl.kafka.properties import unusable
from tieredctl.kafka.server_connection import demand_connection
from tieredctl.kafka.sign_in.mechanisms import mechanism_of
from tieredctl.ports.metadata_source import METADATA_TOPIC

if TYPE_CHECKING:
    from confluent_kafka import KafkaError

REQUEST_TIMEOUT_SECONDS = 15.0
"""How long to wait for an answer of the cluster."""
LONGEST_WAIT_SECONDS = 0.25
"""A wait inside librdkafka hides Ctrl-C from Python, so none should be longer."""

# Four bytes of something else, taken for a length; librdkafka's advice is to allow such lengths.
_OTHER_PROTOCOL = "Invalid response size"
_OTHER_PROTOCOL_HINT = "Check the port, and security.protocol in --command-config."
_CERTIFICATE_HINT = (
    "Check ssl.truststore.location and ssl.keystore.location in --command-config, and the names in the certificate."
)
_UNKNOWN_PROPERTY = re.compile(r'No such configuration property: "([^"]+)"')
_UNJUDGED = ("bootstrap.servers", "oauth_cb")
"""What makes a client connect."""
_DEFAULTS = {"client.id": "tieredctl", "log_level": "0"}

_Client = TypeVar("_Client")


class BrokerConnection:
    """A client's properties, and the errors that its callback received."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None,
        request_timeout_seconds: float,
        *,
        defaults: Mapping[str, str],
        demanded: Mapping[str, str],
        operations: str,
    ) -> None:
        """Does not connect. The file's request.timeout.ms applies; `request_timeout_seconds` is used without it. The
        properties file may replace `defaults`, but not `demanded`; `operations` is what the client does with the
        metadata topic, in Kafka's words."""
        self.bootstrap_server = bootstrap_server
        self._stated = from_file = read_client_properties(command_config)
        self.request_timeout_seconds = timeout_seconds(from_file, request_timeout_seconds)
        self.ignored_properties: list[str] = []
        """Properties of the file that librdkafka does not know."""
        settings = librdkafka_settings(bootstrap_server, from_file)
        if settings is None:
            raise unusable(f"librdkafka cannot sign in by {mechanism_of(from_file)}")
        self.properties: dict[str, Any] = {**_DEFAULTS, **defaults, **settings, **demanded}
        self._operations = operations
        self._complaint: str | None = None
        self._refusal: str | None = None
        self._refusal_hint: str | None = None

    def made(self, kind: Callable[[dict[str, Any]], _Client]) -> _Client:
        """The client, once a server accepted a connection: librdkafka connects by itself, and retries without end.

        Raises TieredctlError as `demand_connection` does.
        """
        demand_connection(self.bootstrap_server, self._stated, self.request_timeout_seconds)
        return kind({**self.properties, "error_cb": self.note})

    def judge_properties(self, kind: Callable[[dict[str, Any]], object]) -> None:
        """Removes the properties that librdkafka does not know, with a client that has no server to contact. Raises
        TieredctlError `usage` where no client can be made with the others."""
        from confluent_kafka import KafkaException

        while True:
            try:
                kind({name: value for name, value in self.properties.items() if name not in _UNJUDGED})
            except KafkaException as error:
                reason = error.args[0].str()
                unknown = _UNKNOWN_PROPERTY.search(reason)
                if unknown is None or unknown[1] not in self.properties:
                    hint = "Correct the file given with --command-config."
                    message = f"No client can be made with these properties: {self._public(reason)}"
                    raise TieredctlError(ErrorCode.USAGE, message, hint=hint) from None
                del self.properties[unknown[1]]
                self.ignored_properties.append(unknown[1])
            else:
                return

    def demand_access(self, error: KafkaError) -> None:
        """Raises TieredctlError where an error means that the cluster refuses this client, whatever it asks."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            hint = f"The user needs the operations {self._operations} on topic {METADATA_TOPIC}."
            raise self._refused(error.str(), hint)
        if error.code() == KafkaError._AUTHENTICATION or self._refusal:
            raise self._refused(self._refusal or error.str(), self._refusal_hint)

    def note(self, error: KafkaError) -> None:
        """Remembers a possibly temporary error: if it persists, it is the reported reason."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refusal = error.str()
            self._refusal_hint = _CERTIFICATE_HINT if error.code() == KafkaError._SSL else None
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaint = error.str()

    def unreachable(self, reason: str) -> TieredctlError:
        """The error after a timeout; `reason` is reported where librdkafka gave no better one."""
        waited = f"did not answer within the request timeout of {self.request_timeout_seconds:g} s"
        reason = self._complaint or reason
        if _OTHER_PROTOCOL in reason:
            reason, hint = "the server does not speak Kafka's protocol", _OTHER_PROTOCOL_HINT
        else:
            hint = None
        return TieredctlError(
            ErrorCode.BROKER_UNREACHABLE, f"{self.bootstrap_server} {waited}: {self._public(reason)}", hint=hint
        )

    def _refused(self, reason: str, hint: str | None = None) -> TieredctlError:
        return TieredctlError(
            ErrorCode.BROKER_REFUSED, f"{self.bootstrap_server} refused: {self._public(reason)}", hint=hint
        )

    def _public(self, reason: str) -> str:
        """A reason as a sentence's end, with the ignored properties, which may be the cause, and without secrets."""
        ignored = ", ".join(self.ignored_properties)
        note = f" (ignored properties that librdkafka does not know: {ignored})" if ignored else ""
        return f"{without_secrets(reason, self._stated).rstrip('.')}{note}."
