"""Kafka's own metadata cache, asked from Python: event sequences in, its answers out.

The line format between the two is described at the top of `java/CacheOracle.java`.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal, Self, TypeAlias

from .maven import JAVA_SOURCES, KafkaJars, compile_java, java_command, kafka_jars

ORACLE_VERSION = "4.3.1"
ORACLE_CLASS = "org.apache.kafka.server.log.remote.metadata.storage.CacheOracle"

SegmentState: TypeAlias = Literal[
    "COPY_SEGMENT_STARTED", "COPY_SEGMENT_FINISHED", "DELETE_SEGMENT_STARTED", "DELETE_SEGMENT_FINISHED"
]
PartitionState: TypeAlias = Literal["DELETE_PARTITION_MARKED", "DELETE_PARTITION_STARTED", "DELETE_PARTITION_FINISHED"]


@dataclass(frozen=True)
class SegmentAdded:
    """A RemoteLogSegmentMetadata event; ids are 22 characters of URL-safe base64, times are milliseconds."""

    segment_id: str
    start_offset: int
    end_offset: int
    leader_epochs: Mapping[int, int]
    state: SegmentState = "COPY_SEGMENT_STARTED"
    broker_id: int = 1
    max_timestamp_ms: int = 0
    event_timestamp_ms: int = 0
    size_in_bytes: int = 1
    custom_metadata: bytes | None = None
    txn_index_empty: bool = False

    def line(self) -> str:
        """The event as the oracle reads it."""
        epochs = ",".join(f"{epoch}:{offset}" for epoch, offset in self.leader_epochs.items()) or "-"
        return (
            f"add {self.segment_id} {self.start_offset} {self.end_offset} {self.broker_id} {self.max_timestamp_ms} "
            f"{self.event_timestamp_ms} {self.size_in_bytes} {self.state} {epochs} {_custom(self.custom_metadata)} "
            f"{str(self.txn_index_empty).lower()}"
        )


@dataclass(frozen=True)
class SegmentUpdated:
    """A RemoteLogSegmentMetadataUpdate event."""

    segment_id: str
    state: SegmentState
    broker_id: int = 1
    event_timestamp_ms: int = 0
    custom_metadata: bytes | None = None

    def line(self) -> str:
        """The event as the oracle reads it."""
        custom = _custom(self.custom_metadata)
        return f"update {self.segment_id} {self.broker_id} {self.event_timestamp_ms} {self.state} {custom}"


@dataclass(frozen=True)
class PartitionDeleted:
    """A RemotePartitionDeleteMetadata event; a cache refuses it, a store takes it."""

    state: PartitionState
    broker_id: int = 1
    event_timestamp_ms: int = 0

    def line(self) -> str:
        """The event as the oracle reads it."""
        return f"delete-partition {self.broker_id} {self.event_timestamp_ms} {self.state}"


@dataclass(frozen=True)
class RecordValue:
    """Any event, as the bytes that a record of the metadata topic has for a value."""

    value: bytes

    def line(self) -> str:
        """The event as the oracle reads it."""
        return f"record {self.value.hex()}".rstrip()


@dataclass(frozen=True)
class Initialized:
    """No event: from here on the cache counts as caught up, and minds updates of segments that it does not know."""

    def line(self) -> str:
        """The mark as the oracle reads it."""
        return "initialized"


Event: TypeAlias = SegmentAdded | SegmentUpdated | PartitionDeleted | RecordValue
Step: TypeAlias = Event | Initialized


@dataclass(frozen=True)
class EventSequence:
    """Events of one partition in order, and what to ask once they are replayed.

    `through` says which class is driven: Kafka's RemoteLogMetadataCache, or the RemotePartitionMetadataStore above it,
    which swallows some of the cache's exceptions and answers nothing until it is initialized.
    """

    steps: Sequence[Step]
    epochs: Sequence[int]
    offsets: Sequence[int]
    through: Literal["cache", "store"] = "cache"
    topic_id: str = "ABEiM0RVZneImaq7zN3u_w"
    topic: str = "t"
    partition: int = 0

    def lines(self) -> list[str]:
        """The sequence as the oracle reads it."""
        return [
            f"sequence {self.through} {self.topic_id} {self.partition} {self.topic}",
            *(step.line() for step in self.steps),
            f"ask {_comma_list(self.epochs)} {_comma_list(self.offsets)}",
            "end",
        ]


@dataclass(frozen=True)
class KnownSegment:
    """One segment of `listAllRemoteLogSegments`."""

    state: str
    start_offset: int
    end_offset: int
    broker_id: int
    event_timestamp_ms: int
    custom_metadata: bytes | None
    txn_index_empty: bool


@dataclass(frozen=True)
class CacheAnswers:
    """What Kafka answered about one sequence. Segments are named by id.

    `outcomes` has one word a step: `ok`, or the class name of the exception it raised. Where a query raised, its
    exception's class name, after a `!`, stands for the segment: `!EndlessLookUp` where Kafka would go round for ever.
    """

    outcomes: list[str] = field(default_factory=list)
    segments: dict[str, KnownSegment] = field(default_factory=dict)
    listing_refused: str | None = None
    highest_offset: dict[int, int | str | None] = field(default_factory=dict)
    listed: dict[int, frozenset[str]] = field(default_factory=dict)
    found: dict[tuple[int, int], str | None] = field(default_factory=dict)
    next_with_txn_index: dict[tuple[int, int], str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class DescribedRecord:
    """What Kafka reads in a record's value, and the bytes that it writes for that; or why it refuses."""

    refused: str | None
    written: bytes = b""
    text: str = ""


