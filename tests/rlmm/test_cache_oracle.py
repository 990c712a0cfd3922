"""Replay against Kafka's own classes: random histories, legal and not, and what real clusters wrote leave the same.

Events go to Kafka as the bytes that tieredctl writes, so that its writer is judged too.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from tests.event_histories import (
    EPOCHS,
    TEMPERS,
    Temper,
    boundaries,
    by_columns,
    event_by_event,
    partition_of,
    random_histories,
    random_history,
)
from tests.replay_by_events import RemotePartitionMetadataStore
from tests.rigs.availability import rig_unavailable
from tests.rigs.cache_oracle import AnsweredSegment, CacheOracle, PartitionAnswers, Question
from tests.rigs.prerequisites import RigMissing
from tests.shares import divided
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.metadata_text import KafkaText, event_text
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import (
    EventRecord,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
)
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.rlmm.cache import KnownSegment, RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata
from tieredctl.rlmm.states import Refusal

pytestmark = pytest.mark.integration

EVENTS = 200_000
NOT_FOUND = "RemoteResourceNotFoundException"
REMOVED = RemotePartitionDeleteState.DELETE_PARTITION_FINISHED
REFUSALS = {
    "dropped": Refusal.ILLEGAL_TRANSITION,
    f"swallowed {NOT_FOUND}": Refusal.UNKNOWN_SEGMENT,
    "!IllegalStateException": Refusal.REMOVED_PARTITION,
}
Place = tuple[int, int]
Replayed = RemotePartitionMetadataStore | ReplayedMetadata


@pytest.fixture(scope="module")
def oracle() -> Iterator[CacheOracle]:
    try:
        opened = CacheOracle()
    except RigMissing as missing:
        rig_unavailable(str(missing))
    with opened:
        yield opened


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_the_same_is_known_after_any_history(oracle: CacheOracle, temper: Temper) -> None:
    for number, records in divided([*enumerate(random_histories("known", temper, EVENTS // len(TEMPERS)))]):
        cut = random.Random(number).randint(0, len(records))

        compare(oracle, records, cut, EPOCHS)


@pytest.mark.parametrize(
    "capture",
    [
        "kafka-4.3.1",
        "kafka-3.9.1",
        "rlmm-3.4.1",
        "aiven-plain-4.3.1",
        "aiven-zstd-encrypted-4.3.1",
        "aiven-crash-4.3.1",
    ],
)
def test_the_same_is_known_of_a_captured_cluster(oracle: CacheOracle, captures: Path, capture: str) -> None:
    records = list(EventStream(LogDirectories([captures / capture / "data"])).records())
    starts = [record.event for record in records if isinstance(record.event, RemoteLogSegmentMetadata)]
    epochs = sorted({epoch for event in starts for epoch, _ in event.segment_leader_epochs})

    assert starts
    compare(oracle, records, len(records) // 2, [*epochs, epochs[-1] + 1])


def compare(oracle: CacheOracle, records: list[EventRecord], cut: int, epochs: Sequence[int]) -> None:
    """What both know once `cut` of the events were read, and at the end; and which events they refuse, and why."""
    partitions = sorted({partition_of(record.event) for record in records}, key=str)
    questions = {one: Question(*_named(one), epochs, boundaries(records, one)) for one in partitions}
    values = [encode_event(replace(record.event, form=RecordForm.KAFKA)) for record in records]
    told = oracle.replay([*values[:cut], *questions.values(), *values[cut:], *questions.values()])
    parts = records[:cut], records[cut:]
    metadata_partitions = 1 + max(record.metadata_partition for record in records)
    ways: list[Iterator[Replayed]] = [event_by_event(parts), by_columns(parts, metadata_partitions)]
    for way in ways:
        outcomes, answers = iter(told.outcomes), iter(told.partitions)
        refused: dict[Place, Refusal] = {}
        lasts: dict[tuple[TopicIdPartition, str], Place] = {}
        for part, metadata in zip(parts, way, strict=True):
            for record, outcome in zip(part, outcomes, strict=False):
                note(record, outcome, refused, lasts)
            assert refusals(metadata.findings) == refused
            for partition, question in questions.items():
                answer, own = next(answers), known(metadata, partition, question)
                assert own == reconciled(answer, own)
                for one in metadata.segments_of(partition):
                    place = one.metadata_partition, one.metadata_offset
                    assert place == lasts[partition, one.metadata.segment_id]


def note(
    record: EventRecord,
    outcome: str,
    refused: dict[Place, Refusal],
    lasts: dict[tuple[TopicIdPartition, str], Place],
) -> None:
    """What Kafka did with an event, in tieredctl's words."""
    place, event = (record.metadata_partition, record.metadata_offset), record.event
    if isinstance(event, RemotePartitionDeleteMetadata):
        assert outcome == "ok"  # Kafka does not look
    elif outcome == "ok":
        lasts[partition_of(event), event.segment_id] = place
    elif outcome == "!IllegalArgumentException":
        starts = isinstance(event, RemoteLogSegmentMetadata)
        refused[place] = Refusal.NOT_A_START if starts else Refusal.START_AS_UPDATE
    else:
        refused[place] = REFUSALS[outcome]


