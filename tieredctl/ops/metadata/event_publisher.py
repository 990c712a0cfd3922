"""The protocol for writing to the metadata topic."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tieredctl.model.events import MetadataEvent

NO_BROKER = -1
"""The broker id of events that no broker wrote; it distinguishes tieredctl's own from those of brokers."""


class EventPublisher(Protocol):
    """Writes to the metadata topic."""

    def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
        """Returns once all events are durably written, in this order. Raises TieredctlError where that is uncertain."""
        ...
