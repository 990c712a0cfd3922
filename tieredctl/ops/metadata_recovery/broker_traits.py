"""How a cluster's brokers write events, as far as those that are left show it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from tieredctl.formats.columns import NULL, Spans
from tieredctl.formats.metadata_columns import EventGroup
from tieredctl.formats.metadata_schemas import SEGMENT_METADATA_UPDATE
from tieredctl.formats.windows import Bytes
from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
)
from tieredctl.ops.metadata.broker_events import by_brokers
from tieredctl.ops.metadata.event_publisher import NO_BROKER
from tieredctl.rlmm.segment_events import EventChunk


class BrokerTraits(NamedTuple):
    """How a cluster's brokers write events: rebuilt ones have to look the same. By default, as the latest releases
    do."""

    custom_metadata: bytes | None = None
    """Some segment's, which shows the fields that the storage manager is configured to give."""
    form: RecordForm = RecordForm.KAFKA
    tells_txn: bool = False
    """Whether brokers record that a segment has no aborted transaction (Kafka 4.0 and later)."""

    def shown_by(self, chunk: EventChunk) -> BrokerTraits:
        """What is known after more events."""
        traits = self
        for shown in sorted(_shown(chunk), key=lambda one: one.number):
            traits = BrokerTraits(
                shown.custom_metadata or traits.custom_metadata, shown.form, traits.tells_txn or shown.tells_txn
            )
        return traits


class _Shown(NamedTuple):
    """What a broker's event shows."""

    number: int
    """Of its record."""
    form: RecordForm
    custom_metadata: bytes | None = None
    tells_txn: bool = False


def _shown(chunk: EventChunk) -> Iterator[_Shown]:
    """Of each kind and form, the events that show most; in no order."""
    for group in chunk.groups:
        yield from _shown_by_group(chunk.data, group)
    for number, record in chunk.records:
        yield from _shown_by_record(number, record)


def _shown_by_group(data: Bytes, group: EventGroup) -> Iterator[_Shown]:
    rows = by_brokers(group)
    if not len(rows):
        return
    tells_txn = "TxnIndexEmpty" in group.columns and bool(group.columns["TxnIndexEmpty"][rows].any())
    yield _Shown(int(group.rows[rows[-1]]), group.form, tells_txn=tells_txn)
    if group.api_key == SEGMENT_METADATA_UPDATE and "CustomMetadata" in group.columns:
        spans: Spans = group.columns["CustomMetadata"]
        filled = rows[(spans.starts[rows] != NULL) & (spans.ends[rows] > spans.starts[rows])]
        for row in filled[-1:].tolist():
            yield _Shown(int(group.rows[row]), group.form, data[spans.starts[row] : spans.ends[row]].tobytes())


def _shown_by_record(number: int, record: EventRecord) -> Iterator[_Shown]:
    event = record.event
    if isinstance(event, RemoteLogSegmentMetadataSnapshot) or event.author == NO_BROKER:
        return
    custom = event.custom_metadata if isinstance(event, RemoteLogSegmentMetadataUpdate) else None
    tells_txn = isinstance(event, RemoteLogSegmentMetadata) and event.txn_idx_empty
    yield _Shown(number, event.form, custom, tells_txn)
