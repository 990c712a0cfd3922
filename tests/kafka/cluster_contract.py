"""What every `Cluster` has to do, a real one and a model of one: the same kinds of answers, the same refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Protocol

import pytest

from tests.rigs.waiting import wait_until
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.ids import uuid_bytes
from tieredctl.ports.cluster import (
    Cluster,
    ListedOffset,
    OffsetSpec,
    TopicDescription,
    leader_bytes,
    settings_of,
)
from tieredctl.ports.metadata_source import METADATA_TOPIC

ABSENT = "no-such-topic"
OWN, DEFAULT = "DYNAMIC_TOPIC_CONFIG", "DEFAULT_CONFIG"
SOURCES = {OWN, "DYNAMIC_BROKER_CONFIG", "DYNAMIC_DEFAULT_BROKER_CONFIG", "STATIC_BROKER_CONFIG", DEFAULT}
UNSUPPORTED = ListedOffset(None, error="UNSUPPORTED_VERSION")
LONG_AGO_MS, FAR_AHEAD_MS = 0, 1 << 52
RETENTION, OTHER_RETENTION_MS = "retention.ms", "87654321"
SECONDS = 30
SECRETS = re.compile(r"(password|jaas\.config)$")


class ClosableCluster(Cluster, Protocol):
    """One that was opened, and is to be closed."""

    def close(self) -> None: ...


@dataclass(frozen=True)
class KnownCluster:
    """A cluster at rest that tiers, and what is known of it."""

    cluster: Cluster
    cluster_id: str
    topic: str
    """Of its own, with one partition and records, whose settings a test may change: not tiered."""
    refused: frozenset[OffsetSpec]
    """What its release does not know."""
    another: Callable[[], ClosableCluster]
    """Opens the same cluster once more."""


class ClusterContract:
    """To be inherited by the tests of a cluster, which have a fixture `known`."""

    @pytest.fixture
    def cluster(self, known: KnownCluster) -> Cluster:
        return known.cluster

    @pytest.fixture
    def topic(self, known: KnownCluster) -> TopicDescription:
        return known.cluster.topic(known.topic)

    def test_it_tells_which_cluster_it_is(self, known: KnownCluster) -> None:
        assert known.cluster.cluster_id == known.cluster_id
        assert known.cluster.describe()["clusterId"] == known.cluster_id
        assert known.cluster.describe()["kind"] == "cluster"

    def test_every_topic_that_it_names_can_be_described(self, known: KnownCluster) -> None:
        names, partitions = list(known.cluster.topic_names()), known.cluster.topic_partitions()

        assert names == sorted(names) == sorted(partitions)
        assert {known.topic, METADATA_TOPIC} <= set(names)
        for name in names:
            described = known.cluster.topic(name)
            assert described.topic == name
            assert tuple(described.partitions) == tuple(partitions[name])
            assert [one.partition for one in described.partitions] == list(range(len(described.partitions)))
            assert all(one.leader in one.in_sync_replicas for one in described.partitions)
            assert all(set(one.in_sync_replicas) <= set(one.replicas) for one in described.partitions)

    def test_each_topic_has_an_id_of_its_own(self, cluster: Cluster) -> None:
        ids = [cluster.topic(name).topic_id for name in cluster.topic_names()]

        assert len({uuid_bytes(one) for one in ids}) == len(ids)
        assert ids == [cluster.topic(name).topic_id for name in cluster.topic_names()]

    def test_a_topic_that_is_not_there_is_unknown(self, cluster: Cluster) -> None:
        with pytest.raises(TieredctlError, match=f"has no topic {ABSENT}") as described:
            cluster.topic(ABSENT)
        with pytest.raises(TieredctlError) as settings:
            settings_of(cluster, ABSENT)
        with pytest.raises(TieredctlError) as changed:
            cluster.alter_topic_configs(ABSENT, {RETENTION: OTHER_RETENTION_MS}, validate_only=True)

        codes = {raised.value.code for raised in (described, settings, changed)}
        assert codes == {ErrorCode.UNKNOWN_TOPIC}
        assert described.value.exit_code is ExitCode.USAGE

    def test_of_a_topic_that_is_not_there_it_tells_nothing(self, cluster: Cluster, topic: TopicDescription) -> None:
        assert list(cluster.topic_configs([ABSENT, topic.topic])) == [topic.topic]
        assert cluster.topic_configs([]) == {}
        assert cluster.replica_bytes([ABSENT]) == {}
        assert cluster.free_bytes([ABSENT]) == {}

    def test_of_a_topic_that_was_deleted_since_it_was_described_no_leader_tells_offsets(
        self, cluster: Cluster, topic: TopicDescription
    ) -> None:
        deleted = replace(topic, topic=ABSENT)

        with pytest.raises(TieredctlError) as offsets:
            cluster.list_offsets(deleted, OffsetSpec.EARLIEST)
        with pytest.raises(TieredctlError) as epochs:
            cluster.epoch_end_offset(deleted, 0, 0)

        assert {raised.value.code for raised in (offsets, epochs)} == {ErrorCode.UNKNOWN_TOPIC}

    def test_what_cannot_be_a_topics_name_is_wrong_usage(self, cluster: Cluster) -> None:
        with pytest.raises(TieredctlError, match="is not a valid topic name") as raised:
            cluster.topic("not a name")

        assert raised.value.code is ErrorCode.USAGE

    def test_each_partition_has_an_offset_or_none_of_every_kind(
        self, known: KnownCluster, topic: TopicDescription
    ) -> None:
        asked = set(OffsetSpec) - known.refused
        found = {spec: known.cluster.list_offsets(topic, spec) for spec in asked}

        assert all(list(one) == [partition.partition for partition in topic.partitions] for one in found.values())
        assert all(answer.error is None for one in found.values() for answer in one.values())
        for number in found[OffsetSpec.LATEST]:
            earliest, local, latest = (
                found[spec][number].offset
                for spec in (OffsetSpec.EARLIEST, OffsetSpec.EARLIEST_LOCAL, OffsetSpec.LATEST)
            )
            assert earliest is not None
            assert local is not None
            assert latest is not None
            assert 0 <= earliest <= local < latest
            tiered = found[OffsetSpec.LATEST_TIERED][number].offset if OffsetSpec.LATEST_TIERED in asked else None
            assert tiered is None or tiered < latest
            newest = found[OffsetSpec.MAX_TIMESTAMP][number]
            assert newest.offset is not None
            assert earliest <= newest.offset < latest
            assert newest.timestamp_ms is not None

    def test_an_offset_that_its_release_does_not_know_is_an_answer_of_its_own(
        self, known: KnownCluster, topic: TopicDescription
    ) -> None:
        for spec in known.refused:
            assert known.cluster.list_offsets(topic, spec) == {one.partition: UNSUPPORTED for one in topic.partitions}

    def test_a_time_gives_the_first_record_of_then_or_later(self, cluster: Cluster, topic: TopicDescription) -> None:
        earliest = cluster.list_offsets(topic, OffsetSpec.EARLIEST)

        of_long_ago = cluster.list_offsets(topic, LONG_AGO_MS)
        of_the_future = cluster.list_offsets(topic, FAR_AHEAD_MS)

        assert {number: answer.offset for number, answer in of_long_ago.items()} == {
            number: answer.offset for number, answer in earliest.items()
        }
        assert of_the_future == {one.partition: ListedOffset(None) for one in topic.partitions}

    def test_the_newest_epoch_ends_where_the_log_does(self, cluster: Cluster, topic: TopicDescription) -> None:
        for one in topic.partitions:
            latest = cluster.list_offsets(topic, OffsetSpec.LATEST)[one.partition].offset

            assert cluster.epoch_end_offset(topic, one.partition, one.leader_epoch) == (one.leader_epoch, latest)
            assert cluster.epoch_end_offset(topic, one.partition, one.leader_epoch + 1) is None

    def test_a_setting_tells_where_it_comes_from(self, known: KnownCluster) -> None:
        own, metadata = known.cluster.topic_configs([known.topic, METADATA_TOPIC]).values()

        assert {value.source for value in (*own.values(), *metadata.values())} <= SOURCES
        assert own["remote.storage.enable"] == ("false", DEFAULT)
        assert metadata[RETENTION] == ("-1", OWN)

    def test_each_broker_has_settings_but_shows_no_secret(self, cluster: Cluster, topic: TopicDescription) -> None:
        brokers = cluster.broker_configs()

        assert set(brokers) == set(cluster.broker_features()) >= set(topic.partitions[0].replicas)
        for settings in brokers.values():
            assert {value.source for value in settings.values()} <= SOURCES
            assert settings["remote.log.storage.system.enable"] == ("true", "STATIC_BROKER_CONFIG")
            secrets = [value for name, value in settings.items() if SECRETS.search(name)]
            assert {value.value for value in secrets} == {None}

    def test_the_level_of_its_metadata_is_agreed_upon(self, cluster: Cluster) -> None:
        features = cluster.broker_features().values()

        assert all(one.finalized["metadata.version"] <= one.supported["metadata.version"] for one in features)
        assert len({one.finalized["metadata.version"] for one in features}) == 1

    def test_controllers_vote_and_brokers_follow_them(self, cluster: Cluster) -> None:
        progress = cluster.metadata_progress()

        assert cluster.quorum().voters
        assert progress.end is not None
        assert set(progress.applied) == set(cluster.broker_features())
        assert all(applied is not None and applied <= progress.end for applied in progress.applied.values())

    def test_what_a_partition_has_on_disk_is_told_for_its_leader(
        self, cluster: Cluster, topic: TopicDescription
    ) -> None:
        (partition,) = topic.partitions

        assert set(cluster.replica_bytes([topic.topic])) == {(topic.topic, partition.partition)}
        assert leader_bytes(cluster, topic.topic, partition) > 0
        assert set(cluster.free_bytes([topic.topic])) == set(partition.replicas)

    def test_a_judged_change_is_not_made(self, cluster: Cluster, topic: TopicDescription) -> None:
        before = settings_of(cluster, topic.topic)

        cluster.alter_topic_configs(topic.topic, {RETENTION: OTHER_RETENTION_MS}, validate_only=True)

        assert settings_of(cluster, topic.topic) == before

    def test_a_change_is_made_and_taken_away_again(self, cluster: Cluster, topic: TopicDescription) -> None:
        before = settings_of(cluster, topic.topic)
        changed = {**before, RETENTION: (OTHER_RETENTION_MS, OWN)}

        # Brokers learn of a change a moment after the controller made it.
        cluster.alter_topic_configs(topic.topic, {RETENTION: OTHER_RETENTION_MS}, validate_only=False)
        wait_until(lambda: settings_of(cluster, topic.topic) == changed, "the change is seen", SECONDS)
        cluster.alter_topic_configs(topic.topic, {RETENTION: None}, validate_only=False)
        wait_until(lambda: settings_of(cluster, topic.topic) == before, "it is seen to be gone", SECONDS)

    @pytest.mark.parametrize("validate_only", [True, False])
    @pytest.mark.parametrize(
        "refused",
        [
            {"no.such.setting": "1"},
            {"retention.ms": "soon"},
            {"remote.storage.enable": "true", "cleanup.policy": "compact"},
        ],
        ids=",".join,
    )
    def test_of_changes_that_kafka_refuses_none_is_made(
        self, cluster: Cluster, topic: TopicDescription, refused: dict[str, str], validate_only: bool
    ) -> None:
        before = settings_of(cluster, topic.topic)
        changes = {"segment.ms": "7654321", **refused}

        with pytest.raises(TieredctlError, match=f"Kafka refuses these settings of topic {topic.topic}: .") as raised:
            cluster.alter_topic_configs(topic.topic, changes, validate_only=validate_only)

        assert raised.value.code is ErrorCode.CONFIG_REFUSED
        assert settings_of(cluster, topic.topic) == before

    def test_one_that_was_closed_does_not_answer_and_may_be_closed_again(self, known: KnownCluster) -> None:
        cluster = known.another()
        cluster.close()

        with pytest.raises(ValueError, match="closed"):
            cluster.topic(known.topic)
        cluster.close()
