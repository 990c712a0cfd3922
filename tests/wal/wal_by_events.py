"""The state of segments and combined objects as one event after another leaves it: what replay by columns is compared
with."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tieredctl_proposals.model.wal_events import (
    CombinedEvent,
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalLogSegmentMetadata,
    WalEvent,
    WalSegmentEvent,
)
from tieredctl_proposals.wal.events import as_kip_405

from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.rlmm.states import start_refusal, update_refusal

_COPIED, _DELETED = RemoteLogSegmentState.COPY_SEGMENT_FINISHED, RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
Place = tuple[int, int]
"""Metadata partition and offset."""


@dataclass
class WalByEvents:
    segments: dict[tuple[TopicIdPartition, str], tuple[WalSegmentEvent, Place]] = field(default_factory=dict)
    """The last event of each that was taken."""
    combined: dict[str, tuple[CombinedEvent, Place]] = field(default_factory=dict)
    begun: dict[tuple[TopicIdPartition, str], RemoteLogSegmentMetadata] = field(default_factory=dict)
    refused: list[Place] = field(default_factory=list)
    stale: list[Place] = field(default_factory=list)
    epochs: dict[TopicIdPartition, int] = field(default_factory=dict)

    def replay(self, records: Iterable[tuple[Place, WalEvent]]) -> None:
        for place, event in records:
            if isinstance(event, CombinedEvent):
                starts = isinstance(event, RemoteWalCombinedLogSegmentMetadata)
                self._apply(self.combined, event.combined_segment_id, event, place, starts=starts)
            elif 0 <= event.leader_epoch < self.epochs.get(event.topic_id_partition, -1):
                self.stale.append(place)
            else:
                partition = event.topic_id_partition
                self.epochs[partition] = max(self.epochs.get(partition, -1), event.leader_epoch)
                starts = isinstance(event, RemoteWalLogSegmentMetadata)
                key = partition, event.segment_id
                if self._apply(self.segments, key, event, place, starts=starts) and starts:
                    begun = as_kip_405(event)
                    assert isinstance(begun, RemoteLogSegmentMetadata)
                    self.begun[key] = begun

    def ranges(self, partition: TopicIdPartition, leader_epoch: int) -> list[tuple[int, int]]:
        """First and last offsets of a leader epoch in each uploaded segment."""
        uploaded = [key for key, (event, _) in self.segments.items() if key[0] == partition and event.state is _COPIED]
        ranges = (one for key in uploaded for one in self.begun[key].epoch_ranges())
        return [(first, last) for epoch, first, last in ranges if epoch == leader_epoch]

    def _apply(self, table: dict[Any, Any], key: Any, event: WalEvent, place: Place, *, starts: bool) -> bool:
        before = table[key][0].state if key in table else None
        before = None if before is _DELETED else before
        if (start_refusal if starts else update_refusal)(before, event.state) is not None:
            self.refused.append(place)
            return False
        table[key] = event, place
        return True
