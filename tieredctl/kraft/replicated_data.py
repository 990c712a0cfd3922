"""What a broker's shutdown costs the metadata log, as KIP-630's "Amount of Data Replicated" reckons it."""

from __future__ import annotations

from dataclasses import dataclass

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
