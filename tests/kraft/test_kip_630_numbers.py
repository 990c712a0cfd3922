"""KIP-630's arithmetic, "Loading State and Frequency of Compaction" and "Amount of Data Replicated", reckoned again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

MEBIBYTE, KIBIBYTE = 1 << 20, 1 << 10
ISR_CHANGE_BYTES = 40
"""Partition id 4, topic id 16, two ids in the ISR 8, leader 4, leader epoch 4, api key 2, version 2."""
FENCE_BROKER_BYTES = 8
"""Broker id 4, api key 2, version 2."""


@dataclass(frozen=True, slots=True)
class AmountReplicated:
    """Bytes that one broker's shutdown adds, by a change for each partition or by one event."""

    partitions: int
    """Replicas that the broker has, if all brokers have as many."""
    changes_in_log: int
    """Written into each node's log as IsrChange records."""
    changes_sent: int
    """The same, sent by the active controller to all other brokers."""
    event_in_log: int
    """Written into each node's log as one FenceBroker record."""
    event_sent: int
    """The same, sent by the active controller to all other brokers."""
    in_snapshot: int
    """Written into each node's next snapshot, in either case, and not sent."""


def amount_of_data_replicated(
    topics: int, partitions_per_topic: int, replication_factor: int, brokers: int
) -> AmountReplicated:
    """Of a broker that goes offline in a well balanced cluster, where no broker has two partitions of one topic."""
    replicas = topics * partitions_per_topic * replication_factor // brokers
    changes, others = replicas * ISR_CHANGE_BYTES, brokers - 1
    return AmountReplicated(
        partitions=replicas,
        changes_in_log=changes,
        changes_sent=changes * others,
        event_in_log=FENCE_BROKER_BYTES,
        event_sent=FENCE_BROKER_BYTES * others,
        in_snapshot=changes,
    )


class ReadRates(NamedTuple):
    """Bytes a second."""

    head: float
    """From the head of the log, to update the in-memory state: all that snapshots need."""
    offset_map: float
    """Once more, to map keys to offsets: compaction."""
    old_segments: float
    """From the segments that compaction copies."""

    @property
    def with_snapshots(self) -> float:
        return self.head

    @property
    def with_compaction(self) -> float:
        return sum(self)


def read_rates(state_bytes: float, change_per_second: float, dirty_bytes: float) -> ReadRates:
    """Of a log whose changes are compacted whenever there are so many bytes of them."""
    seconds = dirty_bytes / change_per_second
    return ReadRates(change_per_second, change_per_second, (state_bytes + dirty_bytes) / seconds)


def least_dirty_bytes(state_bytes: float, clean_ratio: float) -> float:
    """How many bytes of changes make the given share of the whole log dirty, as Kafka's min.cleanable.dirty.ratio."""
    return state_bytes * clean_ratio / (1 - clean_ratio)


def test_amount_of_data_replicated() -> None:
    """100K topics of 10 partitions, replication factor 3, 100 brokers."""
    amount = amount_of_data_replicated(100_000, 10, 3, 100)

    assert amount.partitions == 30_000
    assert round(amount.changes_in_log / MEBIBYTE, 2) == 1.14
    assert round(amount.in_snapshot / MEBIBYTE, 2) == 1.14
    # "113.29 MB" is cut off, not rounded: 113.297
    assert int(amount.changes_sent / MEBIBYTE * 100) / 100 == 113.29
    assert round(amount.changes_sent / MEBIBYTE, 2) == 113.30
    assert amount.event_in_log == 8
    assert round(amount.event_sent / KIBIBYTE, 2) == 0.77


def test_amount_of_data_replicated_calls_binary_units_mb_and_kb() -> None:
    amount = amount_of_data_replicated(100_000, 10, 3, 100)

    assert (amount.changes_in_log, amount.changes_sent, amount.event_sent) == (1_200_000, 118_800_000, 792)


def test_loading_state_and_frequency_of_compaction() -> None:
    """100 MB of state that changes by 1 MB/s, compacted every 50 MB: in 50 seconds."""
    rates = read_rates(state_bytes=100, change_per_second=1, dirty_bytes=50)

    assert rates == (1, 1, 3)
    assert (rates.with_snapshots, rates.with_compaction) == (1, 5)


def test_loading_state_takes_half_of_the_state_for_half_of_the_log() -> None:
    """A dirty ratio of 50 % is reached at 100 MB, not at 50 MB: Kafka counts it of the whole log."""
    dirty = least_dirty_bytes(state_bytes=100, clean_ratio=0.5)

    assert dirty == 100
    assert read_rates(100, 1, dirty).old_segments == 2
