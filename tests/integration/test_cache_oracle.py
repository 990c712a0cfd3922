"""Replay against Kafka's own classes: thousands of random event sequences, legal and not, must give the same answers.

Events go to Kafka as the bytes that tieredctl writes, so that its writer is judged too.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import pytest

from tests.metadata_logs import COPIED, PARTITION, copied, partition_delete, started, updated
from tests.rigs.availability import rig_unavailable
from tests.rigs.cache_oracle import CacheAnswers, CacheOracle, EventSequence, Initialized, KnownSegment, RecordValue
from tests.rigs.prerequisites import RigMissing
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.metadata_text import KafkaText, event_text
from tieredctl.model.events import (
    EventRecord,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.rlmm.cache import Refusal, RemoteLogMetadataCache
from tieredctl.rlmm.replay import RemotePartitionMetadataStore

pytestmark = pytest.mark.integration

SEQUENCES = 4_000
LAST_OFFSET, EPOCHS = 60, range(6)
OFFSETS = range(0, LAST_OFFSET + 4, 3)
STATES = list(RemoteLogSegmentState)
Event = RemoteLogSegmentMetadata | RemoteLogSegmentMetadataUpdate


@pytest.fixture(scope="module")
def oracle() -> Iterator[CacheOracle]:
    try:
        opened = CacheOracle()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with opened:
        yield opened


@dataclass(frozen=True)
class Temper:
    """How a sequence misbehaves: the chances, in percent, of an event out of order and of epochs without sense."""

    disorder: int
    odd_epochs: int


TEMPERS = (Temper(0, 0), Temper(15, 0), Temper(50, 0), Temper(15, 30))


def random_events(source: random.Random, temper: Temper) -> list[Event]:
    """The life of some ten segments of one partition: copies overlap, come again, leave gaps, fail, are deleted."""
    states: dict[int, RemoteLogSegmentState | None] = {}
    events: list[Event] = []
    ranges: list[tuple[int, int, dict[int, int]]] = []
    for _ in range(source.randint(1, 40)):
        if len(states) < 12 and (not states or source.random() < 0.35):
            number = len(states)
            states[number] = None
        else:
            number = source.choice(list(states))
        state = _next_state(source, states[number], temper)
        custom = source.choice([None, None, b"", b"key"])
        if state is RemoteLogSegmentState.COPY_SEGMENT_STARTED and source.randrange(100) >= temper.disorder // 3:
            # A copy that failed is tried again under a new id: the same range once more, or a part of it.
            start, end, epochs = source.choice(ranges) if ranges and source.random() < 0.3 else _range(source, temper)
            ranges.append((start, end, epochs))
            txn_idx_empty = source.random() < 0.6
            events.append(
                started(number, start, end, epochs, txn_idx_empty=txn_idx_empty, custom_metadata=custom, author=number)
            )
        elif source.randrange(300) < temper.disorder:
            events.append(started(number, 1, 2, state=state))
        else:
            events.append(updated(number, state, custom_metadata=custom, author=100 + number, event_timestamp_ms=7))
        states[number] = state
    return events


def _next_state(source: random.Random, before: RemoteLogSegmentState | None, temper: Temper) -> RemoteLogSegmentState:
    if source.randrange(100) < temper.disorder:
        return source.choice(STATES)
    if before is None or before is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED:
        return RemoteLogSegmentState.COPY_SEGMENT_STARTED
    failed = before is RemoteLogSegmentState.COPY_SEGMENT_STARTED and source.random() < 0.2
    return RemoteLogSegmentState(before + (2 if failed else 1))


def _range(source: random.Random, temper: Temper) -> tuple[int, int, dict[int, int]]:
    start = source.randrange(LAST_OFFSET)
    end = source.randint(start, min(start + 25, LAST_OFFSET))
    if source.randrange(100) < temper.odd_epochs:
        return start, end, {epoch: source.randrange(LAST_OFFSET) for epoch in source.sample(EPOCHS, 2)}
    count = source.choice([1, 1, 1, 2, 3])
    bounds = [start, *sorted(source.randint(start, end) for _ in range(count - 1))]
    return start, end, dict(zip(sorted(source.sample(EPOCHS, count)), bounds, strict=True))


def replayed(events: list[Event]) -> tuple[RemoteLogMetadataCache, RemotePartitionMetadataStore]:
    store = RemotePartitionMetadataStore()
    store.replay(EventRecord(0, offset, 0, decode_event(encode_event(event))) for offset, event in enumerate(events))
    return store.caches[PARTITION], store


def answers_of(cache: RemoteLogMetadataCache) -> CacheAnswers:
    """What tieredctl answers, in the oracle's words."""
    answers = CacheAnswers()
    for known in cache.list_remote_log_segments():
        metadata = known.metadata
        answers.segments[metadata.segment_id] = KnownSegment(
            metadata.state.name,
            metadata.start_offset,
            metadata.end_offset,
            metadata.author,
            metadata.event_timestamp_ms,
            metadata.custom_metadata,
            metadata.txn_idx_empty,
        )
    for epoch in EPOCHS:
        answers.highest_offset[epoch] = cache.highest_offset_for_epoch(epoch)
        answers.listed[epoch] = frozenset(known.metadata.segment_id for known in cache.list_remote_log_segments(epoch))
        for offset in OFFSETS:
            found = cache.remote_log_segment_metadata(epoch, offset)
            answers.found[epoch, offset] = found.metadata.segment_id if found else None
    return answers