def refusals(findings: Iterable[Finding]) -> dict[Place, Refusal]:
    """Why events about segments were refused, by their places. To Kafka, a deleted segment is one that never was."""
    refused: dict[Place, Refusal] = {}
    for finding in findings:
        said = finding.evidence
        if "segmentId" in said:
            place = int(str(said["metadataPartition"])), int(str(said["metadataOffset"]))
            why = next(why for why in Refusal if finding.message.endswith(why.value))
            refused[place] = Refusal.UNKNOWN_SEGMENT if why is Refusal.DELETED_ALREADY else why
    return refused


def known(metadata: Replayed, partition: TopicIdPartition, question: Question) -> PartitionAnswers:
    """What tieredctl answers, in the oracle's words."""
    removal = metadata.partition_deletes.get(partition)
    answers = PartitionAnswers(removal.name if removal not in (None, REMOVED) else None)
    for one in metadata.segments_of(partition):
        answers.segments[one.metadata.segment_id] = answered(one.metadata)
    cache = metadata.caches.get(partition, RemoteLogMetadataCache())
    assert {one.metadata.segment_id for one in cache.list_remote_log_segments()} == answers.segments.keys()
    for epoch in question.epochs:
        answers.highest_offset[epoch] = cache.highest_offset_for_epoch(epoch)
        answers.listed[epoch] = frozenset(one.metadata.segment_id for one in cache.list_remote_log_segments(epoch))
        for offset in question.offsets:
            answers.found[epoch, offset] = _id(cache.remote_log_segment_metadata(epoch, offset))
    return answers


def answered(metadata: RemoteLogSegmentMetadata) -> AnsweredSegment:
    return AnsweredSegment(
        metadata.state.name,
        metadata.start_offset,
        metadata.end_offset,
        metadata.author,
        metadata.max_timestamp_ms,
        metadata.event_timestamp_ms,
        metadata.segment_size_in_bytes,
        metadata.segment_leader_epochs,
        metadata.custom_metadata,
        metadata.txn_idx_empty,
    )


def reconciled(answers: PartitionAnswers, own: PartitionAnswers) -> PartitionAnswers:
    """Kafka's answers, with those of tieredctl where Kafka gives none: it knows nothing of a partition that is removed,
    and lists no epoch of a segment that started twice with other epochs."""
    if answers.listing_refused:
        assert answers.listing_refused == [NOT_FOUND]
        return PartitionAnswers(
            answers.removal,
            highest_offset=dict.fromkeys(own.highest_offset),
            listed=dict.fromkeys(own.listed, frozenset()),
            found=dict.fromkeys(own.found),
        )
    failed = frozenset({f"!{NOT_FOUND}"})
    listed = {epoch: own.listed[epoch] if ids == failed else ids for epoch, ids in answers.listed.items()}
    return replace(answers, listed=listed)


def _named(partition: TopicIdPartition) -> tuple[str, int, str]:
    return partition.topic_id, partition.partition, partition.topic


def _id(found: KnownSegment | None) -> str | None:
    return found.metadata.segment_id if found else None


def test_the_same_text_and_bytes_of_events(oracle: CacheOracle) -> None:
    for record in random_history(random.Random(1), Temper(30), 10_000):
        value = encode_event(record.event)

        described = oracle.describe(value)

        assert described.refused is None
        assert described.written == value
        assert described.text == event_text(record.event, KafkaText())
