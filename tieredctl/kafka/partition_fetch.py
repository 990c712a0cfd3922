"""One partition's batches, as its leader serves them to a consumer without a group, whole as they are on disk."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.model.ids import uuid_bytes

_CONSUMER = -1
_FIRST_VERSION = 4
"""The first version of Fetch that is sent: known to brokers since 0.11; with earlier versions, brokers convert batches
to older formats."""
_MOST_MS_TO_WAIT = 100
"""A broker has what is asked for: it is below the high watermark. Only a new leader may not know that yet."""
_WHOLE_FETCH = -1
"""The epoch of a fetch without a session (KIP-227)."""


class PartitionFetch(LiveCluster):
    """Fetch requests without a consumer group: asking a group coordinator would make a cluster create
    `__consumer_offsets`. Must be closed."""

    def _fetched(self, leader: int, topic: str, topic_id: str, partition: int, offset: int, most_bytes: int) -> Any:
        """The answer about the partition; where the whole request was refused, that about the request. Either has an
        `error_code`. At least one batch from `offset` on, otherwise at most `most_bytes`."""
        from kafka.protocol.consumer import FetchRequest

        topics = FetchRequest.FetchTopic
        asked = topics.FetchPartition(
            partition=partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=most_bytes,
        )
        request = FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=_MOST_MS_TO_WAIT,
            min_bytes=1,
            max_bytes=most_bytes,
            isolation_level=0,
            session_id=0,
            session_epoch=_WHOLE_FETCH,
            topics=[topics(topic=topic, topic_id=UUID(bytes=uuid_bytes(topic_id)), partitions=[asked])],
            forgotten_topics_data=[],
            rack_id="",
            min_version=_FIRST_VERSION,
        )
        response = self._ask(leader, request, awaits_broker=False)
        return response if response.error_code else response.responses[0].partitions[0]