def sequence_of(events: list[Event], through: Literal["cache", "store"]) -> EventSequence:
    values = [RecordValue(encode_event(event)) for event in events]
    return EventSequence([Initialized(), *values], EPOCHS, OFFSETS, through, topic="t")


@pytest.mark.parametrize("through", ["cache", "store"])
@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_the_same_answers_after_any_events(
    oracle: CacheOracle, temper: Temper, through: Literal["cache", "store"]
) -> None:
    for seed in range(SEQUENCES // len(TEMPERS) // 2):
        events = random_events(random.Random(f"{through} {temper} {seed}"), temper)
        cache, _ = replayed(events)

        answers = oracle.replay(sequence_of(events, through))

        ours = answers_of(cache)
        assert answers.segments == ours.segments, f"seed {seed}"
        assert answers.highest_offset == ours.highest_offset, f"seed {seed}"
        assert _listed(answers, ours) == ours.listed, f"seed {seed}"
        assert answers.found == ours.found, f"seed {seed}"


def _listed(answers: CacheAnswers, ours: CacheAnswers) -> dict[int, frozenset[str]]:
    """Kafka's listings; where it fails, for a segment that started twice with other epochs, tieredctl's stand in."""
    failed = frozenset({"!RemoteResourceNotFoundException"})
    return {epoch: ours.listed[epoch] if listed == failed else listed for epoch, listed in answers.listed.items()}


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_the_same_next_segment_with_a_transaction_index(oracle: CacheOracle, temper: Temper) -> None:
    for seed in range(300):
        events = random_events(random.Random(f"txn {temper} {seed}"), temper)
        cache, _ = replayed(events)

        answers = oracle.replay(sequence_of(events, "cache")).next_with_txn_index

        for (epoch, offset), expected in answers.items():
            if expected == "!EndlessLookUp":
                continue
            found = cache.next_segment_with_txn_index(epoch, offset)
            assert (found.metadata.segment_id if found else None) == expected, f"seed {seed}, {epoch}, {offset}"


def test_what_stops_kafkas_reader_is_told_as_such(oracle: CacheOracle) -> None:
    """Kafka's cache raises for some events, logs others; tieredctl notes both, and says which is which."""
    stopping = {Refusal.NOT_A_START, Refusal.START_AS_UPDATE}
    for seed in range(500):
        events = random_events(random.Random(f"outcomes {seed}"), Temper(60, 0))
        _, store = replayed(events)

        outcomes = oracle.replay(sequence_of(events, "store")).outcomes[1:]

        refused = {int(str(finding.evidence["metadataOffset"])): finding.message for finding in store.findings}
        stops = {offset for offset, said in refused.items() if any(said.endswith(why.value) for why in stopping)}
        assert stops == {offset for offset, outcome in enumerate(outcomes) if outcome != "ok"}, f"seed {seed}"


def test_an_event_of_a_removed_partition_stops_kafkas_reader(oracle: CacheOracle) -> None:
    removed = [partition_delete(state) for state in RemotePartitionDeleteState]
    steps = [*copied(1, 0, 9), *removed, started(2, 10, 19), updated(1, COPIED)]
    values = [RecordValue(encode_event(event)) for event in steps]

    outcomes = oracle.replay(EventSequence([Initialized(), *values], (), (), "store")).outcomes

    assert outcomes[-2:] == ["IllegalStateException", "IllegalStateException"]
    assert set(outcomes[:-2]) == {"ok"}


def test_the_same_text_and_bytes_of_events(oracle: CacheOracle) -> None:
    for seed in range(300):
        for event in random_events(random.Random(seed), Temper(30, 0)):
            value = encode_event(event)

            described = oracle.describe(value)

            assert described.refused is None
            assert described.written == value
            assert described.text == event_text(event, KafkaText())
