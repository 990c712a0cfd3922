"""A connection to a live cluster: made from Kafka's client properties, patient for a stated time, clear about why not.

librdkafka tells reasons to a callback, not to who waits for an answer; this joins the two.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tieredctl.errors import TieredctlError
from tieredctl.kafka.client_properties import read_client_properties, without_secrets
from tieredctl.kafka.source import METADATA_TOPIC

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer, KafkaError

REQUEST_TIMEOUT_SECONDS = 15.0
"""How long a cluster may stay silent before it is given up."""
LONGEST_WAIT_SECONDS = 0.25
"""A wait inside librdkafka hides Ctrl-C from Python, so none should be longer."""

_COMPLAINTS_WAIT_SECONDS = 0.05
# Four bytes of something else, taken for a length; librdkafka's advice is to allow such lengths.
_OTHER_PROTOCOL = "Invalid response size"
_OTHER_PROTOCOL_HINT = "Check the port, and security.protocol in --command-config."
_UNKNOWN_PROPERTY = re.compile(r'No such configuration property: "([^"]+)"')
_DEFAULTS = {"group.id": "tieredctl", "client.id": "tieredctl", "log_level": "0"}
# What a read without traces needs, whatever the file of properties says.
_DEMANDED = {
    "enable.auto.commit": "false",
    "enable.auto.offset.store": "false",
    "allow.auto.create.topics": "false",
    "isolation.level": "read_uncommitted",
    "auto.offset.reset": "error",
    "enable.partition.eof": "true",
    "check.crcs": "true",
    # A partition that is read to its end would else hold up the next one for half a second.
    "fetch.wait.max.ms": "10",
}

_Answer = TypeVar("_Answer")


class BrokerClient:
    """A consumer that is in no group and commits nothing.

    librdkafka asks for a group's coordinator all the same, for which a cluster that never had a consumer creates
    __consumer_offsets.
    """

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Contacts nobody yet. Raises TieredctlError where no client can be made with the properties."""
        self.bootstrap_server = bootstrap_server
        self.request_timeout_seconds = request_timeout_seconds
        self.ignored_properties: list[str] = []
        """Those of the file that mean nothing to librdkafka."""
        self._properties = _DEFAULTS | read_client_properties(command_config) | _DEMANDED
        self._properties["bootstrap.servers"] = bootstrap_server
        if not self._properties["group.id"]:
            # librdkafka's Python client ends the process where this is empty.
            self._properties["group.id"] = _DEFAULTS["group.id"]
        self._complaint: str | None = None
        self._refusal: str | None = None
        self.consumer = self._made()

    def answer(self, ask: Callable[[Consumer, float], _Answer]) -> _Answer:
        """What the cluster answers to a request that takes (the consumer, seconds to wait). Raises TieredctlError."""
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + self.request_timeout_seconds
        while True:
            try:
                return ask(self.consumer, LONGEST_WAIT_SECONDS)
            except KafkaException as error:
                self.consumer.poll(_COMPLAINTS_WAIT_SECONDS)
                self.demand_access(error.args[0])
                if time.monotonic() > deadline:
                    raise self.unreachable(error.args[0].str()) from None

    def demand_access(self, error: KafkaError) -> None:
        """Raises TieredctlError where an error means that the cluster does not want this client, whatever it asks."""
        from confluent_kafka import KafkaError

        if error.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED:
            hint = f"The user needs the operations Describe and Read on topic {METADATA_TOPIC}."
            raise self._refused(error.str(), hint)
        if error.code() == KafkaError._AUTHENTICATION or self._refusal:
            raise self._refused(self._refusal or error.str())

    def note(self, error: KafkaError) -> None:
        """Remembers an error that may pass: if it does not, it is the reason that is told."""
        from confluent_kafka import KafkaError

        if error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL):
            self._refusal = error.str()
        elif error.code() != KafkaError._ALL_BROKERS_DOWN:
            self._complaint = error.str()

    def unreachable(self, reason: str) -> TieredctlError:
        """The error after a silence; `reason` is told where librdkafka gave no better one."""
        waited = f"did not answer within the request timeout of {self.request_timeout_seconds:g} s"
        reason = self._complaint or reason
        if _OTHER_PROTOCOL in reason:
            reason, hint = "what listens there does not speak Kafka's protocol", _OTHER_PROTOCOL_HINT
        else:
            hint = None
        return TieredctlError(
            "broker-unreachable", f"{self.bootstrap_server} {waited}: {self._public(reason)}", hint=hint
        )

    def _made(self) -> Consumer:
        """The consumer, without those properties that librdkafka does not know."""
        try:
            from confluent_kafka import Consumer, KafkaException
        except ImportError:
            hint = "Install it with: pip install 'tieredctl[kafka]'"
            raise TieredctlError("missing-extra", "Reading a live cluster needs confluent-kafka.", hint=hint) from None
        while True:
            try:
                return Consumer({**self._properties, "error_cb": self.note})
            except KafkaException as error:
                reason = error.args[0].str()
                unknown = _UNKNOWN_PROPERTY.search(reason)
                if unknown is None or unknown[1] not in self._properties:
                    hint = "Mend the file that --command-config names."
                    message = f"No client can be made with these properties: {self._public(reason)}"
                    raise TieredctlError("usage", message, hint=hint) from None
                del self._properties[unknown[1]]
                self.ignored_properties.append(unknown[1])

    def _refused(self, reason: str, hint: str | None = None) -> TieredctlError:
        return TieredctlError("broker-refused", f"{self.bootstrap_server} refused: {self._public(reason)}", hint=hint)

    def _public(self, reason: str) -> str:
        """A reason as a sentence's end, with what was ignored, which may be why, and without secrets."""
        ignored = ", ".join(self.ignored_properties)
        note = f" (properties that mean nothing to librdkafka were ignored: {ignored})" if ignored else ""
        return f"{without_secrets(reason, self._properties).rstrip('.')}{note}."
