"""What gets an owner while its copy in quarantine is deleted for good: the purge names it, whatever ends it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import COPIED, DELETED, DELETING, TOPIC_ID, copied, started, updated
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import MetadataEvent
from tieredctl.model.findings import exit_code_of
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.purge import Purge, PurgeOutcome
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import Deletion, StoredObject
from tieredctl.process import interruption
from tieredctl.storage.memory import MemoryStore

NOW_MS = 2_000_000_000_000
DELETIONS = [updated(2, DELETING), updated(2, DELETED)]
REGISTERED: list[MetadataEvent] = [started(2, 10, 19, author=-1), updated(2, COPIED, author=-1)]


def log_of(number: int) -> str:
    return LAYOUT.promised_objects(started(number, number * 10 - 10, number * 10 - 1))[Part.LOG]


@dataclass
class MovingCluster:
    """Segment 1 is in the store; segment 2 was deleted by its broker, and its log is in quarantine alone."""

    before_deletion: list[MetadataEvent] = field(default_factory=list)
    """Written by others right before the copy is deleted."""
    before_last_look: list[MetadataEvent] = field(default_factory=list)
    """Written by others once something was found in no place."""
    answers: bool = True
    is_interrupted: bool = False
    """Whether the user presses Ctrl-C while the copy is deleted, and more would follow."""
    is_back: bool = False
    denies_once: bool = False
    """Whether the store denies once, after the copy was deleted, that it has the original."""

    def __post_init__(self) -> None:
        self.events: list[MetadataEvent] = [*copied(1, 0, 9), *copied(2, 10, 19), *DELETIONS]
        self.store = MovingStore(self)
        self.store.put(log_of(1), b"one")
        self.copy = quarantine_key("cluster", "1" * 32, StoredObject(log_of(2), 3, 0, "1"))
        self.store.put(self.copy, b"two")
        if self.is_back:
            self.store.put(log_of(2), b"two")

    def purge(self) -> PurgeOutcome:
        owners = FreshMetadata(
            FollowedMetadata(lambda: EventsInMemory(self.events), "cluster"),
            layout=LAYOUT,
            min_age_ms=0,
            topic_sources=TopicSources(topic_ids=frozenset({TOPIC_ID})),
            clock_ms=lambda: NOW_MS,
        )
        return Purge(self.store, owners, "cluster", 0, lambda: NOW_MS, without_lease=True).run()


class MovingStore(MemoryStore):
    def __init__(self, cluster: MovingCluster) -> None:
        super().__init__()
        self._cluster = cluster
        self._is_purged = False

    def clock_ms(self) -> int:
        return NOW_MS

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        deletions = super().delete(objects)
        if self._cluster.copy in {one.key for one in objects}:
            self._is_purged = True
            self._cluster.events += self._cluster.before_deletion
            if self._cluster.is_interrupted:
                interruption.request()
            if not self._cluster.answers:
                raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")
        return deletions

    def head(self, key: str) -> StoredObject | None:
        if self._is_purged and key == log_of(2) and self._cluster.before_last_look:
            self._cluster.events += self._cluster.before_last_look
            self._cluster.before_last_look = []
            self._objects.pop(key, None)
        if self._is_purged and key == log_of(2) and self._cluster.denies_once:
            self._cluster.denies_once = False
            return None
        return super().head(key)


def test_what_nobody_owns_is_purged() -> None:
    cluster = MovingCluster()

    outcome = cluster.purge()

    assert (outcome.is_complete, outcome.done, outcome.lost, outcome.findings) == (True, 1, [], [])
    assert cluster.store.head(cluster.copy) is None


def test_what_got_an_owner_while_it_was_purged_is_named() -> None:
    outcome = MovingCluster(before_deletion=REGISTERED).purge()

    assert outcome.lost == [log_of(2)]
    assert exit_code_of(outcome.findings) is ExitCode.CORRUPTION
    assert not outcome.is_complete


def test_what_is_in_its_place_is_not_lost_though_the_store_denies_it_once() -> None:
    outcome = MovingCluster(before_deletion=REGISTERED, is_back=True, denies_once=True).purge()

    assert (outcome.done, outcome.lost, outcome.findings) == (1, [], [])


def test_it_is_named_though_the_purge_was_stopped() -> None:
    outcome = MovingCluster(before_deletion=REGISTERED, answers=False).purge()

    assert outcome.stopped is not None
    assert outcome.stopped.code == "store-unreachable"
    assert outcome.lost == [log_of(2)]


@pytest.mark.parametrize("registered", [REGISTERED, []], ids=["owned", "orphaned"])
def test_it_is_named_though_the_user_interrupts(
    registered: list[MetadataEvent], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster = MovingCluster(before_deletion=registered, is_interrupted=True)
    monkeypatch.setattr("tieredctl.ops.orphan_removal.purge.mark_complete", lambda: None)

    with pytest.raises(TieredctlError if registered else KeyboardInterrupt) as ended:
        cluster.purge()

    interruption.forget()
    if isinstance(ended.value, TieredctlError):
        assert (ended.value.code, log_of(2) in ended.value.message) == (ErrorCode.INTERRUPTED, True)


def test_it_is_named_though_the_user_interrupts_the_last_look(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = MovingCluster(before_deletion=REGISTERED, answers=False)
    looked, times = Purge._is_somewhere, iter([KeyboardInterrupt])

    def look(*pair: Any) -> bool:
        for interruption_once in times:
            raise interruption_once
        return looked(*pair)

    monkeypatch.setattr(Purge, "_is_somewhere", look)
    with pytest.raises(TieredctlError) as ended:
        cluster.purge()

    assert (ended.value.code, ended.value.message.count(log_of(2))) == (ErrorCode.INTERRUPTED, 1)


def test_what_is_back_in_its_place_is_not_lost() -> None:
    outcome = MovingCluster(before_deletion=REGISTERED, is_back=True).purge()

    assert (outcome.is_complete, outcome.lost) == (True, [])


def test_what_its_broker_deletes_during_the_last_look_is_not_lost() -> None:
    cluster = MovingCluster(before_deletion=REGISTERED, before_last_look=[*DELETIONS], is_back=True)

    outcome = cluster.purge()

    assert cluster.store.head(log_of(2)) is None
    assert (outcome.is_complete, outcome.lost) == (True, [])
