"""What is refused before anything is changed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import DELETING, PARTITION, TOPIC_ID, copied, updated
from tests.partition_removal.removed_topic import GONE, RemovedTopic
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.topic_removal.topic_metadata import TopicMetadata
from tieredctl.ops.topic_removal.topic_removal_plan import (
    RemovalScope,
    demand_silence,
    plan_partition,
    plan_removal,
    removal_scope,
)
from tieredctl.ports.metadata_source import OffsetRange
from tieredctl.rlmm.partitioner import metadata_partition

OTHER_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"


@dataclass
class Topics:
    """A cluster that gives one answer."""

    answer: bool | None

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return dict.fromkeys(topic_ids, self.answer)

    def describe(self) -> dict[str, object]:
        return {}


def scope_of(answer: bool | None, *, segment_events_only: bool = False, even_if_live: bool = False) -> RemovalScope:
    return removal_scope(TOPIC_ID, Topics(answer), segment_events_only=segment_events_only, even_if_live=even_if_live)


def refusal(call: Callable[[], object]) -> tuple[str, ExitCode]:
    with pytest.raises(TieredctlError) as raised:
        call()
    return raised.value.code, raised.value.exit_code


def test_which_topics_may_be_removed_and_how() -> None:
    # A topic that is gone may be removed.
    assert scope_of(False) == RemovalScope()
    # A topic that the cluster still has is refused.
    assert refusal(lambda: scope_of(True)) == ("topic-live", ExitCode.USAGE)
    # A topic of which the cluster does not clearly say that it is gone is refused.
    assert refusal(lambda: scope_of(None)) == ("topic-unclear", ExitCode.INCOMPLETE)
    # Partition delete records of a live topic are refused.
    assert refusal(lambda: scope_of(True, even_if_live=True)) == ("usage", ExitCode.USAGE)
    # A live topic that was named gets segment events.
    cases: list[bool | None] = [True, None]
    for answer in cases:
        scope = scope_of(answer, segment_events_only=True, even_if_live=True)
        assert scope == RemovalScope(segment_events_only=True, topic_is_live=True), answer
    # A topic that is gone is not a live one whatever was named.
    assert scope_of(False, even_if_live=True) == RemovalScope()


@pytest.mark.parametrize(("age_ms", "is_refused"), [(0, True), (599_999, True), (600_000, False)])
def test_a_topic_whose_brokers_wrote_events_in_the_last_ten_minutes_is_refused(age_ms: int, is_refused: bool) -> None:
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(1, 0)
    metadata = topic.metadata()
    metadata.refresh()
    plan = plan_partition(metadata.state(PARTITION), topic.store, LAYOUT, GONE)
    (last_ms,) = {event.event_timestamp_ms for event in topic.events}

    def demand() -> None:
        demand_silence([plan], TOPIC_ID, last_ms + age_ms)

    if is_refused:
        assert refusal(demand) == ("topic-in-use", ExitCode.INCOMPLETE)
    else:
        demand()


def test_a_topic_or_partition_without_events_is_refused() -> None:
    # A topic id without events is refused.
    metadata = RemovedTopic(copied(1, 0, 9)).metadata(OTHER_TOPIC_ID)
    metadata.refresh()
    assert refusal(metadata.partitions) == ("unknown-topic", ExitCode.USAGE)
    # A partition without events is refused.
    metadata = RemovedTopic(copied(1, 0, 9)).metadata(partition=7)
    metadata.refresh()
    assert refusal(metadata.partitions) == ("unknown-topic", ExitCode.USAGE)


@dataclass
class Truncated(EventsInMemory):
    def findings(self) -> list[Finding]:
        return [Finding(FindingCode.METADATA_TRUNCATED, "__remote_log_metadata-0", "it starts at offset 7", {})]


def test_metadata_that_is_not_whole_or_where_it_belongs_is_refused() -> None:
    # Metadata that lost its beginning is refused.
    metadata = TopicMetadata(TOPIC_ID, None, FollowedMetadata(lambda: Truncated(copied(1, 0, 9))))
    assert refusal(metadata.refresh) == ("metadata-incomplete", ExitCode.INCOMPLETE)
    # Events where the partitioner would not put them are refused.
    right = metadata_partition(TOPIC_ID, 0, 4)
    metadata = TopicMetadata(
        TOPIC_ID, None, FollowedMetadata(lambda: InPartition(copied(1, 0, 9), number=(right + 1) % 4))
    )
    assert refusal(metadata.refresh) == ("metadata-incomplete", ExitCode.INCOMPLETE)
    # Events go to the metadata partition that the partitioner gives.
    right = metadata_partition(TOPIC_ID, 0, 4)
    metadata = TopicMetadata(TOPIC_ID, None, FollowedMetadata(lambda: InPartition(copied(1, 0, 9), number=right)))
    metadata.refresh()
    assert [metadata.state(one).metadata_partition for one in metadata.partitions()] == [right]


@dataclass
class InPartition(EventsInMemory):
    """All events in one of several metadata partitions."""

    number: int = 0
    count: int = 4

    def metadata_partitions(self) -> list[int]:
        return list(range(self.count))

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        return super().chunks(0, from_offset) if metadata_partition == self.number else iter(())

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return super().offset_range(0) if metadata_partition == self.number else OffsetRange(0, 0)


def test_metadata_that_became_anothers_is_refused() -> None:
    # Metadata that has less than before is refused.
    topic = RemovedTopic(copied(1, 0, 9))
    metadata = topic.metadata()
    metadata.refresh()
    del topic.events[1:]
    assert refusal(metadata.refresh) == ("world-changed", ExitCode.INCOMPLETE)
    # Metadata of another cluster than before is refused.
    source = Identified(copied(1, 0, 9))
    metadata = TopicMetadata(TOPIC_ID, None, FollowedMetadata(lambda: source))
    metadata.refresh()
    source.cluster_id = "two"
    assert refusal(metadata.refresh) == ("another-cluster", ExitCode.USAGE)
    # A metadata topic that was made again is refused however many events it has.
    cases: list[str | None] = [OTHER_TOPIC_ID, None]
    for found in cases:
        source = Identified(copied(1, 0, 9))
        followed = FollowedMetadata(lambda source=source: source)  # type: ignore[misc]
        metadata = TopicMetadata(TOPIC_ID, None, followed)
        metadata.refresh()
        source.metadata_topic_id, source.events = found, [*copied(2, 0, 9), *copied(3, 10, 19)]
        assert refusal(metadata.refresh) == ("world-changed", ExitCode.INCOMPLETE), found


@dataclass
class Identified(EventsInMemory):
    """Metadata that tells whose it is, and which topic."""

    cluster_id: str | None = "one"
    metadata_topic_id: str | None = TOPIC_ID


def planned(topic: RemovedTopic) -> object:
    metadata = topic.metadata()
    metadata.refresh()
    return plan_removal(metadata, topic.store, LAYOUT, GONE)


def test_a_store_that_has_nothing_of_this_cluster_is_refused() -> None:
    topic = RemovedTopic(copied(1, 0, 9))
    topic.copy(2, 0, replace(PARTITION, topic_id=OTHER_TOPIC_ID))
    assert refusal(lambda: planned(topic)) == ("no-overlap", ExitCode.USAGE)
    # A store that has other topics of the cluster may have lost this one.
    other = replace(PARTITION, topic_id=OTHER_TOPIC_ID)
    topic = RemovedTopic([*copied(1, 0, 9), *copied(2, 0, 9, partition=other)])
    topic.copy(2, 0, other)
    assert planned(topic)
    # A removal whose objects are all gone may be ended in an empty store.
    topic = RemovedTopic([*copied(1, 0, 9), updated(1, DELETING)])
    assert planned(topic)
