"""What heal does not know: sources that cannot be read, metadata that changes, and bytes that others contradict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from errno import EIO
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from tests.faults.cluster import EventsInMemory
from tests.recovery.segments_to_heal import INTERVAL, CapturedCluster, VersionedMemoryStore, deletion_of, in_quarantine
from tests.recovery.test_healing import ArchivedStore, longest_chain, without_logs
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.kafka.local_logs import read_local_replicas
from tieredctl.kafka.replica_segments import ReplicaDirectories
from tieredctl.ops.change import stopped_twice
from tieredctl.ops.guards.lease import Unguarded
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.healing.healing import Healing
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import LOOK_AGAIN_MS, FreshSegments
from tieredctl.ops.healing.sources import OtherStore
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.verification.accepted_losses import NothingAccepted
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import RESERVED_FOLDER, KeptVersion, StoredObject
from tieredctl.wiring.heal import SegmentsHealing
from tieredctl.wiring.index_recovery import IndexesRecovery, IndexIntervals, WantedSegments
from tieredctl.wiring.places import MetadataPlace, Remote


@pytest.fixture(scope="module")
def local(captures: Path) -> CapturedCluster:
    return CapturedCluster(captures / "kafka-4.3.1", "kafka-4.3.1")


class ArchivedVersions(VersionedMemoryStore):
    """Whose kept versions must be restored from an archive first, or whose quarantine is forbidden."""

    def read_version(self, kept: KeptVersion) -> bytes:
        raise TieredctlError(ErrorCode.OBJECT_ARCHIVED, f"Version {kept.version_id} of {kept.key} is archived.")

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        if key.startswith(RESERVED_FOLDER):
            raise TieredctlError(ErrorCode.STORE_FORBIDDEN, f"{key} may not be read.")
        return super().read(key, start, end)


class SoftDeleting(ArchivedVersions):
    """Which keeps what is deleted for a while."""

    def soft_deleted(self, key: str) -> Sequence[KeptVersion]:
        return [KeptVersion(key, str(number), 7, number, False) for number in (1, 2) if key not in self._objects]


@pytest.mark.parametrize("place", ["kept-version", "quarantine", "store", "disk", "soft-deleted"])
def test_bytes_that_may_be_where_nothing_could_be_read_are_not_lost(
    local: CapturedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    metadata, places = longest_chain(local)[2], MetadataPlace()
    kind = SoftDeleting if place == "soft-deleted" else ArchivedVersions
    key, store, others = local.keys(metadata)[Part.LOG], kind(), []
    for one, data in local.objects.items():
        store.put(one, data)
    if place == "kept-version":
        store.kept[key] = [local.objects[key]]
    if place == "quarantine":
        in_quarantine(store, key, local.objects[key])
    if place == "store":
        archive = ArchivedStore()
        archive.archived = key
        archive.put(key, local.objects[key])
        others.append(OtherStore(archive, local.layout))
    disks = ReplicaDirectories.of([local.disk(tmp_path)]) if place == "disk" else None
    if disks:
        fail_to_read(monkeypatch, f"{metadata.start_offset:020}.log")
    # The index needs the log, so it is as unknown as that.
    for part in (Part.LOG, Part.TIME_INDEX):
        del store._objects[local.keys(metadata)[part]]
    healer = local.healer(store, *others, disks=disks)
    healing = SegmentsHealing(None, "memory:", {}, places, None, healer, IndexIntervals(places, INTERVAL))

    healing.plan(WantedSegments((metadata.segment_id,)), [metadata.segment_id], local.segments, NothingAccepted())

    assert [row["action"] for row in healing.rows()] == ["unknown", "unknown"]
    assert (healing.to_write(), healing.unaccepted(), healing.unknown()) == (0, 0, 2)
    (plan,) = healing.plans
    assert plan.losses(0) == []
    assert "could not be read" in (plan.unknown()[0].obstacle or "")


@pytest.mark.parametrize("what", ["partition.metadata", "folder", "log", "time index"])
def test_a_disk_that_fails_before_the_log_is_read_may_have_it_all_the_same(
    local: CapturedCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    metadata, store = longest_chain(local)[2], local.store()
    disk, partition = local.disk(tmp_path), metadata.topic_id_partition
    folder = disk / f"{partition.topic}-{partition.partition}"
    for part in (Part.LOG, Part.TIME_INDEX):
        del store._objects[local.keys(metadata)[part]]
    fail(
        *(monkeypatch, {"folder": "iterdir", "log": "stat"}.get(what, "open")),
        {
            "partition.metadata": folder / "partition.metadata",
            "folder": folder,
            "log": folder / f"{metadata.start_offset:020}.log",
            "time index": folder / f"{metadata.start_offset:020}.timeindex",
        }[what],
    )

    plan = local.plan(local.healer(store, disks=ReplicaDirectories.of([disk])), metadata)

    assert plan.losses(0) == []
    assert [one.part for one in plan.unknown()] == [Part.LOG, Part.TIME_INDEX]
    with pytest.raises(TieredctlError) as refused:
        read_local_replicas([disk])
    assert refused.value.code is ErrorCode.UNREADABLE
    assert "cannot be read: Input/output error" in refused.value.message


def fail(monkeypatch: pytest.MonkeyPatch, method: str, failing: Path) -> None:
    """As a disk does that is dying, whatever is asked of one path by that method."""
    real = getattr(Path, method)

    def asked(path: Path, *how: Any, **options: Any) -> Any:
        if path == failing:
            raise OSError(EIO, "Input/output error", str(path))
        return real(path, *how, **options)

    monkeypatch.setattr(Path, method, asked)


def fail_to_read(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """As a disk does that is dying."""
    opened = Path.open

    def failing(path: Path, *how: Any, **options: Any) -> Any:
        if path.name == name:
            raise OSError(EIO, "Input/output error", str(path))
        return opened(path, *how, **options)

    monkeypatch.setattr(Path, "open", failing)


def test_a_store_that_writes_nothing_where_nothing_is_was_written_to_by_nobody_else(local: CapturedCluster) -> None:
    """As servers do that count a delete marker."""

    class Refusing(VersionedMemoryStore):
        def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
            return super().put_if_absent(key, data) if key.startswith(RESERVED_FOLDER) else None

    metadata, store = local.finished[0], Refusing()
    key = local.keys(metadata)[Part.TIME_INDEX]
    for one, data in local.objects.items():
        if one != key:
            store.put(one, data)
    healer = local.healer(store)

    outcome = local.heal(healer, store, local.plan(healer, metadata))

    assert outcome.stopped is not None
    assert (outcome.stopped.code, "delete marker" in str(outcome.stopped.hint)) == (ErrorCode.STORE_INCAPABLE, True)
    assert (outcome.written, outcome.segments[0].tried) == (0, [])


def test_what_was_written_while_a_broker_deleted_the_segment_is_named_and_not_called_healed(
    local: CapturedCluster,
) -> None:
    """Metadata read before the writing promised it still: what is written after the broker's deletion stays."""
    deleted, other = longest_chain(local)[2:4]
    store = without_logs(local, deleted, other)
    healer = local.healer(store, local.elsewhere())
    events = [one.event for one in local.stream().records()]
    readings = iter([events, [*events, deletion_of(deleted)]])
    fresh = FreshSegments(lambda: EventStream(EventsInMemory(next(readings))), lambda: 0)
    plans = [local.plan(healer, one) for one in (deleted, other)]

    outcome = Healing(plans, healer, store, fresh, lambda _topic: INTERVAL).run(Unguarded(StoreClock(lambda: 0, 0)))

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.exit_code) == (ErrorCode.WORLD_CHANGED, ExitCode.INCOMPLETE)
    assert local.keys(deleted)[Part.LOG] in outcome.stopped.message
    assert local.keys(other)[Part.LOG] not in outcome.stopped.message
    assert [one.is_healed for one in outcome.segments] == [False, True]


