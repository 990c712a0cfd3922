"""FetchSnapshot for kafka-python, which lacks it, by Kafka's own definition of it."""

from __future__ import annotations

from kafka.protocol.api_message import ApiMessage

from tieredctl.formats import message_json

_DEFINITIONS = f"{message_json.__package__}.{message_json.MESSAGES}"


class FetchSnapshotRequest(ApiMessage, load_json=_DEFINITIONS):  # type: ignore[call-arg, misc]
    """KIP-630; version 1 is KIP-853's."""


class FetchSnapshotResponse(ApiMessage, load_json=_DEFINITIONS):  # type: ignore[call-arg, misc]
    """KIP-630; version 1 is KIP-853's."""
