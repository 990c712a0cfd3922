"""What a store says once, and not a second time, gets no index written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, Cluster, EventsInMemory, captured
from tests.rigs.lies import half, one_bit_flipped, zeros
from tieredctl.ops.healing.index_plan import plan_index_recovery
from tieredctl.ops.healing.known_segments import SegmentsOnce
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.object_store import STREAM_CHUNK_BYTES, StoredObject
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.refusals import object_missing

SEGMENT_ID = "zYJ8cWbWS6Wrn_UH97CRKw"
"""A segment with aborted transactions, so one with all six objects; not the first of its partition."""


@pytest.fixture(scope="module")
def cluster(captures: Path) -> Cluster:
    return captured(captures / "kafka-4.3.1")


class WrongOnce(MemoryStore):
    """One answer of it is wrong, that with this number."""

    answers = 0
    wrong = 0
    change: Callable[[bytes], bytes]

    def head(self, key: str) -> StoredObject | None:
        stored = super().head(key)
        return None if self._is_wrong() and self.change is gone else stored

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        return self.change(data) if self._is_wrong() else data

    def stream(self, key: str, start: int = 0, chunk_size: int = STREAM_CHUNK_BYTES) -> Iterator[bytes]:
        data = b"".join(super().stream(key, start, chunk_size))
        yield self.change(data) if self._is_wrong() else data

    def _is_wrong(self) -> bool:
        self.answers += 1
        return self.answers == self.wrong


def gone(_data: bytes) -> bytes:
    raise object_missing("memory:", SEGMENT_ID)


def nothing(_data: bytes) -> bytes:
    return b""


@pytest.mark.parametrize("change", [gone, half, nothing, one_bit_flipped, zeros])
def test_no_part_is_missing_or_damaged_by_one_answer_alone(cluster: Cluster, change: Callable[[bytes], bytes]) -> None:
    segment = SegmentsOnce.of(EventStream(EventsInMemory(cluster.events))).finished(SEGMENT_ID)
    store = WrongOnce()
    store.change = change
    for key, data in cluster.objects.items():
        store.put(key, data)

    plans = []
    while store.answers >= store.wrong:
        store.wrong, store.answers = store.wrong + 1, 0
        plans.append(plan_index_recovery(segment, store, LAYOUT, 4_096))

    assert len(plans) > 20
    assert [one.log_damage for one in plans if not one.is_sound] == []