def test_it_is_named_though_the_user_interrupts_the_closing_look(local: CapturedCluster) -> None:
    deleted = longest_chain(local)[2]
    store = without_logs(local, deleted)
    healer = local.healer(store, local.elsewhere())
    events = [one.event for one in local.stream().records()]
    streams = [EventStream(EventsInMemory(some)) for some in (events, [*events, deletion_of(deleted)])]
    read = Mock(side_effect=[streams[0], KeyboardInterrupt, streams[1]])
    healing = Healing(
        *([local.plan(healer, deleted)], healer, store, FreshSegments(read, lambda: 0), lambda _topic: INTERVAL)
    )

    with pytest.raises(TieredctlError) as ended:
        healing.run(Unguarded(StoreClock(lambda: 0, 0)))

    assert ended.value.code is ErrorCode.INTERRUPTED
    assert local.keys(deleted)[Part.LOG] in ended.value.message


def test_what_ends_a_run_is_told_rather_than_a_change_after_which_it_went_on(local: CapturedCluster) -> None:
    changed, other = longest_chain(local)[2:4]
    store = without_logs(local, changed, other)
    healer = local.healer(store, local.elsewhere())
    plans = [local.plan(healer, one) for one in (changed, other)]
    store.put(local.keys(changed)[Part.LOG], b"another's")
    lease = Mock(renew=Mock(side_effect=TieredctlError(ErrorCode.LEASE_LOST, "It is lost.")))

    outcome = Healing(plans, healer, store, FreshSegments(local.stream, lambda: 0), lambda _topic: INTERVAL).run(lease)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.exit_code) == (ErrorCode.LEASE_LOST, ExitCode.LOCKED)


