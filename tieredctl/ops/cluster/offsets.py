"""`offsets`: where each partition's log begins and ends, locally and in remote storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any

from tieredctl.model.result_row import Column, JsonOnly, Main, ResultRow, camel_case
from tieredctl.model.size_sum import known_sum
from tieredctl.ops.documents import Document
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, PartitionDescription, TopicDescription

OFFSETS = {
    "earliest": OffsetSpec.EARLIEST,
    "earliest_local": OffsetSpec.EARLIEST_LOCAL,
    "latest_tiered": OffsetSpec.LATEST_TIERED,
    "earliest_pending_upload": OffsetSpec.EARLIEST_PENDING_UPLOAD,
    "latest": OffsetSpec.LATEST,
    "max_timestamp_offset": OffsetSpec.MAX_TIMESTAMP,
}
"""By their attributes of a row, in the order in which they lie in a log."""
UNSUPPORTED = "UNSUPPORTED_VERSION"
"""The error of a broker whose release does not know an offset."""


@dataclass(frozen=True, slots=True)
class PartitionOffsets(ResultRow):
    """A partition's offsets, None where the broker has none; `errors` has those that it refused, by JSON name."""

    topic: str
    topic_id: Annotated[str, Column(wide=True, after="max_timestamp_offset")]
    partition: int
    leader: Annotated[int | None, Column(importance=0)]
    leader_epoch: Annotated[int | None, Column("EPOCH", wide=True, after="max_timestamp_offset")]
    earliest: int | None
    earliest_local: int | None
    latest_tiered: int | None
    earliest_pending_upload: Annotated[int | None, Column("PENDING-UPLOAD", importance=0)]
    latest: Main[int | None]
    max_timestamp_offset: Annotated[int | None, Column("MAX-TIMESTAMP", wide=True)]
    not_tiered: int | None
    errors: JsonOnly[Mapping[str, str]]

    @property
    def unanswered(self) -> Mapping[str, str]:
        """The errors that are not about the broker's release: what the leader would report, and did not."""
        return {name: error for name, error in self.errors.items() if error != UNSUPPORTED}


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The answers of a topic's leaders, by special offset."""

    topic: TopicDescription
    answers: Mapping[OffsetSpec, Mapping[int, ListedOffset]]

    def rows(self) -> list[PartitionOffsets]:
        """One row per partition."""
        return [self._row(partition) for partition in self.topic.partitions]

    def summary(self) -> Document:
        """The sums of all partitions, None where one is unknown; offsets not tiered yet include the active segment."""
        rows = self.rows()
        return {
            "partitions": len(rows),
            "notTiered": known_sum(row.not_tiered for row in rows),
            "errors": sum(len(row.errors) for row in rows),
        }

    def _row(self, partition: PartitionDescription) -> PartitionOffsets:
        listed = {name: self.answers[spec][partition.partition] for name, spec in OFFSETS.items()}
        offsets: dict[str, Any] = {name: answer.offset for name, answer in listed.items()}
        return PartitionOffsets(
            *(self.topic.topic, self.topic.topic_id, partition.partition, partition.leader, partition.leader_epoch),
            **offsets,
            not_tiered=_not_tiered(listed["latest"], listed["latest_tiered"]),
            errors={camel_case(name): answer.error for name, answer in listed.items() if answer.error},
        )


def topic_offsets(cluster: Cluster, name: str) -> TopicOffsets:
    """Asks for all of them. The latest tiered offset is asked for before the end, so that it is never greater.

    Raises TieredctlError as the cluster does.
    """
    topic = cluster.topic(name)
    return TopicOffsets(topic, {spec: cluster.list_offsets(topic, spec) for spec in OFFSETS.values()})


def _not_tiered(latest: ListedOffset, tiered: ListedOffset) -> int | None:
    """How many offsets are in no remote segment yet; None where nothing is tiered, or this is unknown."""
    if latest.offset is None or tiered.offset is None:
        return None
    return latest.offset - (tiered.offset + 1)
