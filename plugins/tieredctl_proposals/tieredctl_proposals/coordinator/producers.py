"""What the coordinator remembers of an idempotent producer in a partition, and which of its batches it takes.

The rules are Kafka's own (ProducerAppendInfo, ProducerStateEntry): the proposal asks for "checks for producer
idempotence" and names none.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

from tieredctl_proposals.coordinator.apply import REMEMBERED_BATCHES

_SEQUENCES = 1 << 31
"""The last of them is followed by 0."""


class RememberedBatch(NamedTuple):
    """A batch that was accepted. `log_append_timestamp_ms` is -1 where it keeps its producer's times."""

    base_offset: int
    base_sequence: int
    last_sequence: int
    log_append_timestamp_ms: int


@dataclass(slots=True)
class Producer:
    """A producer in one partition: its latest epoch, and its last batches of that epoch, oldest first."""

    epoch: int
    batches: deque[RememberedBatch] = field(default_factory=lambda: deque(maxlen=REMEMBERED_BATCHES))

    def duplicate(self, epoch: int, base_sequence: int, last_sequence: int) -> RememberedBatch | None:
        """The remembered batch that is the same as this one."""
        if epoch != self.epoch:
            return None
        sequences = base_sequence, last_sequence
        return next((batch for batch in self.batches if (batch.base_sequence, batch.last_sequence) == sequences), None)

    def is_fenced(self, epoch: int) -> bool:
        """Whether a batch of that epoch comes from an instance that another has replaced."""
        return epoch < self.epoch

    def follows(self, epoch: int, base_sequence: int) -> bool:
        """Whether a batch that is neither is the next one."""
        if epoch != self.epoch:
            return base_sequence == 0
        return base_sequence == (self.batches[-1].last_sequence + 1) % _SEQUENCES

    def accept(self, epoch: int, batch: RememberedBatch) -> None:
        """Remembers a batch."""
        if epoch != self.epoch:
            self.epoch = epoch
            self.batches.clear()
        self.batches.append(batch)
