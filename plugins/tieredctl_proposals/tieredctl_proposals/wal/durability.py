"""What is acknowledged, and what of it survives its leader (KIP-1176, "Data Durability")."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Acknowledgement(StrEnum):
    """What a producer's request waits for."""

    LEADER = "acks=1"
    IN_SYNC_REPLICAS = "acks=all, followers"
    """The proposal's first option: all in-sync followers have the records, which they take from the object store."""
    OBJECT_STORE = "acks=all, object store"
    """Its second option: the object store has them, and their events were read back. A new leader must catch up."""


@dataclass(frozen=True, slots=True)
class ReplicatedLog:
    """How far a partition's records got, as end offsets (exclusive)."""

    leader_end: int
    uploaded_end: int
    """Of what the object store has, and the metadata topic tells."""
    follower_ends: Mapping[int, int]
    """Of each in-sync follower, by broker."""

    @property
    def high_watermark(self) -> int:
        """Up to where consumers may read."""
        return min([self.leader_end, *self.follower_ends.values()])

    def acknowledged_end(self, wait: Acknowledgement) -> int:
        """Up to where producers were told that their records are kept."""
        if wait is Acknowledgement.LEADER:
            return self.leader_end
        if wait is Acknowledgement.IN_SYNC_REPLICAS:
            return self.high_watermark
        return min(self.uploaded_end, self.leader_end)

    def end_after_loss(self, elected: int | None, *, catches_up: bool = True) -> int:
        """Where the log ends once its leader is lost for good.

        `elected` is an in-sync follower; None for a new broker, which rebuilds the log from the object store. One that
        `catches_up` reads what the object store has before it leads: the proposal's plan for its second option. It
        cannot when the store is lost with the leader, as in an outage of the zone of both.
        """
        own = 0 if elected is None else self.follower_ends[elected]
        return max(own, self.uploaded_end) if catches_up else own

    def lost(self, wait: Acknowledgement, elected: int | None, *, catches_up: bool = True) -> range:
        """The acknowledged offsets that are lost."""
        return range(self.end_after_loss(elected, catches_up=catches_up), self.acknowledged_end(wait))
