"""How far a broker has come with its remote segments, read from the metadata topic as it grows.

Only what waiting needs is read out of the records: it is a look at the bytes that owes nothing to tieredctl's decoder.
"""

from __future__ import annotations

import struct
import time
from collections import Counter
from dataclasses import dataclass, replace
from functools import partial
from types import TracebackType
from typing import Self

from confluent_kafka import OFFSET_BEGINNING, Consumer, TopicPartition

from .topics import answered
from .waiting import DeadlineMissed

STATES = ("COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED")
COPIED, DELETED = STATES[1], STATES[3]
READ_SECONDS = 30
_FRAME_BYTES = 3
_METADATA_KEY, _UPDATE_KEY = 0, 1


@dataclass(frozen=True)
class RemoteSegment:
    """The last known state of one remote segment."""

    topic: str
    partition: int
    start_offset: int
    end_offset: int
    state: str


class RemoteSegments:
    """Every segment that the metadata topic of a broker tells of; `refresh()` reads on from where it stopped."""

    def __init__(self, bootstrap_server: str, metadata_topic: str, metadata_partitions: int) -> None:
        self._by_id: dict[bytes, RemoteSegment] = {}
        self._partitions = [TopicPartition(metadata_topic, number) for number in range(metadata_partitions)]
        self._next_offsets = dict.fromkeys(range(metadata_partitions), 0)
        self._consumer = Consumer(
            {"bootstrap.servers": bootstrap_server, "group.id": "rig", "enable.auto.commit": False, "log_level": 0}
        )
        self._consumer.assign(
            [TopicPartition(metadata_topic, number, OFFSET_BEGINNING) for number in range(metadata_partitions)]
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._consumer.close()

    def refresh(self) -> list[RemoteSegment]:
        """Read to the end offsets of this moment, and give all segments as they stand then, deleted ones included.

        Raises DeadlineMissed when the events up to there do not arrive.
        """
        ends = {
            partition.partition: answered(partial(self._consumer.get_watermark_offsets, partition, READ_SECONDS))[1]
            for partition in self._partitions
        }
        deadline = time.monotonic() + READ_SECONDS
        while any(self._next_offsets[number] < end for number, end in ends.items()):
            if time.monotonic() > deadline:
                raise DeadlineMissed(f"read the metadata topic to {self._next_offsets} of {ends} in {READ_SECONDS} s")
            for message in self._consumer.consume(num_messages=500, timeout=0.1):
                number, offset, value = message.partition(), message.offset(), message.value()
                if message.error() is None and number is not None and offset is not None and value is not None:
                    self._apply(bytes(value))
                    self._next_offsets[number] = offset + 1
        return list(self._by_id.values())

    def of_topic(self, topic: str) -> list[RemoteSegment]:
        """The known segments of one topic; reads nothing."""
        return [segment for segment in self._by_id.values() if segment.topic == topic]

    def counts(self) -> dict[str, int]:
        """How many known segments are in each of STATES."""
        found = Counter(segment.state for segment in self._by_id.values())
        return {state: found[state] for state in STATES}

    def _apply(self, value: bytes) -> None:
        api_key, name_end = value[1], _FRAME_BYTES + value[_FRAME_BYTES]
        partition, segment_id, rest = _identity(value, name_end)
        if api_key == _METADATA_KEY:
            start, end = struct.unpack_from(">qq", rest)
            topic = value[_FRAME_BYTES + 1 : name_end].decode()
            self._by_id[segment_id] = RemoteSegment(topic, partition, start, end, STATES[0])
        elif api_key == _UPDATE_KEY:
            # the state is the last byte before the empty tagged section
            self._by_id[segment_id] = replace(self._by_id[segment_id], state=STATES[value[-2]])


def _identity(value: bytes, name_end: int) -> tuple[int, bytes, bytes]:
    """The partition, the segment id and what follows; before them stand the topic id and, after each, empty tags."""
    (partition,) = struct.unpack_from(">i", value, name_end + 16)
    segment_id_start = name_end + 16 + 4 + 1
    return partition, value[segment_id_start : segment_id_start + 16], value[segment_id_start + 17 :]
