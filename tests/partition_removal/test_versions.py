"""`--delete-versions`: what a versioned bucket keeps of a removed partition goes too, and nothing else."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from tests.faults.cluster import LAYOUT
from tests.metadata_logs import DELETED, DELETING, PARTITION, copied, updated
from tests.partition_removal.removed_topic import EVENTS_ONLY, GONE, LIVE, RemovedTopic, identity
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ObjectServer
from tests.rigs.versioned_bucket import VersionedBucket
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.guards.kept_versions import DeletedVersions, delete_versions
from tieredctl.ops.topic_removal.topic_removal_plan import RemovalScope
from tieredctl.ports.object_store import KeptVersion, StoredObject, WritableObjectStore
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_writable_store

OTHER = TopicIdPartition("usSppaB_RU2xGRV7FKvWnA", "t", 0)
PARTS = len(LAYOUT.promised_objects(identity(1, 0)))


@pytest.fixture
def bucket(moto: ObjectServer) -> Iterator[VersionedBucket]:
    with VersionedBucket(S3Bucket(moto.endpoint).client, moto.endpoint) as bucket:
        yield bucket


@pytest.fixture
def store(bucket: VersionedBucket, moto: ObjectServer) -> WritableObjectStore:
    _, url, *_ = bucket.store_words()
    return open_writable_store(url, {"endpoint": moto.endpoint, "addressing-style": "path"})


def keys_of(number: int, start: int, partition: TopicIdPartition = PARTITION) -> set[str]:
    return set(LAYOUT.promised_objects(identity(number, start, partition)).values())


def removed(topic: RemovedTopic, store: WritableObjectStore, scope: RemovalScope = GONE) -> DeletedVersions:
    outcome = topic.remove(scope, store=store, with_versions=True)
    assert outcome.is_complete
    assert outcome.versions is not None
    return outcome.versions


def test_versions_of_what_is_removed_go_and_others_stay(bucket: VersionedBucket, store: WritableObjectStore) -> None:
    doomed, others = keys_of(1, 0), keys_of(2, 0, OTHER)
    bucket.fill(dict.fromkeys(doomed | others, b"bytes"))

    versions = removed(RemovedTopic(copied(1, 0, 9)), store)

    assert (versions.versions, versions.bytes, versions.markers) == (PARTS, 5 * PARTS, PARTS)
    assert bucket.kept(doomed) == (0, 0)
    assert set(bucket.current()) == others


@pytest.mark.parametrize("scope", [GONE, EVENTS_ONLY])
def test_versions_that_an_earlier_run_left_are_deleted_by_a_later_one(
    bucket: VersionedBucket, store: WritableObjectStore, scope: RemovalScope
) -> None:
    bucket.fill(dict.fromkeys(keys_of(1, 0), b"bytes"))
    topic = RemovedTopic(copied(1, 0, 9))
    assert topic.remove(scope, store=store).is_complete
    events = list(topic.events)

    versions = removed(topic, store, scope)

    assert (versions.versions, bucket.kept(keys_of(1, 0))) == (PARTS, (0, 0))
    assert topic.events == events


def test_of_a_live_topic_versions_of_what_was_removed_go_alone(
    bucket: VersionedBucket, store: WritableObjectStore
) -> None:
    """What is copied meanwhile may be replaced by the broker: its versions are its own affair."""
    ended = [*copied(1, 0, 9), updated(1, DELETING), updated(1, DELETED)]
    copying = copied(3, 20, 29)[:1]
    bucket.fill(dict.fromkeys(keys_of(2, 10) | keys_of(3, 20), b"bytes"))
    for key in (*keys_of(1, 0), *keys_of(3, 20)):
        bucket.fill({key: b"older"})
        bucket.delete(key)

    topic = RemovedTopic([*ended, *copied(2, 10, 19), *copying])
    outcome = topic.remove(LIVE, store=store, with_versions=True)

    assert outcome.versions is not None
    assert bucket.kept(keys_of(1, 0) | keys_of(2, 10)) == (0, 0)
    assert bucket.kept(keys_of(3, 20)) == (2 * PARTS, PARTS)


def test_so_does_one_whose_object_the_store_denies_once() -> None:
    class Denying(MemoryStore):
        """Every key has one older version."""

        def __init__(self) -> None:
            super().__init__()
            self.denied = {"a"}
            self.deleted: list[str] = []

        def head(self, key: str) -> StoredObject | None:
            if key in self.denied:
                self.denied.remove(key)
                return None
            return super().head(key)

        def kept_versions(self, prefix: str = "") -> Iterator[KeptVersion]:
            yield KeptVersion(prefix, "1", 5, 0, False)

        def delete_version(self, kept: KeptVersion) -> None:
            self.deleted.append(kept.key)

    store = Denying()
    store.put("a", b"newer")

    deleted = delete_versions(store, ["a", "b"])

    assert (store.deleted, deleted.versions, deleted.failed) == (["b"], 1, {})


def test_a_key_that_has_an_object_again_keeps_its_versions(bucket: VersionedBucket, store: WritableObjectStore) -> None:
    keys = keys_of(1, 0)
    bucket.fill(dict.fromkeys(keys, b"older"))
    back = min(keys)

    class Returning(RemovedTopic):
        """A store into which somebody puts an object back before versions are deleted."""

        def publish(self, metadata_partition: int, events: Sequence[MetadataEvent]) -> None:
            super().publish(metadata_partition, events)
            if events[-1].state.name == "DELETE_PARTITION_FINISHED":
                bucket.fill({back: b"newer"})

    topic = Returning(copied(1, 0, 9))
    topic.remove(GONE, store=store, with_versions=True)

    assert bucket.current() == {back: b"newer"}
    assert bucket.kept({back}) == (2, 1)
    assert bucket.kept(keys - {back}) == (0, 0)
