"""Writes whose answers are lost, or that the user interrupts, while a broker deletes the segment: the closing look
names their keys all the same."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory, captured, key_of
from tests.recovery.segments_to_heal import INTERVAL, CapturedCluster, deletion_of
from tests.recovery.test_healing import longest_chain
from tests.recovery.test_indexes import SEGMENT_ID
from tieredctl.errors import ErrorCode, ExitCode, TieredctlError
from tieredctl.model.events import MetadataEvent, RemoteLogSegmentMetadata
from tieredctl.ops.change import Outcome
from tieredctl.ops.guards.lease import Unguarded
from tieredctl.ops.guards.store_clock import StoreClock
from tieredctl.ops.healing.healing import Healing
from tieredctl.ops.healing.index_applying import IndexRecovery
from tieredctl.ops.healing.index_plan import plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.healing.object_writing import FreshSegments
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.process import interruption
from tieredctl.storage.memory import MemoryStore

UNGUARDED = Unguarded(StoreClock(lambda: 0, 0))


class UnansweringStore(MemoryStore):
    """Writes what it is asked to, and does not answer; or another process writes first."""

    is_outrun = False
    is_interrupted = False
    """Whether it answers, but the user presses Ctrl-C meanwhile."""

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        if self.is_outrun:
            self.put(key, b"somebody's")
            return None
        made = super().put_if_absent(key, data)
        if self.is_interrupted:
            interruption.request()
            return made
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        super().replace(current, data)
        raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "It does not answer.")


class Deleting:
    """Metadata in which a segment's deletion has begun from the second reading on."""

    def __init__(self, events: Sequence[MetadataEvent], deleted: RemoteLogSegmentMetadata) -> None:
        self._readings = iter([[*events], [*events, deletion_of(deleted)]])

    def __call__(self) -> EventStream:
        return EventStream(EventsInMemory(next(self._readings)))


def store_of(objects: dict[str, bytes]) -> UnansweringStore:
    store = UnansweringStore()
    for key, data in objects.items():
        store.put(key, data)
    return store


def indexes_written(
    captures: Path, data: bytes | None, *, is_outrun: bool = False, is_interrupted: bool = False
) -> tuple[Outcome, str]:
    """The outcome of writing a time index, and its key."""
    whole = captured(captures / "kafka-4.3.1")
    metadata = next(one for one in whole.finished() if one.segment_id == SEGMENT_ID)
    part = Part.TIME_INDEX
    broken = whole.without_part(metadata, part) if data is None else whole.with_part(metadata, part, data)
    store = store_of(dict(broken.objects))
    store.is_outrun, store.is_interrupted = is_outrun, is_interrupted
    segment = SegmentsOnce.of(EventStream(EventsInMemory(broken.events))).finished(SEGMENT_ID)
    plan = plan_index_recovery(segment, store, LAYOUT, INTERVAL)
    outcome = IndexRecovery([plan], store, Deleting(broken.events, metadata), lambda: 0).run(UNGUARDED)
    return outcome, key_of(metadata, part)


def log_healed(captures: Path, *, is_interrupted: bool = False) -> tuple[Outcome, str]:
    """The outcome of writing a log, and its key."""
    cluster = CapturedCluster(captures / "kafka-4.3.1", "kafka-4.3.1")
    metadata = longest_chain(cluster)[2]
    key = cluster.keys(metadata)[Part.LOG]
    store = store_of({other: data for other, data in cluster.objects.items() if other != key})
    store.is_interrupted = is_interrupted
    healer = cluster.healer(store, cluster.elsewhere())
    events = [one.event for one in cluster.stream().records()]
    fresh = FreshSegments(Deleting(events, metadata), lambda: 0)
    healing = Healing([cluster.plan(healer, metadata)], healer, store, fresh, lambda _topic: INTERVAL)
    return healing.run(UNGUARDED), key


@pytest.mark.parametrize("data", [None, b"garbage"])
def test_an_index_whose_answer_was_lost_is_named(captures: Path, data: bytes | None) -> None:
    outcome, key = indexes_written(captures, data)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.exit_code) == (ErrorCode.STORE_UNREACHABLE, ExitCode.FAILURE)
    assert key in outcome.stopped.message


def test_a_healed_object_whose_answer_was_lost_is_named(captures: Path) -> None:
    outcome, key = log_healed(captures)

    assert outcome.stopped is not None
    assert (outcome.stopped.code, outcome.exit_code) == (ErrorCode.STORE_UNREACHABLE, ExitCode.FAILURE)
    assert key in outcome.stopped.message


def test_what_another_process_wrote_first_is_not_called_written(captures: Path) -> None:
    outcome, key = indexes_written(captures, None, is_outrun=True)

    assert outcome.stopped is not None
    assert outcome.stopped.code is ErrorCode.WORLD_CHANGED
    assert outcome.stopped.message.count(key) == 1  # not by the closing look besides


def an_index_written(captures: Path) -> None:
    indexes_written(captures, None, is_interrupted=True)


def a_log_healed(captures: Path) -> None:
    log_healed(captures, is_interrupted=True)


@pytest.mark.parametrize("write", [an_index_written, a_log_healed])
def test_what_was_written_when_the_user_interrupted_is_named(
    captures: Path, write: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("index_applying", "healing"):
        # More would follow.
        monkeypatch.setattr(f"tieredctl.ops.healing.{module}.mark_complete", lambda: None)

    with pytest.raises(TieredctlError) as ended:
        write(captures)

    interruption.forget()
    assert ended.value.code is ErrorCode.INTERRUPTED
    assert "Written meanwhile" in ended.value.message
