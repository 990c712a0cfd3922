"""`__remote_log_metadata` read from a live cluster: a `MetadataSource` that joins no group and commits nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.live_log import LiveLog
from tieredctl.kafka.live_partition import LivePartition
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import TopicDescription
from tieredctl.ports.metadata_source import OffsetRange, truncated


class LiveTopic:
    """The topic up to its end offsets (high watermarks) when this was made or last advanced."""

    def __init__(
        self,
        bootstrap_server: str,
        command_config: Path | None = None,
        *,
        request_timeout_seconds: float = REQUEST_TIMEOUT_SECONDS,
    ) -> None:
        """Raises TieredctlError if no broker answers in time or one refuses, and if there is no such topic."""
        self._bootstrap_server = bootstrap_server
        self._log = LiveLog(bootstrap_server, command_config, request_timeout_seconds)
        try:
            self._topic, self._ranges = self._present()
        except BaseException:
            self._log.close()
            raise

    @property
    def cluster_id(self) -> str | None:
        return self._log.cluster_id

    @property
    def metadata_topic_id(self) -> str | None:
        return self._topic.topic_id

    @property
    def partition_count(self) -> int | None:
        return len(self._topic.partitions)

    def describe(self) -> dict[str, object]:
        return {
            "kind": "topic",
            "bootstrapServer": self._bootstrap_server,
            "clusterId": self.cluster_id,
            "metadataTopicId": self.metadata_topic_id,
            "metadataPartitions": len(self._ranges),
            "topicPartitions": self.partition_count,
            "endOffsets": {str(partition): offsets.end for partition, offsets in self._ranges.items()},
        }

    def metadata_partitions(self) -> list[int]:
        return sorted(self._ranges)

    def findings(self) -> list[Finding]:
        return [truncated(partition, offsets.start) for partition, offsets in self._ranges.items() if offsets.start]

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return self._ranges.get(metadata_partition, OffsetRange(0, 0))

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        end = self.offset_range(metadata_partition).end
        yield from self.stretch(metadata_partition, OffsetRange(from_offset, end))

    def divisions(self, metadata_partition: int, most_offsets: int) -> list[int]:
        """See `DivisibleSource`: a leader finds any offset."""
        start, end = self.offset_range(metadata_partition)
        return list(range(start + most_offsets, end, most_offsets))

    def stretch(self, metadata_partition: int, offsets: OffsetRange) -> Iterator[RecordChunk]:
        """See `DivisibleSource`."""
        start, end = self.offset_range(metadata_partition)
        within = OffsetRange(max(start, offsets.start), min(end, offsets.end))
        if within.start < within.end:
            yield from LivePartition(self._log, self._topic, metadata_partition, within).chunks()

    def advance(self) -> bool:
        before = self._topic.topic_id, self._ranges
        self._topic, self._ranges = self._present()
        return before != (self._topic.topic_id, self._ranges)

    def close(self) -> None:
        self._log.close()

    def _present(self) -> tuple[TopicDescription, Mapping[int, OffsetRange]]:
        topic = self._log.metadata_topic()
        return topic, self._log.offset_ranges(topic)
