"""The log of `__remote_log_metadata` on a live cluster, as its leaders serve it: whole batches, as they are on disk."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import NamedTuple

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.kafka_python_client import is_passing
from tieredctl.kafka.partition_fetch import PartitionFetch
from tieredctl.ports.cluster import OffsetSpec, TopicDescription
from tieredctl.ports.metadata_source import METADATA_TOPIC, OffsetRange

_UNKNOWN_TOPIC, _OFFSET_OUT_OF_RANGE = 3, 1
_UNKNOWN_TOPIC_ID = 100


class FetchedLog(NamedTuple):
    """Batches from a position on; the first and the last may be incomplete."""

    data: bytes
    high_watermark: int


class LiveLog(PartitionFetch):
    """Must be closed."""

    def metadata_topic(self) -> TopicDescription:
        """The topic as it is now. Raises TieredctlError `no-metadata-topic` if there is none."""
        try:
            return self.topic(METADATA_TOPIC)
        except TieredctlError as error:
            if error.code is not ErrorCode.UNKNOWN_TOPIC:
                raise
            message = f"{self._bootstrap_server} has no topic {METADATA_TOPIC}."
            raise TieredctlError(ErrorCode.NO_METADATA_TOPIC, message) from None

    def offset_ranges(self, topic: TopicDescription) -> Mapping[int, OffsetRange]:
        """Log start and high watermark of each partition, at this moment."""
        starts, ends = (self.list_offsets(topic, spec) for spec in (OffsetSpec.EARLIEST, OffsetSpec.LATEST))
        ranges: dict[int, OffsetRange] = {}
        for partition, end in ends.items():
            start = starts[partition]
            if start.offset is None or end.offset is None:
                reason = start.error or end.error
                message = f"The offsets of {METADATA_TOPIC}-{partition} are not available: {reason}."
                raise TieredctlError(ErrorCode.BROKER_UNREACHABLE, message)
            ranges[partition] = OffsetRange(start.offset, end.offset)
        return ranges

    def fetch(self, topic: TopicDescription, partition: int, offset: int, most_bytes: int) -> FetchedLog:
        """What a partition's leader has from `offset` on: at least one batch, otherwise at most `most_bytes`; nothing
        if it has none yet.

        Waits up to the request timeout for another leader. Raises TieredctlError: `unreadable` if the offset is lost,
        `world-changed` if the topic is another one.
        """
        deadline = time.monotonic() + self._request_timeout_seconds
        topic_id, reason = topic.topic_id, "it has no leader"
        while True:
            leader = next((one.leader for one in topic.partitions if one.partition == partition), None)
            if leader is not None:
                try:
                    answer = self._fetched(leader, METADATA_TOPIC, topic_id, partition, offset, most_bytes)
                except TieredctlError as error:
                    if error.code is not ErrorCode.BROKER_UNREACHABLE or time.monotonic() > deadline:
                        raise
                else:
                    if not answer.error_code:
                        return FetchedLog(bytes(answer.records or b""), answer.high_watermark)
                    reason = self._passing_reason(answer.error_code, partition, offset)
            if time.monotonic() > deadline:
                raise self.gave_nothing(partition, offset, reason)
            self._client.hear_of_changes()
            topic = self.metadata_topic()
            if topic.topic_id != topic_id:
                message = f"{METADATA_TOPIC} was deleted and recreated while it was read."
                raise TieredctlError(ErrorCode.WORLD_CHANGED, message)

    @property
    def request_timeout_seconds(self) -> float:
        """How long to wait for an answer."""
        return self._request_timeout_seconds

    def gave_nothing(self, partition: int, offset: int, reason: str) -> TieredctlError:
        """The error if no answer came in time."""
        where = f"{METADATA_TOPIC}-{partition} returned nothing from offset {offset} on"
        waited = f"within the request timeout of {self._request_timeout_seconds:g} s"
        return TieredctlError(ErrorCode.BROKER_UNREACHABLE, f"{where} {waited}: {reason}.")

    def _passing_reason(self, error_code: int, partition: int, offset: int) -> str:
        """The name of an error that may pass. Raises TieredctlError for any other."""
        from kafka.errors import for_code

        self._demand_access(error_code, f"topic {METADATA_TOPIC}")
        if error_code == _OFFSET_OUT_OF_RANGE:
            message = f"{METADATA_TOPIC}-{partition} lost offset {offset} while it was read."
            hint = "Retention may have deleted it, and history with it. Run the command again."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint=hint)
        name: str = for_code(error_code).__name__
        if not is_passing(error_code) and error_code not in (_UNKNOWN_TOPIC, _UNKNOWN_TOPIC_ID):
            message = f"The leader of {METADATA_TOPIC}-{partition} does not return offset {offset}: {name}."
            raise TieredctlError(ErrorCode.UNREADABLE, message)
        return name

    def _demand_access(self, error_code: int, what: str, operation: str = "Describe and Read") -> None:
        super()._demand_access(error_code, what, operation)
