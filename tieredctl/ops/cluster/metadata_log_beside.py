"""The controllers' log in the log directories that the metadata is read from: what it proves about topics.

Nobody named it, so it is believed only where it is of the metadata's own cluster, whole, and no older than what was
read. Otherwise it proves nothing, and topics are as unknown as without it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from tieredctl.ops.cluster.offline_cluster import CLOCK_SKEW_MS, OfflineCluster
from tieredctl.ops.documents import Document
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource


@dataclass(frozen=True, slots=True)
class MetadataLogBeside:
    """A `__cluster_metadata-0` that lies beside `__remote_log_metadata`."""

    found: OfflineCluster | str
    """What it says, or a sentence why it cannot be read."""

    def why_unproven(
        self, metadata: MetadataSource, topic_ids: Collection[str], read_until_ms: int | None
    ) -> str | None:
        """Why it does not prove which topics are gone; None where it does.

        `topic_ids` are those that the metadata names, `read_until_ms` is the time of its last record.
        """
        found = self.found
        if isinstance(found, str):
            return found
        if found.cluster_id is None or found.cluster_id != metadata.cluster_id:
            return f"{found.path} is not known to be of the metadata's cluster."
        if metadata.metadata_topic_id not in found.topic_ids:
            return f"{found.path} does not have {METADATA_TOPIC}: it is of another cluster, or not whole."
        if not found.image.is_certain:
            return f"{found.path} has records that are not understood."
        if found.committed_ms < 0:
            return f"Nothing in {found.path} is certainly committed, or a controller's clock was wrong."
        if read_until_ms is None or found.image.as_of_ms < read_until_ms - CLOCK_SKEW_MS:
            return f"{found.path} ends before {METADATA_TOPIC} does."
        if found.topic_ids.isdisjoint(topic_ids):
            return f"{found.path} has none of the topics in {METADATA_TOPIC}."
        return None


@dataclass(frozen=True, slots=True)
class UnprovenTopics:
    """No topic is known to be there or gone, though a metadata log was there to tell."""

    reason: str

    def is_live(self, topic_id: str) -> bool | None:  # noqa: ARG002 - the protocol's
        return None

    def describe(self) -> Document | None:
        return {"kind": "kraft-snapshot", "unproven": self.reason}
