"""Kafka's own metadata store and caches, asked from Python: histories of events in, its answers out.

The line format between the two is described at the top of `java/CacheOracle.java`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from .line_program import LineProgram
from .maven import KafkaJars, kafka_jars

ORACLE_VERSION = "4.3.1"
ORACLE_CLASS = "org.apache.kafka.server.log.remote.metadata.storage.CacheOracle"


@dataclass(frozen=True)
class Question:
    """What to ask about a user partition: its segments, each epoch, and each offset in each of the epochs."""

    topic_id: str
    partition: int
    topic: str
    epochs: Sequence[int] = ()
    offsets: Sequence[int] = ()

    def line(self) -> str:
        """The question as the oracle reads it."""
        where = f"{self.topic_id} {self.partition} {self.topic}"
        return f"ask {where} {_comma_list(self.epochs)} {_comma_list(self.offsets)}"


@dataclass(frozen=True)
class AnsweredSegment:
    """One segment of `listAllRemoteLogSegments`: all of its fields but its id and its partition."""

    state: str
    start_offset: int
    end_offset: int
    broker_id: int
    max_timestamp_ms: int
    event_timestamp_ms: int
    size_in_bytes: int
    leader_epochs: tuple[tuple[int, int], ...]
    custom_metadata: bytes | None
    txn_index_empty: bool


@dataclass(frozen=True)
class PartitionAnswers:
    """What Kafka answers about one partition. Segments are named by id.

    `removal` is its RemotePartitionDeleteState, None where there is none, or no longer. Where a query raised, its
    exception's class name, after a `!`, stands for the segment.
    """

    removal: str | None
    segments: dict[str, AnsweredSegment] = field(default_factory=dict)
    listing_refused: list[str] = field(default_factory=list)
    highest_offset: dict[int, int | str | None] = field(default_factory=dict)
    listed: dict[int, frozenset[str]] = field(default_factory=dict)
    found: dict[tuple[int, int], str | None] = field(default_factory=dict)


@dataclass(frozen=True)
class HistoryAnswers:
    """What came of each event, and the answers to the questions, each in order.

    An outcome is `ok`; `dropped` where the cache silently left all as it was; `swallowed EXCEPTION` where the store
    caught what the cache raised; or `!EXCEPTION`, which stops a broker's reader of the topic.
    """

    outcomes: list[str] = field(default_factory=list)
    partitions: list[PartitionAnswers] = field(default_factory=list)


@dataclass(frozen=True)
class DescribedRecord:
    """What Kafka reads in a record's value, and the bytes that it writes for that; or why it refuses."""

    refused: str | None
    written: bytes = b""
    text: str = ""


class CacheOracle(LineProgram):
    """A Java process with Kafka's cache in it, as a context manager; each question costs a fraction of a millisecond.

    Raises RigMissing when made on a machine without a JDK, or without Maven and the jars.
    """

    def __init__(self, jars: KafkaJars | None = None) -> None:
        super().__init__(jars or kafka_jars(ORACLE_VERSION), ORACLE_CLASS)

    def replay(self, history: Sequence[bytes | Question]) -> HistoryAnswers:
        """Replay a history through a fresh store: values of records, with questions in between and at the end."""
        lines = [step.line() if isinstance(step, Question) else f"record {step.hex()}".rstrip() for step in history]
        self.send([*lines, "end"])
        questions = [step for step in history if isinstance(step, Question)]
        return _parse_answers(iter(self._receive_words, ["end"]), questions)

    def describe(self, value: bytes) -> DescribedRecord:
        """What Kafka's serde reads in the value of a record of the metadata topic."""
        self.send([f"describe {value.hex()}".rstrip()])
        _, told, *text = self.receive().split(" ", 2)
        if told.startswith("!"):
            return DescribedRecord(refused=told[1:])
        return DescribedRecord(refused=None, written=bytes.fromhex(told), text=text[0])

    def _receive_words(self) -> list[str]:
        return self.receive().split(" ")


def _parse_answers(lines: Iterator[list[str]], questions: Sequence[Question]) -> HistoryAnswers:
    answers = HistoryAnswers()
    asked = iter(questions)
    for kind, *words in lines:
        if kind == "took":
            answers.outcomes.append(" ".join(words))
        elif kind == "partition":
            question = next(asked)
            answers.partitions.append(PartitionAnswers(None if words[0] == "-" else words[0]))
        else:
            _parse_answer(answers.partitions[-1], question, kind, words)
    return answers


def _parse_answer(answers: PartitionAnswers, question: Question, kind: str, words: list[str]) -> None:
    if kind == "segment":
        if words[0].startswith("!"):
            answers.listing_refused.append(words[0][1:])
        else:
            answers.segments[words[0]] = _answered_segment(words)
        return
    epoch = int(words[0])
    if kind == "highest":
        refused = words[1].startswith("!")
        answers.highest_offset[epoch] = None if words[1] == "-" else words[1] if refused else int(words[1])
    elif kind == "list":
        answers.listed[epoch] = frozenset(words[1:])
    else:
        for offset, segment in zip(question.offsets, words[1:], strict=True):
            answers.found[epoch, offset] = None if segment == "-" else segment


def _answered_segment(words: Sequence[str]) -> AnsweredSegment:
    _, state, start, end, broker, max_timestamp, event_timestamp, size, epochs, custom, txn_index_empty = words
    pairs = (pair.partition(":") for pair in epochs.split(","))
    return AnsweredSegment(
        state=state,
        start_offset=int(start),
        end_offset=int(end),
        broker_id=int(broker),
        max_timestamp_ms=int(max_timestamp),
        event_timestamp_ms=int(event_timestamp),
        size_in_bytes=int(size),
        leader_epochs=tuple((int(epoch), int(offset)) for epoch, _, offset in pairs),
        custom_metadata=None if custom == "-" else bytes.fromhex(custom[1:]),
        txn_index_empty=txn_index_empty == "true",
    )


def _comma_list(numbers: Sequence[int]) -> str:
    return ",".join(map(str, numbers)) or "-"