def test_what_stopped_a_run_and_its_last_look_are_two_sentences_or_one() -> None:
    first = TieredctlError(ErrorCode.UNREADABLE, "a disk cannot be read")
    other = TieredctlError(ErrorCode.STORE_UNREACHABLE, "The store does not answer.", hint="Look at it.")

    both, same = stopped_twice(first, other), stopped_twice(other, other)

    assert (both.code, both.message, both.hint) == (first.code, f"{first.sentence} {other.message}", other.hint)
    assert (same.message, stopped_twice(None, other)) == (other.message, other)


def test_metadata_is_read_again_once_it_is_old_or_a_clock_that_was_set_back_hides_its_age(
    local: CapturedCluster,
) -> None:
    segment_id = longest_chain(local)[0].segment_id
    for later_ms, readings in ((LOOK_AGAIN_MS - 1, 1), (LOOK_AGAIN_MS, 2), (-1, 2)):
        read, clock = Mock(side_effect=local.stream), Mock(return_value=0)
        fresh = FreshSegments(read, clock)
        fresh.finished(segment_id)

        clock.return_value = later_ms
        fresh.finished(segment_id)

        assert read.call_count == readings, later_ms


def test_a_log_that_contradicts_what_is_sound_beside_it_is_taken_from_no_store(local: CapturedCluster) -> None:
    """Which of the two is wrong cannot be known, so that neither is replaced."""
    metadata = longest_chain(local)[2]
    keys = local.keys(metadata)
    index = bytearray(local.objects[keys[Part.TIME_INDEX]])
    index[11] ^= 1  # the offset of its first entry
    for place in ("kept-version", "quarantine", "store"):
        store = local.store()
        store.put(keys[Part.TIME_INDEX], bytes(index))
        if place == "kept-version":
            store.kept[keys[Part.LOG]] = [local.objects[keys[Part.LOG]]]
        if place == "quarantine":
            in_quarantine(store, keys[Part.LOG], local.objects[keys[Part.LOG]])
        del store._objects[keys[Part.LOG]]

        planned = local.plan(local.healer(store, *([local.elsewhere()] if place == "store" else [])), metadata)

        assert [(one.part, one.action) for one in planned.objects] == [(Part.LOG, "impossible")], place
        assert "time-index" in (planned.objects[0].obstacle or "")


def test_a_log_without_the_latest_timestamp_of_the_metadata_is_taken_from_no_store(local: CapturedCluster) -> None:
    """Nothing is left beside it that could contradict it."""
    metadata = longest_chain(local)[2]
    store, segment = local.store(), local.segments.finished(metadata.segment_id)
    for key in local.keys(metadata).values():
        del store._objects[key]
    later = replace(segment, metadata=replace(metadata, max_timestamp_ms=metadata.max_timestamp_ms + 1))

    planned = local.healer(store, local.elsewhere()).plan(later, INTERVAL)

    log = next(one for one in planned.objects if one.part is Part.LOG)
    assert (log.action, "latest timestamp" in (log.obstacle or "")) == ("impossible", True)


def test_what_brokers_delete_while_segments_are_looked_at_is_neither_lost_nor_written(local: CapturedCluster) -> None:
    deleted, lost = longest_chain(local)[2:4]
    store = without_logs(local, deleted, lost)
    del store._objects[local.keys(lost)[Part.TIME_INDEX]]
    for key in local.keys(deleted).values():
        store._objects.pop(key, None)
    events = [*(one.event for one in local.stream().records()), deletion_of(deleted)]
    later = SegmentsOnce.of(EventStream(EventsInMemory(events)))
    partition, named = deleted.topic_id_partition, (deleted.segment_id, lost.segment_id)
    selected = Selection(topic_ids=(partition.topic_id,), numbers=(partition.partition,))
    for wanted in (WantedSegments(None, selected), WantedSegments(named), WantedSegments(named[:1])):
        places = MetadataPlace()
        intervals = IndexIntervals(places, INTERVAL)
        healing = SegmentsHealing(None, "memory:", {}, places, None, local.healer(store), intervals)
        indexes = IndexesRecovery(wanted, None, "memory:", {}, places, None, intervals)
        healing.plan(wanted, wanted.ids(local.segments), local.segments, NothingAccepted())
        indexes.plan(local.segments, Remote(store, local.layout))

        if wanted.the_one is not None:
            with pytest.raises(TieredctlError, match=deleted.segment_id):
                healing.leave_out_deleted(wanted, later)
            with pytest.raises(TieredctlError, match=deleted.segment_id):
                indexes.leave_out_deleted(later)
            continue
        healing.leave_out_deleted(wanted, later)
        indexes.leave_out_deleted(later)

        assert [one.metadata for one in healing.plans] == [one.metadata for one in indexes.in_need()] == [lost]
        passed_over = [] if wanted.segment_ids is None else [deleted.segment_id]
        assert [*healing.passed_over] == [*indexes.passed_over] == passed_over
