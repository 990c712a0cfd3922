"""`__remote_log_metadata` read from a live cluster: a `MetadataSource` that joins no group and commits nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from tieredctl.formats.log_blocks import BlockReader, log_blocks, odd_offsets
from tieredctl.formats.log_scan import Damage, LogBlock
from tieredctl.formats.record_batches import BatchHeader
from tieredctl.formats.record_chunks import RecordChunk, chunk_of
from tieredctl.kafka.broker_connection import REQUEST_TIMEOUT_SECONDS
from tieredctl.kafka.live_log import LiveLog
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_subjects import MetadataSubject
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import TopicDescription
from tieredctl.ports.metadata_source import METADATA_TOPIC, OffsetRange, truncated


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


_BYTES_AT_ONCE = 1 << 22
_MOST_BYTES = 1 << 26
"""How far to search for the next sound batch after a damaged one."""
_GROWTH = 4


class LivePartition:
    """Reads from a start offset to a higher end offset.

    A leader finds batches by the offsets in their headers, which no CRC covers. If one was altered, the leader may
    return batches twice, or others than were asked for: what was read already is recognized by its position.
    """

    def __init__(self, log: LiveLog, topic: TopicDescription, partition: int, offsets: OffsetRange) -> None:
        self._log, self._topic, self._partition = log, topic, partition
        self._position, self._end = offsets
        self._last_offset = offsets.start - 1
        self._reader = BlockReader(offsets.start, self._unreadable)
        self._is_resuming = True
        """Whether an answer contained nothing new so far."""
        self._misplaced: set[tuple[int, int]] = set()
        """Base offset and CRC of sound batches that are where their offsets do not belong."""
        self._damage: tuple[int, str] | None = None
        """The first offset of the damaged stretch being read, and what is wrong with it."""

    def chunks(self) -> Iterator[RecordChunk]:
        """Records by ascending offset, with damage as findings."""
        most_bytes, deadline = _BYTES_AT_ONCE, self._deadline()
        while self._position < self._end:
            before, self._is_resuming, may_be_cut = self._position, True, False
            fetched = self._log.fetch(self._topic, self._partition, before, most_bytes)
            for part in log_blocks([fetched.data], len(fetched.data)):
                if not isinstance(part, Damage):
                    may_be_cut = most_bytes < _MOST_BYTES
                    yield from self._chunks_of(part, fetched.high_watermark)
                elif not (part.torn and (may_be_cut or self._position > before)):
                    self._damage = self._damage or (self._position, part.reason)
            if self._position > before:
                most_bytes, deadline = _BYTES_AT_ONCE, self._deadline()
            elif not fetched.data:
                if time.monotonic() > deadline:
                    raise self._log.gave_nothing(self._partition, before, "it has no such record")
            elif most_bytes < _MOST_BYTES:
                most_bytes *= _GROWTH
            else:
                self._position += 1
        if self._damage is not None:
            yield chunk_of((), self._ended_damage(self._end))

    def _deadline(self) -> float:
        return time.monotonic() + self._log.request_timeout_seconds

    def _chunks_of(self, block: LogBlock[Any], high_watermark: int) -> Iterator[RecordChunk]:
        findings: list[Finding] = []
        for first, end in self._new_batches(block, high_watermark, findings):
            some = LogBlock(block.buffer, block.file_position, block.positions[first:end], block.headers[first:end])
            for chunk in self._reader.chunks(some):
                chunk.findings[:0], findings = findings, []
                self._demand_order(chunk)
                if len(chunk):
                    self._last_offset = max(self._last_offset, int(chunk.offsets[-1]))
                yield chunk
        if findings:
            yield chunk_of((), findings)

    def _new_batches(
        self, block: LogBlock[Any], high_watermark: int, findings: list[Finding]
    ) -> Iterator[tuple[int, int]]:
        """The rows of batches that are new and before the end, in stretches; adds findings about damage before them."""
        if (last_offset := self._last_if_all_are_next(block)) is not None:
            findings += self._ended_damage(self._position)
            self._position, self._is_resuming = last_offset + 1, False
            yield 0, len(block.positions)
            return
        first, before_jump = 0, -1
        batches = _identities(block)
        for row, (base, last, crc) in enumerate(batches):
            is_later = self._end <= base < high_watermark
            if is_later:
                self._position = self._end
            if is_later or (base, crc) in self._misplaced or (self._is_resuming and last < self._position):
                if first < row:
                    yield first, row
                first = row + 1
                continue
            if before_jump <= base < self._position and before_jump >= 0:
                # The previous batch claimed too many offsets.
                self._misplaced.add((batches[row - 1][0], batches[row - 1][2]))
                self._position = before_jump
            before_jump = self._position if self._position < base < self._end else -1
            if before_jump >= 0 and row == len(batches) - 1 and not self._is_resuming:
                # The batch after it, in the next answer, tells whether it belongs here.
                if first < row:
                    yield first, row
                return
            self._is_resuming = False
            if base >= self._end or last < self._position:
                self._misplaced.add((base, crc))
            else:
                findings += self._ended_damage(base)
                self._position = last + 1
        if first < len(batches):
            yield first, len(batches)

    def _last_if_all_are_next(self, block: LogBlock[Any]) -> int | None:
        """The last offset of batches that follow one another from the current position, as they nearly always do."""
        if isinstance(block.headers, list):
            return None
        bases = block.headers["baseOffset"].astype("i8")
        lasts = bases + block.headers["lastOffsetDelta"]
        is_next = bases[0] <= self._position <= lasts[0] and lasts[-1] < self._end
        return int(lasts[-1]) if is_next and (bases[1:] == lasts[:-1] + 1).all() else None

    def _demand_order(self, chunk: RecordChunk) -> None:
        odd = odd_offsets(chunk, self._last_offset)
        if odd is not None:
            subject = f"{METADATA_TOPIC}-{self._partition}"
            message = f"offsets do not rise after {self._last_offset}: a batch's base offset was altered"
            evidence: dict[str, object] = {"metadataPartition": self._partition, "offsets": list(odd)}
            about = MetadataSubject(self._partition, offsets=odd)
            chunk.findings.append(Finding(FindingCode.OFFSETS_OUT_OF_ORDER, subject, message, evidence, about=about))

    def _ended_damage(self, next_offset: int) -> list[Finding]:
        """The finding about damage that ends before an offset; empty if nothing is missing."""
        if self._damage is None:
            return []
        (first, reason), self._damage = self._damage, None
        return [self._corrupt(first, next_offset - 1, reason)] if first < next_offset else []

    def _unreadable(self, _position: int, header: BatchHeader | None, reason: str) -> Finding:
        if header is None:
            return self._corrupt(self._position, self._position, reason)
        return self._corrupt(header.base_offset, header.last_offset, reason)

    def _corrupt(self, first: int, last: int, reason: str) -> Finding:
        return Finding(
            FindingCode.BATCH_CORRUPT,
            f"{METADATA_TOPIC}-{self._partition}@{first}",
            f"{reason}; reading resumed after it",
            {"metadataPartition": self._partition, "offsets": [first, last]},
            about=MetadataSubject(self._partition, offsets=(first, last)),
        )


def _identities(block: LogBlock[Any]) -> list[tuple[int, int, int]]:
    """First and last offset and CRC of each batch."""
    headers = block.headers
    if isinstance(headers, list):
        return [(header.base_offset, header.last_offset, header.crc) for header in headers]
    bases = headers["baseOffset"].astype("i8")
    lasts = bases + headers["lastOffsetDelta"]
    return list(zip(bases.tolist(), lasts.tolist(), headers["crc"].tolist(), strict=True))
