"""Record batches that only a live cluster's leaders have, as they serve them to consumers."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.kafka_python_client import is_passing
from tieredctl.kafka.live_cluster import LiveCluster
from tieredctl.model.ids import TopicIdPartition, uuid_bytes

_CONSUMER = -1
_FIRST_VERSION = 4
"""Of Fetch: with earlier versions, brokers convert batches to older formats."""
_MOST_MS_TO_WAIT = 100
_WHOLE_FETCH = -1
"""The epoch of a fetch without a session (KIP-227)."""
_MOST_BYTES = 8 << 20
_SECONDS_BETWEEN_TRIES = 0.2


class LiveTail(LiveCluster):
    """Fetches without a consumer group. Must be closed."""

    def fetch(self, partition: TopicIdPartition, offset: int) -> bytes:
        """Batches from the one that holds `offset` on; the last may be incomplete. Waits up to the request timeout for
        a leader that has any. Raises TieredctlError, `world-changed` if the topic is another one."""
        deadline = time.monotonic() + self._request_timeout_seconds
        reason = "it has no leader"
        while True:
            topic = self.topic(partition.topic)
            if topic.topic_id != partition.topic_id:
                message = f"{partition.topic} was deleted and recreated while it was read."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)
            leader = next((one.leader for one in topic.partitions if one.partition == partition.partition), None)
            if leader is not None:
                answer = self._fetched(leader, partition, offset)
                if not answer.error_code and answer.records:
                    return bytes(answer.records)
                reason = self._reason(partition, offset, answer.error_code)
            if time.monotonic() > deadline:
                where = f"{partition.topic}-{partition.partition} returned nothing from offset {offset} on"
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{where}: {reason}.")
            time.sleep(_SECONDS_BETWEEN_TRIES)
            self._client.hear_of_changes()

    def _reason(self, partition: TopicIdPartition, offset: int, error_code: int) -> str:
        if not error_code:
            return "it has no record there yet"
        from kafka.errors import for_code

        self._demand_access(error_code, f"topic {partition.topic}", "Describe and Read")
        name: str = for_code(error_code).__name__
        if not is_passing(error_code):
            where = f"{partition.topic}-{partition.partition}"
            message = f"The leader of {where} does not return offset {offset}: {name}."
            raise TieredctlError(ErrorCode.UNREADABLE, message)
        return name

    def _fetched(self, leader: int, partition: TopicIdPartition, offset: int) -> Any:
        from kafka.protocol.consumer import FetchRequest

        topics = FetchRequest.FetchTopic
        asked = topics.FetchPartition(
            partition=partition.partition,
            current_leader_epoch=-1,
            fetch_offset=offset,
            last_fetched_epoch=-1,
            log_start_offset=-1,
            partition_max_bytes=_MOST_BYTES,
        )
        topic_id = UUID(bytes=uuid_bytes(partition.topic_id))
        request = FetchRequest(
            replica_id=_CONSUMER,
            max_wait_ms=_MOST_MS_TO_WAIT,
            min_bytes=1,
            max_bytes=_MOST_BYTES,
            isolation_level=0,
            session_id=0,
            session_epoch=_WHOLE_FETCH,
            topics=[topics(topic=partition.topic, topic_id=topic_id, partitions=[asked])],
            forgotten_topics_data=[],
            rack_id="",
            min_version=_FIRST_VERSION,
        )
        response = self._ask(leader, request, awaits_broker=False)
        return response if response.error_code else response.responses[0].partitions[0]
