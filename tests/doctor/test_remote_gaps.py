"""Offsets that a leader's log start promises, its disk no longer has, and no segment of the metadata holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count

from tests.metadata_logs import DELETED, DELETING, TOPIC_ID, copied, partition_delete, started, updated
from tests.tiering.model_cluster import BROKER, NOW_MS, TOPIC, ModelCluster
from tieredctl.errors import ExitCode
from tieredctl.model.clock import Clock
from tieredctl.model.events import MetadataEvent, RemotePartitionDeleteState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity, exit_code_of
from tieredctl.ops.cluster.live_topics import AnsweredTopics
from tieredctl.ops.doctor.diagnosis import diagnose
from tieredctl.ops.doctor.gathering import gather_settings, with_tiered_data
from tieredctl.ops.doctor.unseen import with_unseen
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.status.facts import facts_of_cluster
from tieredctl.ports.cluster import ListedOffset, OffsetSpec, TopicDescription
from tieredctl.ports.metadata_source import truncated

FIRST_RECORD_AGE_MS = 2 * 3_600_000
GAPS = ("local-remote-gap", "offset-gap")
HOLES: dict[str, tuple[list[MetadataEvent], list[tuple[str, list[int]]]]] = {
    "the metadata is new and empty": ([], [("local-remote-gap", [0, 29])]),
    "it lacks the end": ([*copied(1, 0, 9)], [("local-remote-gap", [10, 29])]),
    "it lacks the beginning": ([*copied(2, 10, 19), *copied(3, 20, 29)], [("offset-gap", [0, 9])]),
    "it lacks the middle": ([*copied(1, 0, 9), *copied(3, 20, 29)], [("offset-gap", [10, 19])]),
    "more than what was deleted": (
        [*copied(1, 0, 9), *copied(2, 12, 15), updated(2, DELETING), updated(2, DELETED), *copied(3, 20, 29)],
        [("offset-gap", [10, 11]), ("offset-gap", [16, 19])],
    ),
    "only a copy that never ended was deleted": (
        [*copied(1, 0, 9), started(2, 10, 19), updated(2, DELETING), updated(2, DELETED), *copied(3, 20, 29)],
        [("offset-gap", [10, 19])],
    ),
    "only a copy that never ended is being deleted, at the end": (
        [*copied(1, 0, 9), *copied(2, 10, 19), started(3, 20, 29), updated(3, DELETING)],
        [("local-remote-gap", [20, 29])],
    ),
    "a copy did not end": (
        [*copied(1, 0, 9), *copied(2, 10, 19), started(3, 20, 29)],
        [("local-remote-gap", [20, 29])],
    ),
    "only another line of leaders has them": (
        [*copied(1, 0, 9), *copied(2, 5, 14), *copied(3, 10, 29, {1: 10})],
        [("local-remote-gap", [15, 29])],
    ),
}
WHOLE: dict[str, list[MetadataEvent]] = {
    "all of it is there": [*copied(1, 0, 9), *copied(2, 10, 19), *copied(3, 20, 29)],
    "the leader's disk has what is missing": [*copied(1, 0, 9), *copied(2, 10, 29), *copied(4, 40, 49)],
    "the first is being deleted": [*copied(1, 0, 9), *copied(2, 10, 29), updated(1, DELETING)],
    "the first was deleted": [*copied(1, 0, 9), *copied(2, 10, 29), updated(1, DELETING), updated(1, DELETED)],
    "all were deleted": [*copied(1, 0, 29), updated(1, DELETING), updated(1, DELETED)],
    "a later leader's went first": [
        *copied(1, 0, 9),
        *(*copied(2, 10, 19, {1: 10}), updated(2, DELETING), updated(2, DELETED)),
        *copied(3, 20, 29, {1: 20}),
    ],
    "a later leader's went first, and they were the last": [
        *copied(1, 0, 9),
        *(*copied(2, 10, 29, {1: 10}), updated(2, DELETING), updated(2, DELETED)),
    ],
    "the copies overlap": [*copied(1, 0, 12), *copied(2, 5, 29)],
}


@dataclass
class Leader(ModelCluster):
    """A tiered partition, with its own log start."""

    own: dict[str, str] = field(default_factory=lambda: {"remote.storage.enable": "true"})
    earliest: int | None = 0
    earliest_local: int = 30

    def list_offsets(self, topic: TopicDescription, timestamp: int) -> Mapping[int, ListedOffset]:
        listed = super().list_offsets(topic, timestamp)
        if timestamp == 0:
            return {0: ListedOffset(self.earliest, NOW_MS - FIRST_RECORD_AGE_MS)}
        return {0: ListedOffset(self.earliest)} if timestamp == OffsetSpec.EARLIEST else listed


class BusyLeader(Leader):
    """At each request, it takes the next of the steps in which it copies, trims its disk, and expires what is older
    than the last few segments. Each has ten offsets; of the `lost` one the metadata has nothing."""

    def __init__(self, steps_before: int, kept: int, lost: int = 0) -> None:
        super().__init__(earliest_local=0)
        self.steps = self._tiering(kept, lost)
        for _ in range(steps_before):
            next(self.steps)

    def boundary(self) -> None:
        super().boundary()
        next(self.steps)

    def _tiering(self, kept: int, lost: int) -> Iterator[None]:
        for number in count(1):
            begun, ended = copied(number, 10 * number - 10, 10 * number - 1)
            self._write(begun, number == lost)
            yield
            self._write(ended, number == lost)
            yield
            self.earliest_local = 10 * number
            yield
            expired = number - kept
            if expired > 0:
                self.earliest = 10 * expired
                yield
                self._write(updated(expired, DELETING), expired == lost)
                yield
                self._write(updated(expired, DELETED), expired == lost)
                yield

    def _write(self, event: MetadataEvent, is_lost: bool) -> None:
        if not is_lost:
            self.events.append(event)


@dataclass(frozen=True)
class KnownTopics:
    """All topics that there are."""

    topic_ids: frozenset[str]

    def is_live(self, topic_id: str) -> bool:
        return topic_id in self.topic_ids

    def describe(self) -> None:
        return None


def findings(cluster: ModelCluster) -> list[Finding]:
    seen = with_tiered_data(
        gather_settings(cluster, Clock(NOW_MS, 3_600_000), None), cluster, lambda: EventStream(cluster.source())
    )
    return diagnose(with_unseen(seen, cluster, AnsweredTopics(KnownTopics(frozenset({TOPIC_ID}))))).findings


def gaps(cluster: ModelCluster) -> list[tuple[str, object]]:
    return [(one.code.value, one.evidence["offsets"]) for one in findings(cluster) if one.code in GAPS]


def test_what_neither_the_metadata_nor_the_disk_has_is_found() -> None:
    for what, (events, expected) in HOLES.items():
        assert gaps(Leader(events=list(events))) == expected, what
    # It is critical and leads to a recovery of the metadata.
    (finding,) = (one for one in findings(Leader()) if one.code in GAPS)
    assert finding.severity is Severity.CRITICAL
    assert finding.subject == f"{TOPIC}-0"
    assert finding.remedy.startswith("tieredctl recover metadata ")
    # A partition that is removed and still promised is found.
    removed = partition_delete(RemotePartitionDeleteState.DELETE_PARTITION_FINISHED)
    assert gaps(Leader(events=[*copied(1, 0, 29), removed])) == [("local-remote-gap", [0, 29])]


def test_nothing_is_found_where_all_is_there_or_unknown() -> None:
    # Nothing is found where.
    for what, events in WHOLE.items():
        assert gaps(Leader(events=list(events))) == [], what
    # What is not known to be a gap is not called one.
    cases: list[Leader] = [
        Leader(earliest_local=0),
        Leader(earliest=30),
        Leader(earliest=None),
        Leader(own={}),
        Leader(broker=BROKER | {"remote.log.metadata.manager.class.name": "org.example.Metadata"}),
        Leader(denied=["broker_configs"]),
        Leader(denied=["source"]),
        Leader(source_findings=[truncated(0, 7)]),
    ]
    for leader in cases:
        assert gaps(leader) == [], leader


def test_a_leader_that_is_elected_or_a_topic_that_is_recreated_meanwhile_is_not_judged() -> None:
    # What a leader that was elected meanwhile has on its disk is no gap.
    class Elected(Leader):
        def source(self):  # type: ignore[no-untyped-def]
            self.earliest_local = 0
            return super().source()

    assert gaps(Elected()) == []

    # Offsets of a topic that is recreated meanwhile are not judged.
    class Recreated(Leader):
        def source(self):  # type: ignore[no-untyped-def]
            self.topic_id = "FBEiM0RVZneImaq7zN3u_w"
            return super().source()

    assert gaps(Recreated(topic_id=TOPIC_ID)) == []


def test_a_leader_that_copies_and_expires_leaves_no_gap_but_what_is_lost() -> None:
    # What is copied or expires between two requests leaves no gap.
    for steps_before in range(6):
        for kept in [1, 6]:
            leader = BusyLeader(steps_before + 6 * kept, kept)
            assert gaps(leader) == [], (steps_before, kept)
            assert leader.earliest_local > (leader.earliest or 0) > 0, (steps_before, kept)
    # Only the gap that is there is found while a leader copies and expires.
    for steps_before in range(20, 34):
        leader = BusyLeader(steps_before, kept=10, lost=5)
        assert gaps(leader) == [("offset-gap", [40, 49])], steps_before


def test_a_gap_that_expires_meanwhile_is_not_found_once_it_did() -> None:
    for steps_before in range(30, 60):
        leader = BusyLeader(steps_before, kept=8, lost=5)
        log_start_before = leader.earliest or 0
        found = gaps(leader)
        assert found in ([], [("offset-gap", [40, 49])]), steps_before
        assert not (log_start_before >= 50 and found), steps_before


def test_a_log_start_above_0_without_any_event_is_unknown_unless_retention_explains_it() -> None:
    cases: list[tuple[str, list[MetadataEvent], list[Severity]]] = [
        ("-1", [], [Severity.WARNING]),
        ("-1", copied(1, 30, 39), []),
        ("-1", [*copied(1, 0, 29), updated(1, DELETING), updated(1, DELETED)], []),
        (str(48 * 3_600_000), [], [Severity.WARNING]),
        (str(3_600_000), [], [Severity.INFO]),
    ]
    for retention_ms, events, expected in cases:
        settings = {"remote.storage.enable": "true", "retention.ms": retention_ms, "local.retention.ms": "-2"}
        leader = Leader(events=events, own=settings, earliest=30)
        found = [one for one in findings(leader) if one.code is FindingCode.LOG_START_UNEXPLAINED]
        assert [one.severity for one in found] == expected, (retention_ms, events, expected)
        assert exit_code_of(found) == (ExitCode.INCOMPLETE if Severity.WARNING in expected else ExitCode.CLEAN)
    # A log that begins at 0 needs no event.
    leader = Leader(earliest=0, earliest_local=0)
    assert FindingCode.LOG_START_UNEXPLAINED not in {one.code for one in findings(leader)}


def test_status_counts_at_least_where_the_metadata_lacks_segments() -> None:
    leader = Leader()
    seen = with_tiered_data(
        gather_settings(leader, Clock(NOW_MS, 3_600_000), None), leader, lambda: EventStream(leader.source())
    )

    facts = facts_of_cluster(seen, leader.cluster_id, diagnose(seen).findings)
    unreadable = facts_of_cluster(seen, leader.cluster_id, [Finding(FindingCode.EVENT_UNDECODABLE, "", "")])

    assert (facts.may_be_more, unreadable.may_be_more) == (True, True)
