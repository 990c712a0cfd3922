"""What a store remembers of a plan: it is used once, in every store, and no record can keep a run busy for ever."""

from __future__ import annotations

from functools import partial

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.model.removal import PlanRecord, PlanUse
from tieredctl.ops.guards.ledger import Ledger, plan_record
from tieredctl.ops.guards.own_objects import ledger_key
from tieredctl.ports.object_store import Capability, StoredObject
from tieredctl.storage.memory import MemoryStore

PLAN_ID = "11112222333344445555666677778888"
RECORD = PlanRecord(PlanUse.APPLYING, "cluster", "local", "0" * 64, frozenset({"topic"}), frozenset({"a\udcff"}))


class PlainStore(MemoryStore):
    """A store without conditional writes."""

    capabilities = frozenset[Capability]()


class WeakStore(MemoryStore):
    """A store whose ETags are weak: it never takes one for the current one."""

    def __init__(self) -> None:
        super().__init__()
        self.refused = 0

    def replace(self, current: StoredObject, data: bytes) -> StoredObject | None:
        self.refused += 1
        return None


class RefusingStore(WeakStore):
    """A store that takes nothing, and says that there was something."""

    def put_if_absent(self, key: str, data: bytes) -> StoredObject | None:
        self.refused += 1
        return None


class ForgetfulStore(PlainStore):
    """A store that acknowledges a write, and does not keep it."""

    def write(self, key: str, data: bytes) -> StoredObject:
        return StoredObject(key, len(data), 0, "1")


def ledger(store: MemoryStore) -> Ledger:
    return Ledger(store, RECORD, PLAN_ID)


def test_how_far_a_plan_went_is_remembered_in_every_store() -> None:
    cases: list[type[MemoryStore]] = [MemoryStore, PlainStore]
    for kind in cases:
        store, uses = kind(), []
        for use in PlanUse:
            ledger(store).record(use)
            uses.append(ledger(store).use())
        assert uses == list(PlanUse), kind
    # What else is known of a plan stays.
    store = MemoryStore()
    ledger(store).record(PlanUse.APPLYING)
    Ledger(store, PlanRecord(PlanUse.APPLYING, "?", "?", None), PLAN_ID).record(PlanUse.RESTORED)
    found = plan_record(store, PLAN_ID)
    assert found is not None
    assert found.use is PlanUse.RESTORED
    assert (found.cluster_id, found.foreign_topic_ids, found.unknown_keys) == (
        "cluster",
        frozenset({"topic"}),
        frozenset({"a\udcff"}),
    )


def test_a_store_that_never_takes_a_record_is_given_up() -> None:
    cases: list[type[MemoryStore]] = [WeakStore, RefusingStore, ForgetfulStore]
    for kind in cases:
        store = kind()
        if kind is WeakStore:
            ledger(store).record(PlanUse.APPLYING)
        with pytest.raises(TieredctlError) as caught:
            ledger(store).record(PlanUse.APPLIED)
        assert caught.value.code == "store-incapable", kind
        assert getattr(store, "refused", 0) < 50, kind


DAMAGED = [
    b"",
    b"no JSON",
    b"[]",
    b"null",
    b"[" * 100_000,
    b"\xff",
    b"{}",
    b'{"use":"applied"}',
    b'{"use":"used","digest":"0","clusterId":"c","layout":"l"}',
    b'{"use":"applied","digest":1,"clusterId":"c","layout":"l"}',
    b'{"use":"applied","digest":"0","clusterId":["c"],"layout":"l"}',
    b'{"use":["applied"],"digest":"0","clusterId":"c","layout":"l"}',
    b'{"use":"applied","digest":"0","clusterId":"c","layout":"l","unknownKeys":"a"}',
    b'{"use":"applied","digest":"0","clusterId":"c","layout":"l","foreignTopicIds":[1]}',
]


def test_a_plan_whose_record_cannot_be_read_is_not_used_and_undone_all_the_same() -> None:
    # A plan whose record cannot be read is not used.
    for data in DAMAGED:
        store = MemoryStore()
        store.put(ledger_key(PLAN_ID), data)
        for attempt in (ledger(store).use, partial(ledger(store).record, PlanUse.APPLYING)):
            with pytest.raises(TieredctlError) as caught:
                attempt()
            assert caught.value.code == "ledger-damaged", data
        assert store.read(ledger_key(PLAN_ID)) == data, data
        # It is undone all the same.
        ledger(store).record(PlanUse.RESTORED)
        assert ledger(store).use() is PlanUse.RESTORED, data
