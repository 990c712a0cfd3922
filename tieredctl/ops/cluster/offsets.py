"""`offsets`: where each partition's log begins and ends, locally and in remote storage."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tieredctl.ops.documents import Document
from tieredctl.ports.cluster import Cluster, ListedOffset, OffsetSpec, PartitionDescription, TopicDescription

FIELD_OF = {
    OffsetSpec.EARLIEST: "earliest",
    OffsetSpec.EARLIEST_LOCAL: "earliestLocal",
    OffsetSpec.LATEST_TIERED: "latestTiered",
    OffsetSpec.EARLIEST_PENDING_UPLOAD: "earliestPendingUpload",
    OffsetSpec.LATEST: "latest",
    OffsetSpec.MAX_TIMESTAMP: "maxTimestampOffset",
}
"""Their names in a row, in the order in which they lie in a log."""


@dataclass(frozen=True, slots=True)
class TopicOffsets:
    """The answers of a topic's leaders, by special offset."""

    topic: TopicDescription
    answers: Mapping[OffsetSpec, Mapping[int, ListedOffset]]

    def rows(self) -> list[Document]:
        """One row per partition. An offset is null where the broker has none; `errors` has those that it refused."""
        return [self._row(partition) for partition in self.topic.partitions]

    def summary(self) -> Document:
        """For all partitions; offsets not tiered yet include the active segment."""
        rows = self.rows()
        return {
            "partitions": len(rows),
            "notTiered": sum(row["notTiered"] or 0 for row in rows),
            "errors": sum(len(row["errors"]) for row in rows),
        }

    def _row(self, partition: PartitionDescription) -> Document:
        listed = {spec: self.answers[spec][partition.partition] for spec in FIELD_OF}
        return {
            "topic": self.topic.topic,
            "topicId": self.topic.topic_id,
            "partition": partition.partition,
            "leader": partition.leader,
            "leaderEpoch": partition.leader_epoch,
            **{name: listed[spec].offset for spec, name in FIELD_OF.items()},
            "notTiered": _not_tiered(listed),
            "errors": {FIELD_OF[spec]: answer.error for spec, answer in listed.items() if answer.error},
        }


def topic_offsets(cluster: Cluster, name: str) -> TopicOffsets:
    """Asks for all of them. The latest tiered offset is asked for before the end, so that it is never greater.

    Raises TieredctlError as the cluster does.
    """
    topic = cluster.topic(name)
    return TopicOffsets(topic, {spec: cluster.list_offsets(topic, spec) for spec in FIELD_OF})


def _not_tiered(listed: Mapping[OffsetSpec, ListedOffset]) -> int | None:
    """How many offsets are in no remote segment yet; None where nothing is tiered, or this is unknown."""
    latest, tiered = listed[OffsetSpec.LATEST], listed[OffsetSpec.LATEST_TIERED]
    if latest.offset is None or tiered.offset is None:
        return None
    return latest.offset - (tiered.offset + 1)
