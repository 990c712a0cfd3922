"""What was stored before the metadata that would name it begins may be the only copy of what a lost topic named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tests.event_histories import HistoryInMemory
from tests.faults.cluster import LAYOUT
from tests.metadata_logs import FIRST_TIMESTAMP_MS, PARTITION, copied, segment_id
from tieredctl.errors import ExitCode
from tieredctl.model.events import EventRecord, MetadataEvent
from tieredctl.model.findings import exit_code_of
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.guards.store_clock import MOST_SKEW_MS
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.scan import Scan, ScanOptions
from tieredctl.ops.remote.listing import SpooledListing
from tieredctl.ports.layout import ExplainedKey, Part
from tieredctl.rlmm.partitioner import metadata_partition
from tieredctl.storage.memory import MemoryStore

HOUR_MS = 3_600_000
NOW_MS = FIRST_TIMESTAMP_MS + 1_000 * HOUR_MS
METADATA_PARTITIONS = 4
IDLE_TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
OWN = metadata_partition(PARTITION.topic_id, PARTITION.partition, METADATA_PARTITIONS)
ELSEWHERE = next(
    other
    for other in (replace(PARTITION, partition=number) for number in range(1, 100))
    if metadata_partition(other.topic_id, other.partition, METADATA_PARTITIONS) != OWN
)
"""A partition of the same topic, whose events are in another metadata partition."""
OF_ELSEWHERE = metadata_partition(ELSEWHERE.topic_id, ELSEWHERE.partition, METADATA_PARTITIONS)


@dataclass
class Source(HistoryInMemory):
    """Metadata of one kind of source."""

    kind: str = "topic"

    def __init__(self, records: Sequence[EventRecord]) -> None:
        super().__init__(records, METADATA_PARTITIONS)

    def describe(self) -> dict[str, object]:
        return {"kind": self.kind}


class LogDirectories(Source):
    kind = "log-directory"


class Export(Source):
    kind = "export"


def key(number: int, partition: TopicIdPartition = PARTITION) -> str:
    identity = ExplainedKey(partition.topic, partition.topic_id, partition.partition, 0, segment_id(number), Part.LOG)
    return LAYOUT.promised_objects(identity)[Part.LOG]


def written(*events: tuple[int, MetadataEvent], partition: int = OWN) -> list[EventRecord]:
    """Events of one metadata partition, each with its record's time."""
    return [EventRecord(partition, offset, time_ms, event) for offset, (time_ms, event) in enumerate(events)]


def copied_at(
    time_ms: int, number: int, start: int, partition: TopicIdPartition = PARTITION
) -> list[tuple[int, MetadataEvent]]:
    events = copied(number, start, start + 9, partition=partition, event_timestamp_ms=time_ms)
    return [(time_ms, event) for event in events]


def scan(
    records: Sequence[EventRecord],
    *keys: str,
    modified_ms: int,
    source: type[Source] = LogDirectories,
    min_age_ms: int = 24 * HOUR_MS,
    live: frozenset[str] | None = None,
) -> Scan:
    store = MemoryStore()
    for one in keys:
        store.put(one, b"bytes", modified_ms)
    options = ScanOptions(NOW_MS, min_age_ms, TopicSources(live))
    return Scan(SpooledListing(store.list()), LAYOUT, store.url, lambda: EventStream(source(records)), options)


def status(records: Sequence[EventRecord], one: str, **how: object) -> str:
    (document,) = scan(records, one, **how).documents()  # type: ignore[arg-type]
    return str(document["status"])


BEGINS_MS = FIRST_TIMESTAMP_MS
LATER_MS = BEGINS_MS + 100 * HOUR_MS
TOPIC = written(*copied_at(BEGINS_MS, 1, 0), *copied_at(LATER_MS, 2, 10))


def test_an_object_that_no_event_names_is_an_orphan_only_if_it_came_while_the_metadata_was_kept() -> None:
    for modified_ms, expected in (
        (BEGINS_MS - 1, "unknown"),
        (BEGINS_MS + MOST_SKEW_MS - 1, "unknown"),  # as far after as clocks may differ
        (BEGINS_MS + MOST_SKEW_MS, "orphan"),
        (LATER_MS - MOST_SKEW_MS, "orphan"),
        (LATER_MS - MOST_SKEW_MS + 1, "unknown"),  # as far before the last copy
        (LATER_MS + 1, "in-progress"),
    ):
        for source in (Source, LogDirectories, Export):
            assert status(TOPIC, key(9), modified_ms=modified_ms, source=source) == expected, (modified_ms, source)


