"""A connection to a live cluster that only reads: made from Kafka's client properties, patient for a stated time, clear
about why not."""

from __future__ import annotations

import time
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.broker_connection import LONGEST_WAIT_SECONDS, REQUEST_TIMEOUT_SECONDS, BrokerConnection

if TYPE_CHECKING:
    from collections.abc import Callable

    from confluent_kafka import Consumer

_COMPLAINTS_WAIT_SECONDS = 0.05
_DEFAULTS = {"group.id": "tieredctl"}
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


class BrokerClient(BrokerConnection):
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
        super().__init__(
            bootstrap_server,
            command_config,
            request_timeout_seconds,
            defaults=_DEFAULTS,
            demanded=_DEMANDED,
            operations="Describe and Read",
        )
        if not self.properties["group.id"]:
            # librdkafka's Python client ends the process where this is empty.
            self.properties["group.id"] = _DEFAULTS["group.id"]
        try:
            from confluent_kafka import Consumer
        except ImportError:
            hint = "Install it with: pip install 'tieredctl[kafka]'"
            raise TieredctlError(
                ErrorCode.MISSING_EXTRA, "Reading a live cluster needs confluent-kafka.", hint=hint
            ) from None
        self.judge_properties(Consumer)

    @cached_property
    def consumer(self) -> Consumer:
        """Made when it is first asked for. Raises TieredctlError where no server lets it in."""
        from confluent_kafka import Consumer

        return self.made(Consumer)

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

    def close(self) -> None:
        """Ends the connections; asking again would open new ones."""
        if (consumer := self.__dict__.pop("consumer", None)) is not None:
            consumer.close()
