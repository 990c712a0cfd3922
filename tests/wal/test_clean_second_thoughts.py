"""What was planned is judged again before anything goes, and what is gone is looked at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from tieredctl_proposals.formats.wal_records import decode_wal_event
from tieredctl_proposals.model.wal_events import (
    RemoteWalCombinedLogSegmentMetadata,
    RemoteWalCombinedLogSegmentMetadataUpdate,
    WalEvent,
)
from tieredctl_proposals.ops.wal.clean import CleanPlan, plan_cleaning
from tieredctl_proposals.ops.wal.contents import read_events
from tieredctl_proposals.ops.wal.event_log import EVENT_FOLDER, EventLog
from tieredctl_proposals.ops.wal.local_batches import local_active_logs
from tieredctl_proposals.ops.wal.need import FreshNeeds, RemoteMetadata
from tieredctl_proposals.ops.wal.owners import WalOwners
from tieredctl_proposals.ops.wal.upload import ActiveSegmentsUpload
from tieredctl_proposals.wal.steps import Publish

from tests.metadata_logs import COPIED, DELETED, DELETING, started, updated, write_events
from tests.refusals import refused_with
from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.cli.arguments import clock_ms
from tieredctl.config.plan_key import signing_key
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.record_batches import Attributes, Record, read_batch_header, read_records
from tieredctl.kafka.local_logs import read_local_replicas
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentState
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.removal import ReceiptsHeader, RemovalMode
from tieredctl.ops.cluster.live_topics import TopicSources
from tieredctl.ops.guards.lease import lease_held
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.apply import RemovalOutcome
from tieredctl.ops.orphan_removal.limits import Limits
from tieredctl.ops.orphan_removal.receipts import Receipts, StoredReceipts
from tieredctl.ops.orphan_removal.use import PlanUser
from tieredctl.ports.object_store import Deletion, DeletionOutcome, StoredObject
from tieredctl.storage.memory import MemoryStore

CLUSTER_ID = "jN0vM9WEQ9yDgLgdYvRvMg"
TIERED: list[MetadataEvent] = [started(1, 0, 1, partition=ORDERS[0]), updated(1, COPIED, partition=ORDERS[0])]
GIVE_UP_AFTER_MS = 3_600_000
LIMITS = Limits(min_age_ms=0, max_percent=100.0, max_missing=None)


class Lying(MemoryStore):
    """Reports every deletion as done, and does none."""

    def delete(self, objects: Sequence[StoredObject]) -> Sequence[Deletion]:
        return [Deletion(stored, DeletionOutcome.GONE) for stored in objects]


@pytest.fixture(params=[MemoryStore])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> MemoryStore:
    """An object with two offsets of a partition, both of which remote storage has, too."""
    made: MemoryStore = request.param()
    write_partition(tmp_path / "logs", ORDERS[0], [batch(0), batch(1)])
    logs = local_active_logs(read_local_replicas([tmp_path / "logs"]))
    assert ActiveSegmentsUpload(made, logs, 1, clock_ms, 1 << 20).run().objects == 1
    return made


@pytest.fixture
def fresh(store: MemoryStore, tmp_path: Path) -> Iterator[FreshNeeds]:
    write_events(tmp_path / "metadata", *TIERED)
    followed = FollowedMetadata(lambda: LogDirectories([tmp_path / "metadata"]), CLUSTER_ID)
    with closing(followed):
        yield FreshNeeds(store, RemoteMetadata(followed), TopicSources(), None, clock_ms, GIVE_UP_AFTER_MS)


@pytest.fixture
def plan(store: MemoryStore, fresh: FreshNeeds) -> CleanPlan:
    planned = plan_cleaning(store, fresh, CLUSTER_ID, LIMITS)
    assert len(planned.objects) == 1
    return planned


def forget(store: MemoryStore, partition: TopicIdPartition) -> None:
    """Events as if nothing of a partition had been in any object."""
    records = list[Record]()
    for stored in list(store.list(EVENT_FOLDER)):
        data = store.read(stored.key)
        records += read_records(data, 0, read_batch_header(data, 0, len(data)))
        store.delete([stored])
    kept = list[WalEvent]()
    for record in records:
        event = decode_wal_event(record.value or b"")
        if isinstance(event, RemoteWalCombinedLogSegmentMetadata | RemoteWalCombinedLogSegmentMetadataUpdate):
            entries = tuple(one for one in event.entries if one.topic_id_partition != partition)
            kept.append(replace(event, entries=entries))
        elif event.topic_id_partition != partition:
            kept.append(event)
    EventLog(store, {}, clock_ms).append([Publish(event, 0) for event in kept])


class AlteringOnce(MemoryStore):
    """The first answer with bytes of an object says of its index that it is a batch of data."""

    is_honest = False

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        if self.is_honest or "/" in key:
            return data
        self.is_honest = True
        return data[:_CONTROL_BYTE] + bytes([data[_CONTROL_BYTE] ^ Attributes.CONTROL]) + data[_CONTROL_BYTE + 1 :]


_CONTROL_BYTE = 22
"""The place in a batch of the byte with that attribute."""


@pytest.mark.parametrize("kind", [MemoryStore, AlteringOnce])
def test_what_only_the_object_itself_tells_of_keeps_it(
    tmp_path: Path, fresh: FreshNeeds, kind: type[MemoryStore]
) -> None:
    store = kind()
    for number in (0, 1):
        write_partition(tmp_path / "both", ORDERS[number], [batch(0), batch(1)])
    logs = local_active_logs(read_local_replicas([tmp_path / "both"]))
    assert ActiveSegmentsUpload(store, logs, 1, clock_ms, 1 << 20).run().objects == 1
    forget(store, ORDERS[1])
    fresh.store = store

    planned = plan_cleaning(store, fresh, CLUSTER_ID, LIMITS)

    assert [one.need.may_go for one in fresh.judge().may_go.values()] == [True]
    assert (planned.objects, planned.eventless, planned.needs.kept) == ([], [], {"UNKNOWN": 1})


def clean(plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds) -> RemovalOutcome:
    shown = plan.shown("plan", CLUSTER_ID, RemovalMode.QUARANTINE, clock_ms())
    owners = WalOwners(fresh, clock_ms, plan.eventless)

    def begin(header: ReceiptsHeader, _must_exist: bool) -> Receipts:
        return StoredReceipts.begun(store, header)

    return PlanUser(shown, store, owners, begin, clock_ms, plan.limits, key=signing_key()).run()


def there(store: MemoryStore) -> list[str]:
    return [stored.key for stored in store.list() if "/" not in stored.key]


def states(store: MemoryStore) -> set[RemoteLogSegmentState]:
    events = read_events(store)
    return {one.metadata.state for one in events.combined()} | {one.metadata.state for one in events.segments()}


def test_what_remote_storage_lost_since_the_plan_stays(
    plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds, tmp_path: Path
) -> None:
    gone = [updated(1, state, partition=ORDERS[0]) for state in (DELETING, DELETED)]
    write_events(tmp_path / "metadata", *TIERED, *gone)

    outcome = clean(plan, store, fresh)

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED
    assert there(store) == [plan.objects[0].key]
    assert states(store) == {RemoteLogSegmentState.COPY_SEGMENT_FINISHED}


def test_what_was_rewritten_since_the_plan_stays(plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds) -> None:
    key = plan.objects[0].key
    store.put(key, store.read(key), clock_ms())

    outcome = clean(plan, store, fresh)

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED
    assert there(store) == [key]


def test_what_keeps_a_stopped_run_from_its_last_check_is_told_too(
    plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def forbidden(*_: object) -> None:
        raise TieredctlError(ErrorCode.STORE_FORBIDDEN, "It may not be asked for owners.")

    key = plan.objects[0].key
    store.put(key, store.read(key), clock_ms())
    monkeypatch.setattr(WalOwners, "conclude", forbidden)

    outcome = clean(plan, store, fresh)

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED
    assert outcome.stopped.message.endswith("It may not be asked for owners.")


def test_while_another_run_holds_the_lease_nothing_goes(plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds) -> None:
    with lease_held(store, "another", clock_ms), refused_with(ErrorCode.LOCKED):
        clean(plan, store, fresh)
    assert there(store) == [plan.objects[0].key]


@pytest.mark.parametrize("store", [Lying], indirect=True)
def test_a_deletion_that_a_store_only_reports_is_not_on_record_as_done(
    plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds
) -> None:
    outcome = clean(plan, store, fresh)

    assert (outcome.done, outcome.failed) == (0, 1)
    assert states(store) == {RemoteLogSegmentState.DELETE_SEGMENT_STARTED}


def test_what_somebody_else_removed_since_the_plan_is_led_to_its_end(
    plan: CleanPlan, store: MemoryStore, fresh: FreshNeeds
) -> None:
    store.put("AAAAAAAAAAAAAAAAAAAAAQ.wal", b"another", 0)
    found = store.head(plan.objects[0].key)
    assert found is not None
    store.delete([found])

    outcome = clean(plan, store, fresh)

    assert (outcome.done, outcome.skipped, outcome.stopped) == (0, 1, None)
    assert states(store) == {RemoteLogSegmentState.DELETE_SEGMENT_FINISHED}