def test_clocks_are_taken_as_they_are_where_no_age_is_asked_for() -> None:
    assert status(TOPIC, key(9), modified_ms=BEGINS_MS, min_age_ms=0) == "orphan"
    assert status(TOPIC, key(9), modified_ms=BEGINS_MS - 1, min_age_ms=0) == "unknown"
    # What an event names is judged by it, however old it is.
    assert status(TOPIC, key(1), modified_ms=BEGINS_MS - 100 * HOUR_MS) == "owned"


def test_each_metadata_partition_begins_by_itself() -> None:
    lost = [
        *written(*copied_at(LATER_MS, 2, 10)),
        *written(
            *copied_at(BEGINS_MS, 3, 0, ELSEWHERE), *copied_at(LATER_MS, 4, 10, ELSEWHERE), partition=OF_ELSEWHERE
        ),
    ]
    between_ms = BEGINS_MS + 50 * HOUR_MS
    assert status(lost, key(9), modified_ms=between_ms) == "unknown"
    assert status(lost, key(9, ELSEWHERE), modified_ms=between_ms) == "orphan"
    # A metadata partition without a record names nothing and proves nothing.
    assert status(TOPIC, key(9, ELSEWHERE), modified_ms=BEGINS_MS + 50 * HOUR_MS) == "unknown"


def test_a_half_recovered_topic_begins_when_it_was_recovered() -> None:
    """The events that are written again say when the segment was stored; their records do not."""
    stored_ms = BEGINS_MS - 500 * HOUR_MS
    events = copied(1, 0, 9, event_timestamp_ms=stored_ms)
    half = written(*((BEGINS_MS, event) for event in events), *copied_at(LATER_MS, 2, 10))

    assert status(half, key(9), modified_ms=stored_ms + HOUR_MS) == "unknown"


def test_a_log_whose_first_record_has_no_time_or_with_a_wrong_clock_in_it_proves_nothing() -> None:
    for time_ms in (-1, 0):
        untimed = written(*copied_at(time_ms, 1, 0), *copied_at(LATER_MS, 2, 10))
        assert status(untimed, key(9), modified_ms=BEGINS_MS) == "unknown", time_ms
    wrong = written(*copied_at(BEGINS_MS, 1, 0), *copied_at(1_000, 3, 20), *copied_at(LATER_MS, 2, 10))
    assert status(wrong, key(9), modified_ms=BEGINS_MS - 1) == "unknown"


def test_a_topic_without_events_may_have_had_some_in_metadata_that_was_lost() -> None:
    idle = key(9, TopicIdPartition(IDLE_TOPIC_ID, "idle", 0))
    records = [
        record
        for number in range(METADATA_PARTITIONS)
        for record in written(*copied_at(BEGINS_MS, 1, 0), partition=number)
    ]

    for live, expected in ((None, "unknown"), (frozenset({PARTITION.topic_id}), "foreign")):
        assert status(records, idle, modified_ms=BEGINS_MS - 1, live=live) == expected, live
        assert status(records, idle, modified_ms=LATER_MS, live=live) == "foreign", live


def test_a_finding_counts_what_is_older_than_the_metadata_and_leads_to_its_recovery() -> None:
    found = scan(TOPIC, key(1), key(8), key(9), modified_ms=BEGINS_MS - HOUR_MS)

    evidence = [document["evidence"] for document in found.documents() if document["status"] == "unknown"]

    (finding,) = found.findings
    assert (finding.code, finding.evidence) == ("object-older-than-metadata", {"objects": 2, "bytes": 10})
    assert finding.remedy.startswith("tieredctl recover metadata ")
    assert evidence == [{"metadataPartition": OWN, "noEventBefore": len(TOPIC), "reason": "older-than-metadata"}] * 2
    assert exit_code_of(found.findings) is ExitCode.FINDINGS
