"""Asks a live cluster for topics by id, with kafka-python: librdkafka only asks by name.

By name, a topic that the user may not describe looks deleted. By id (Metadata request, version 12, KIP-516) a broker
answers UNKNOWN_TOPIC_ID to all users, and TOPIC_AUTHORIZATION_FAILED for an existing topic that the user may not
describe: KafkaApis.handleTopicMetadataRequest looks up ids before it checks the user.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

from tieredctl.errors import TieredctlError
from tieredctl.installation import installation_of
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.client_properties import read_client_properties, timeout_seconds, without_secrets
from tieredctl.kafka.kafka_python_client import KafkaPythonClient
from tieredctl.model.ids import UUID_BYTES, uuid_bytes, uuid_text

_FIRST_VERSION_BY_ID = 12
"""Version of the Metadata request: 10 and 11 have the field, but brokers ignore it."""
_TOPICS_A_REQUEST = 200
_SECONDS_OF_SILENCE = 60.0
"""How long a cluster that did not answer is not asked again: each try would wait for the timeout."""
_NO_ERROR, _UNKNOWN_TOPIC_ID = 0, 100


class TopicsById:
    """Asks every broker of a cluster: a lagging one may not know a topic yet. To be closed."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Does not connect yet. Raises TieredctlError for an invalid properties file."""
        self._bootstrap_server = bootstrap_server
        self._properties = read_client_properties(command_config)
        self._request_timeout_seconds = timeout_seconds(self._properties, request_timeout_seconds)
        self._client: KafkaPythonClient | None = None
        self._reason: str | None = None
        """Why there was no answer the last time."""
        self._silent_until = -math.inf
        """The time, by the monotonic clock, before which it is not asked again."""

    def ask(self, topic_ids: Collection[str]) -> dict[str, bool | None]:
        """Whether each topic exists now. False takes a plain "unknown topic id" from every broker; None stands for any
        other answer, or none: `describe` has the reason."""
        answers: dict[str, bool | None] = dict.fromkeys(topic_ids)
        asked = sorted(filter(_may_be_a_topics, answers))
        if not asked or time.monotonic() < self._silent_until:
            return answers
        try:
            from kafka.errors import KafkaError
        except ImportError:
            self._give_up(f"kafka-python is not installed: {installation_of('kafka')}")
            return answers
        try:
            self._ask_brokers(asked, answers)
        except (KafkaError, OSError, ValueError) as error:
            self._give_up(str(error))
        except TieredctlError as error:
            self._give_up(error.message)
        else:
            self._reason = None
        return answers

    def describe(self) -> dict[str, object]:
        document: dict[str, object] = {"kind": "cluster", "bootstrapServer": self._bootstrap_server}
        return document if self._reason is None else document | {"unanswered": self._reason}

    def close(self) -> None:
        """Ends the connections; asking again would open new ones."""
        if self._client is not None:
            self._client.close()
            self._client = None

    def _give_up(self, reason: str) -> None:
        """The next try begins with the cluster's then current brokers."""
        self.close()
        self._reason = without_secrets(reason, self._properties)
        self._silent_until = time.monotonic() + _SECONDS_OF_SILENCE

    def _ask_brokers(self, topic_ids: Sequence[str], answers: dict[str, bool | None]) -> None:
        """Fills in the answers, even if it raises an error in the end."""
        if self._client is None:
            timeout_seconds = self._request_timeout_seconds
            self._client = KafkaPythonClient(self._bootstrap_server, self._properties, timeout_seconds)
        client = self._client
        brokers = client.broker_ids()
        denials = Counter[str]()
        for node_id in brokers:
            # A topic that one broker has exists, whatever the others know.
            open_questions = [topic_id for topic_id in topic_ids if answers[topic_id] is None]
            for topic_id, error_code in self._error_codes(client, node_id, open_questions):
                if error_code == _NO_ERROR:
                    answers[topic_id] = True
                denials[topic_id] += error_code == _UNKNOWN_TOPIC_ID
        for topic_id in topic_ids:
            if denials[topic_id] == len(brokers) > 0:
                answers[topic_id] = False

    def _error_codes(
        self, client: KafkaPythonClient, node_id: int, topic_ids: Sequence[str]
    ) -> Iterator[tuple[str, int | None]]:
        """A broker's answer for each topic; None where it has none."""
        for start in range(0, len(topic_ids), _TOPICS_A_REQUEST):
            some = topic_ids[start : start + _TOPICS_A_REQUEST]
            response = self._response(client, node_id, some)
            codes = {uuid_text(topic.topic_id.bytes): topic.error_code for topic in response.topics}
            yield from ((topic_id, codes.get(topic_id)) for topic_id in some)

    def _response(self, client: KafkaPythonClient, node_id: int, topic_ids: Sequence[str]) -> Any:
        from kafka.protocol.metadata import MetadataRequest

        wanted = [
            MetadataRequest.MetadataRequestTopic(topic_id=UUID(bytes=uuid_bytes(topic_id)), name=None)
            for topic_id in topic_ids
        ]
        request = MetadataRequest(
            topics=wanted,
            allow_auto_topic_creation=False,
            include_topic_authorized_operations=False,
            min_version=_FIRST_VERSION_BY_ID,
        )
        return client.answer(node_id, request, self._request_timeout_seconds)


def _may_be_a_topics(topic_id: str) -> bool:
    try:
        return uuid_bytes(topic_id) != bytes(UUID_BYTES)
    except ValueError:
        return False
