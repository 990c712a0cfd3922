"""Record batches that only a live cluster's leaders have, as they serve them to consumers."""

from __future__ import annotations

import time

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.kafka_python_client import is_passing
from tieredctl.kafka.partition_fetch import PartitionFetch
from tieredctl.model.ids import TopicIdPartition

_MOST_BYTES = 8 << 20
_SECONDS_BETWEEN_TRIES = 0.2


class LiveTail(PartitionFetch):
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
                answer = self._fetched(
                    leader, partition.topic, partition.topic_id, partition.partition, offset, _MOST_BYTES
                )
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
