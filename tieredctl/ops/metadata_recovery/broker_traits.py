"""How a cluster's brokers write events: what is rebuilt has to look the same."""

from __future__ import annotations

from typing import NamedTuple

from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemotePartitionDeleteMetadata,
)

_BrokerEvent = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate | RemotePartitionDeleteMetadata


class BrokerTraits(NamedTuple):
    """As far as it is known; without anything known, as the latest releases do."""

    custom_metadata: bytes | None = None
    """Some segment's, which shows the fields that the storage manager was told to give."""
    form: RecordForm = RecordForm.KAFKA
    tells_txn: bool = False
    """Whether brokers say that a segment has no aborted transaction (Kafka 4.0 and later)."""

    def shown_by(self, event: _BrokerEvent) -> BrokerTraits:
        """What is known with one more event of a broker's."""
        tells = self.tells_txn or (isinstance(event, RemoteLogSegmentMetadata) and event.txn_idx_empty)
        custom = event.custom_metadata if isinstance(event, RemoteLogSegmentMetadataUpdate) else None
        return BrokerTraits(custom or self.custom_metadata, event.form, tells)