class OracleFailed(Exception):
    """The Java side ended; the text tells what it was doing."""


class CacheOracle:
    """A Java process with Kafka's cache in it, as a context manager; each question costs a fraction of a millisecond.

    Raises RigMissing when made on a machine without a JDK, or without Maven and the jars.
    """

    def __init__(self, jars: KafkaJars | None = None) -> None:
        jars = jars or kafka_jars(ORACLE_VERSION)
        classes = compile_java([JAVA_SOURCES / "CacheOracle.java"], jars.class_path)
        self._process = subprocess.Popen(
            [
                *(java_command(), "-Xmx256M", "-XX:+UseSerialGC", "-Dorg.slf4j.simpleLogger.defaultLogLevel=off"),
                *("-cp", os.pathsep.join([str(classes), jars.class_path]), ORACLE_CLASS),
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            start_new_session=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, raised: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the Java process; it ends by itself when this one does."""
        self._process.kill()
        self._process.communicate()

    def replay(self, sequence: EventSequence) -> CacheAnswers:
        """Replay one sequence through a fresh cache."""
        self._send(sequence.lines())
        return _parse_answers(self._answer_lines(), sequence.offsets)

    def replay_all(self, sequences: Iterable[EventSequence]) -> Iterator[CacheAnswers]:
        """Replay many sequences, each through a fresh cache; answers come in order, as they are asked for."""
        return map(self.replay, sequences)

    def describe(self, value: bytes) -> DescribedRecord:
        """What Kafka's serde reads in the value of a record of the metadata topic."""
        self._send([f"describe {value.hex()}".rstrip()])
        _, told, *text = self._receive().split(" ", 2)
        if told.startswith("!"):
            return DescribedRecord(refused=told[1:])
        return DescribedRecord(refused=None, written=bytes.fromhex(told), text=text[0])

    def _answer_lines(self) -> Iterator[list[str]]:
        while (words := self._receive().split(" ")) != ["end"]:
            yield words

    def _send(self, lines: Sequence[str]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write("\n".join(lines) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError as broken:
            raise OracleFailed(f"the oracle ended before {lines[0]!r}") from broken

    def _receive(self) -> str:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise OracleFailed(f"the oracle ended with {self._process.wait()} in the middle of an answer")
        return line.rstrip("\n")


def _parse_answers(lines: Iterable[list[str]], offsets: Sequence[int]) -> CacheAnswers:
    answers = CacheAnswers()
    for kind, *words in lines:
        if kind == "step":
            answers.outcomes.append(words[0].removeprefix("!"))
        elif kind == "segment":
            if words[0].startswith("!"):
                answers = CacheAnswers(outcomes=answers.outcomes, listing_refused=words[0][1:])
            else:
                answers.segments[words[0]] = _known_segment(words)
        else:
            epoch = int(words[0])
            if kind == "highest":
                refused = words[1].startswith("!")
                answers.highest_offset[epoch] = None if words[1] == "-" else words[1] if refused else int(words[1])
            elif kind == "list":
                answers.listed[epoch] = frozenset(words[1:])
            else:
                grid = answers.found if kind == "find" else answers.next_with_txn_index
                for offset, segment in zip(offsets, words[1:], strict=True):
                    grid[epoch, offset] = None if segment == "-" else segment
    return answers


def _known_segment(words: Sequence[str]) -> KnownSegment:
    _, state, start, end, broker, event_timestamp, custom, txn_index_empty = words
    return KnownSegment(
        state=state,
        start_offset=int(start),
        end_offset=int(end),
        broker_id=int(broker),
        event_timestamp_ms=int(event_timestamp),
        custom_metadata=None if custom == "-" else bytes.fromhex(custom[1:]),
        txn_index_empty=txn_index_empty == "true",
    )


def _custom(metadata: bytes | None) -> str:
    return "-" if metadata is None else f"x{metadata.hex()}"


def _comma_list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "-"
