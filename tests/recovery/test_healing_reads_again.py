"""What a source says once, and not a second time, makes no object lost."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.recovery.segments_to_heal import CapturedCluster, VersionedMemoryStore
from tests.recovery.test_healing import longest_chain, without_logs
from tieredctl.ops.healing.sources import OtherStore
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.refusals import object_missing


@pytest.fixture(scope="module")
def local(captures: Path) -> CapturedCluster:
    return CapturedCluster(captures / "kafka-4.3.1", "kafka-4.3.1")


class WrongOnce(VersionedMemoryStore):
    """Whose first answer about an object is wrong: its bytes, that they can be read, or that it is there."""

    key = ""
    how = "altered"

    def head(self, key: str) -> StoredObject | None:
        if self.how == "not there" and key == self.key:
            self.key = ""
            return None
        return super().head(key)

    def read(self, key: str, start: int = 0, end: int | None = None) -> bytes:
        data = super().read(key, start, end)
        if self.how == "not there" or key != self.key:
            return data
        self.key = ""
        if self.how == "gone":
            raise object_missing(self.url, key)
        return data[:100] + bytes([data[100] ^ 1]) + data[101:]


def wrong_once(local: CapturedCluster, key: str, how: str) -> WrongOnce:
    store = WrongOnce()
    for one, data in local.objects.items():
        store.put(one, data)
    store.key, store.how = key, how
    return store


@pytest.mark.parametrize("how", ["altered", "gone", "not there"])
def test_bytes_that_another_store_has_are_found_though_one_answer_was_wrong(local: CapturedCluster, how: str) -> None:
    lost = longest_chain(local)[2]
    store = without_logs(local, lost)
    other = OtherStore(wrong_once(local, local.keys(lost)[Part.LOG], how), local.layout)

    plan = local.plan(local.healer(store, other), lost)

    assert [(one.part, one.action) for one in plan.objects] == [(Part.LOG, "put")]


def test_an_object_that_is_there_when_asked_again_is_not_missing(local: CapturedCluster) -> None:
    sound = longest_chain(local)[2]
    store = wrong_once(local, local.keys(sound)[Part.LOG], "not there")

    assert local.plan(local.healer(store), sound).objects == []
