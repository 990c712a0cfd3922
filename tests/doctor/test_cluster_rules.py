"""A live cluster's facts: one that is broken is one finding."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.cache_by_events import said_once
from tests.metadata_logs import COPIED, DELETING, PARTITION, started
from tieredctl.model.clock import Clock
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, MetadataTopicFacts, PartitionFacts, ReplayFacts
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.doctor.diagnosis import diagnose, diagnose_settings
from tieredctl.ports.cluster import PartitionDescription, TopicDescription
from tieredctl.rlmm.cache import KnownSegment

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000
SEGMENT_BYTES = 100 << 20
RELEASE = Release(4, 3, 2)
BROKER = {
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.example.Storage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.copy.max.bytes.per.second": "1000000",
    "remote.log.manager.fetch.max.bytes.per.second": "1000000",
    "rlmm.config.remote.log.metadata.topic.num.partitions": None,
}
TOPIC = {
    "remote.storage.enable": "true",
    "retention.ms": str(240 * HOUR_MS),
    "local.retention.ms": str(24 * HOUR_MS),
    "segment.ms": str(24 * HOUR_MS),
    "segment.bytes": str(SEGMENT_BYTES),
}


def segment(number: int, start: int, end: int, *, epoch: int = 0, **fields: Any) -> KnownSegment:
    defaults = {
        "state": COPIED,
        "segment_size_in_bytes": SEGMENT_BYTES,
        "max_timestamp_ms": NOW_MS,
        "event_timestamp_ms": NOW_MS,
    }
    metadata: RemoteLogSegmentMetadata = started(number, start, end, {epoch: start}, **{**defaults, **fields})
    return said_once(metadata, 0, number)


PLACE = PartitionFacts(
    PARTITION,
    earliest=0,
    earliest_local=20,
    latest_tiered=19,
    latest=25,
    local_bytes=SEGMENT_BYTES,
    segments=[segment(1, 0, 9), segment(2, 10, 19)],
)
METADATA_TOPIC = MetadataTopicFacts(
    TopicDescription("__remote_log_metadata", "id", [PartitionDescription(0, 1, 0, (1, 2, 3), (1, 2, 3))]),
    {"retention.ms": "-1", "min.insync.replicas": "2", "cleanup.policy": "delete", "retention.bytes": "-1"},
)


def node(number: int, **changes: str | None) -> BrokerSettings:
    return BrokerSettings(f"broker {number}", {**BROKER, **_dotted(changes)}, RELEASE)


def _dotted(changes: Mapping[str, str | None]) -> dict[str, str | None]:
    return {name.replace("_", "."): value for name, value in changes.items()}


SOUND = ClusterSnapshot(
    Clock(NOW_MS, HOUR_MS),
    release=RELEASE,
    broker_releases={1: Release(4, 3), 2: Release(4, 3), 3: Release(4, 3)},
    finalized_release=Release(4, 3),
    brokers={number: node(number) for number in (1, 2, 3)},
    metadata_topic=METADATA_TOPIC,
    topics={"t": TopicSettings("t", TOPIC, RELEASE)},
    partitions=[PLACE],
    replay=ReplayFacts(100, 0.9, 1.0),
)


def found(**changes: Any) -> list[Finding]:
    """What is found apart from what is reported for every release."""
    return [one for one in diagnose(replace(SOUND, **changes)).findings if one.subject != "KAFKA-15401"]


def found_of(**changes: Any) -> list[Finding]:
    """The same, with a changed partition."""
    return found(partitions=[replace(PLACE, **changes)])


def with_topic(**changes: str) -> dict[str, TopicSettings]:
    return {"t": TopicSettings("t", {**TOPIC, **_dotted(changes)}, RELEASE)}


def metadata_topic(*, replicas: tuple[int, ...] = (1, 2, 3), **changes: str) -> MetadataTopicFacts:
    partition = PartitionDescription(0, 1, 0, replicas, replicas)
    settings = {**METADATA_TOPIC.settings, **_dotted(changes)}
    return MetadataTopicFacts(TopicDescription("__remote_log_metadata", "id", [partition]), settings)


def codes(findings: list[Finding]) -> list[str]:
    return [finding.code for finding in findings]


def test_nodes_that_have_something_in_common_are_one_finding() -> None:
    # A sound cluster has no finding.
    assert found() == []
    unlimited = {"remote_log_manager_copy_max_bytes_per_second": str((1 << 63) - 1)}
    (finding,) = found(brokers={1: node(1, **unlimited), 2: node(2), 3: node(3, **unlimited)})
    assert (finding.code, finding.subject) == ("broker-config-copy-quota", "brokers 1, 3")
    assert finding.evidence["brokerIds"] == [1, 3]
    # A broker without tiering among others is an error.
    off = {"remote_log_storage_system_enable": "false"}
    (finding,) = found(brokers={1: node(1), 2: node(2, **off), 3: node(3)})
    assert (finding.code, finding.subject, finding.severity) == (
        "broker-config-tiering-off",
        "broker 2",
        Severity.ERROR,
    )
    # Another number of metadata partitions is found.
    other = {"rlmm_config_remote_log_metadata_topic_num_partitions": "2"}
    assert codes(found(brokers={1: node(1, **other)})) == ["broker-config-metadata-partitions"]


def test_controllers_that_nobody_reports_are_unseen() -> None:
    # Controllers that nobody reports are reported as unseen.
    diagnosis = diagnose_settings(replace(SOUND, topics={}, controllers_apart=[100, 101]))
    assert codes(diagnosis.findings) == ["check-not-made"]
    assert diagnosis.summary()["complete"] is False
    # Controllers that let a topic be tiered are unseen without harm.
    diagnosis = diagnose_settings(replace(SOUND, controllers_apart=[100]))
    assert [finding.severity for finding in diagnosis.findings] == [Severity.INFO]
    assert diagnosis.summary()["complete"] is True
    assert len(diagnosis.summary()["notLookedAt"]) == 1


def test_what_a_release_is_found_to_be() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"release": Release(3, 8, 1), "topics": {}, "partitions": []}, "release-early-access"),
        ({"broker_releases": {1: Release(4, 3), 2: Release(4, 2)}}, "release-mixed"),
        ({"finalized_release": Release(4, 1)}, "release-mixed"),
        ({"release": None}, "release-unknown"),
    ]
    for changes, code in cases:
        assert [one for one in codes(found(**changes)) if one != "release-bug"] == [code], (changes, code)


def test_an_unsafe_metadata_topic_is_one_finding() -> None:
    cases: list[tuple[MetadataTopicFacts, str]] = [
        (metadata_topic(replicas=(1,)), "topic-config-metadata-replication"),
        (metadata_topic(min_insync_replicas="1"), "topic-config-metadata-min-isr"),
        (metadata_topic(min_insync_replicas="3"), "topic-config-metadata-min-isr"),
        (metadata_topic(retention_ms=str(240 * HOUR_MS)), "topic-config-metadata-retention"),
        (metadata_topic(retention_bytes="1000000"), "topic-config-metadata-retention"),
        (metadata_topic(cleanup_policy="compact"), "topic-config-metadata-retention"),
    ]
    for topic, code in cases:
        assert codes(found(metadata_topic=topic)) == [code], (topic, code)
    # Metadata that outlives all data is kept for long enough.
    assert found(metadata_topic=metadata_topic(retention_ms=str(240 * HOUR_MS + 1))) == []
    # A metadata partition without all its replicas is found.
    others: list[tuple[int | None, tuple[int, ...]]] = [(None, (1, 2, 3)), (1, (1, 2))]
    for leader, in_sync in others:
        partition = PartitionDescription(7, leader, 0, (1, 2, 3), in_sync)
        described = TopicDescription("__remote_log_metadata", "id", [partition])
        (finding,) = found(metadata_topic=MetadataTopicFacts(described, METADATA_TOPIC.settings))
        assert (finding.code, finding.subject) == ("metadata-topic-under-replicated", "__remote_log_metadata-7"), leader
    # A metadata topic that is not there is found.
    assert codes(found(has_metadata_topic=False, metadata_topic=None)) == ["metadata-topic-missing"]
    # A metadata topic that is slow and mostly dead is bloated.
    more: list[tuple[ReplayFacts, list[str]]] = [
        (ReplayFacts(7_000_000, 0.6, 70.0), ["metadata-topic-bloated"]),
        (ReplayFacts(7_000_000, 0.4, 70.0), []),
        (ReplayFacts(5_000_000, 0.9, 50.0), []),
    ]
    for replay, expected in more:
        assert codes(found(replay=replay)) == expected, (replay, expected)


def test_what_is_under_way_for_too_long_is_stuck() -> None:
    cases: list[tuple[int, list[str]]] = [(HOUR_MS, []), (HOUR_MS + 1, ["delete-stuck"])]
    for age_ms, expected in cases:
        deleting = segment(3, 0, 9, state=DELETING, event_timestamp_ms=NOW_MS - age_ms)
        assert codes(found(unfinished=[deleting])) == expected, (age_ms, expected)
    # What is tried again is as old as its first try.
    young = segment(3, 0, 9, state=DELETING, event_timestamp_ms=NOW_MS)
    tried = replace(young, entered_ms=NOW_MS - HOUR_MS - 1, tries=120)
    assert codes(found(unfinished=[tried])) == ["delete-stuck"]
    assert codes(found_of(earliest=10, segments=[*PLACE.segments, young])) == []
    assert codes(found_of(earliest=10, segments=[*PLACE.segments, tried])) == ["segments-below-log-start"]
    # Unfinished copies count towards retention before 3 8.
    unfinished = [*PLACE.segments, segment(3, 20, 24, state=started(3, 20, 24).state)]
    by_size = with_topic(retention_bytes=str(1 << 40))

    def counted(release: Release) -> list[str]:
        changes = {"release": release, "topics": by_size, "partitions": [replace(PLACE, segments=unfinished)]}
        return [one for one in codes(found(**changes)) if one == "retention-counts-unfinished"]

    assert counted(Release(3, 7, 2)) == ["retention-counts-unfinished"]
    assert counted(Release(3, 8, 0)) == []


def test_segments_below_the_log_start_are_found() -> None:
    (finding,) = found_of(earliest=10)
    assert finding.code == "segments-below-log-start"
    assert finding.evidence["segmentIds"] == [PLACE.segments[0].metadata.segment_id]
    # Segments below the log start are no finding while others are being deleted.
    deleting = segment(3, 0, 4, state=DELETING)
    assert found_of(earliest=10, segments=[*PLACE.segments, deleting]) == []


def test_segments_that_overlap_are_found() -> None:
    # A segment that a later leader overlaps is found with the offset that frees it.
    overlapping = replace(PLACE, segments=[segment(1, 0, 12), segment(2, 10, 19, epoch=1)])
    (finding,) = found(partitions=[overlapping], topics=with_topic(retention_ms="-1"))
    assert (finding.code, finding.severity) == ("segments-overlap", Severity.WARNING)
    assert finding.evidence["deleteRecordsOffset"] == 13
    # Of two copies the displaced one is left over.
    twice = [*PLACE.segments, segment(3, 10, 19)]
    displaced = twice[1].metadata.segment_id
    (finding,) = found_of(segments=twice, displaced=frozenset({displaced}))
    assert finding.severity is Severity.INFO  # retention brings the log start above it
    assert finding.evidence["segmentIds"] == [displaced]
    # A hole between remote and local is critical.
    (finding,) = found_of(earliest_local=22)
    assert (finding.code, finding.severity) == ("local-remote-gap", Severity.CRITICAL)
    assert finding.evidence["offsets"] == [20, 21]


def test_what_waits_to_be_tiered_is_behind() -> None:
    # More than two segments that wait are behind.
    cases: list[tuple[int, list[str]]] = [(2, []), (3, ["tiering-behind"])]
    for segments_waiting, expected in cases:
        assert codes(found_of(latest=50, local_bytes=segments_waiting * SEGMENT_BYTES)) == expected, segments_waiting
    # Nothing is behind where copying is disabled.
    read_only = with_topic(remote_log_copy_disable="true", local_retention_ms="-2")
    assert found(topics=read_only, partitions=[replace(PLACE, latest=50, local_bytes=9 * SEGMENT_BYTES)]) == []
    # A topic of which nothing was ever tiered is behind.
    untouched: dict[str, Any] = {
        "segments": [],
        "latest_tiered": None,
        "earliest_local": 0,
        "local_bytes": 3 * SEGMENT_BYTES,
    }
    assert codes(found_of(**untouched)) == ["tiering-behind"]


def test_what_local_disks_keep_too_long_is_found() -> None:
    # Tiered segments past local retention are not reclaimed.
    old = segment(2, 10, 19, max_timestamp_ms=NOW_MS - 25 * HOUR_MS - 1)
    assert codes(found_of(earliest_local=10, segments=[segment(1, 0, 9), old])) == [
        "local-disk-not-reclaimed",
        "kept-twice",
    ]
    # More bytes than local retention allows are not reclaimed.
    by_size = with_topic(local_retention_bytes=str(SEGMENT_BYTES))
    full = replace(PLACE, earliest_local=0, local_bytes=4 * SEGMENT_BYTES)
    assert codes(found(topics=by_size, partitions=[full])) == ["local-disk-not-reclaimed", "kept-twice"]
    # What is on disk and remote is counted.
    (finding,) = found_of(earliest_local=10, local_bytes=2 * SEGMENT_BYTES)
    assert (finding.code, finding.evidence["bytes"]) == ("kept-twice", SEGMENT_BYTES)
    # What has a segment of unknown size is the least there is.
    cases: list[tuple[str, dict[str, Any]]] = [
        ("segments-below-log-start", {"earliest": 10}),
        ("local-disk-not-reclaimed", {"earliest_local": 0}),
        ("kept-twice", {"earliest_local": 0}),
    ]
    for code, changes in cases:
        unknown = segment(1, 0, 9, segment_size_in_bytes=-1, max_timestamp_ms=NOW_MS - 25 * HOUR_MS - 1)
        findings = found_of(segments=[unknown, segment(2, 10, 19)], **changes)
        (finding,) = (one for one in findings if one.code == code)
        assert "at least" in finding.message, (code, changes)
        assert finding.evidence["bytes"] is None, (code, changes)


def test_what_could_not_be_looked_at_is_reported_next_to_everything_else() -> None:
    unseen = Finding(FindingCode.CHECK_NOT_MADE, "broker settings", "The user may not look at the cluster.")

    diagnosis = diagnose(replace(SOUND, brokers={}, not_looked_at=[unseen]))

    assert diagnosis.summary()["notLookedAt"] == ["broker settings: The user may not look at the cluster."]


def test_how_far_the_metadata_topic_is_from_being_compactable_is_reported() -> None:
    cases: list[tuple[int | None, str, list[str], str]] = [
        (
            100,
            "delete",
            ["metadata-topic-compaction"],
            "0 of 100 records have keys; cleanup.policy is delete",
        ),
        (40, "delete", ["metadata-topic-compaction"], "60 of 100 records have keys"),
        (0, "delete", ["metadata-topic-compaction"], "no record without a key prevents"),
        (0, "compact", ["metadata-topic-compaction"], "cleanup.policy is compact: no record without a key"),
        (1, "compact", ["metadata-topic-compaction", "topic-config-metadata-retention"], "it cannot be compacted"),
        (None, "delete", [], ""),
    ]
    for unkeyed, policy, expected, said in cases:
        replay = ReplayFacts(100, 0.0, 1.0, unkeyed)
        findings = found(replay=replay, metadata_topic=metadata_topic(cleanup_policy=policy))
        assert sorted(codes(findings)) == expected, (unkeyed, policy, expected, said)
        assert not expected or said in next(one.message for one in findings if one.code == expected[0]), unkeyed
