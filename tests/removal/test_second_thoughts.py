"""What a removal keeps for the case that it was wrong, or that something stopped it between two steps."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import sha256

import pytest

from tests.faults.cluster import LAYOUT, EventsInMemory
from tests.metadata_logs import copied, started
from tieredctl.errors import TieredctlError
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.formats.removal_files import BYTES_NOTE
from tieredctl.model.events import MetadataEvent
from tieredctl.model.ownership import ObjectStatus
from tieredctl.model.removal import (
    BytesNote,
    PlannedObject,
    PlanRecord,
    PlanUse,
    QuarantinedCopy,
    Receipt,
    ReceiptsHeader,
    ReceiptStep,
    RemovalMode,
)
from tieredctl.ops.cluster.live_topics import NO_TOPIC_SOURCES
from tieredctl.ops.guards.ledger import Ledger, record_of
from tieredctl.ops.guards.own_objects import QUARANTINE, bytes_of_copies
from tieredctl.ops.guards.quarantine_keys import quarantine_key
from tieredctl.ops.guards.sealed_notes import copied_bytes, forget_noted_bytes, note_bytes, write_note
from tieredctl.ops.metadata.followed_metadata import FollowedMetadata
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.preparation import Evidence, Preparation, look
from tieredctl.ops.orphan_removal.putting_back import put_back
from tieredctl.ports.layout import Part
from tieredctl.ports.metadata_source import OffsetRange
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.memory import MemoryStore

PLAN_ID = "11112222333344445555666677778888"
PLAN = ReceiptsHeader(PLAN_ID, "0" * 64, "cluster", "memory:", "local", RemovalMode.QUARANTINE)


def removed(store: MemoryStore, key: str, data: bytes) -> Receipt:
    """What is on record of an object whose copy is in quarantine."""
    copy = store.put(quarantine_key("cluster", PLAN_ID, StoredObject(key, len(data), 0, "1")), data)
    digest = b64encode(sha256(data).digest()).decode()
    kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
    return Receipt(ReceiptStep.COPIED, key, 0, len(data), kept, checksums={"sha256": digest})


def evidence(store: MemoryStore, *, accept_unverified: bool = False) -> Evidence:
    """By receipts alone."""
    return Evidence(store, None, PLAN_ID, receipts_in_store=False, accept_unverified=accept_unverified)


def test_an_object_is_put_back_from_a_copy_that_was_made_once_more() -> None:
    store = MemoryStore()
    receipt = removed(store, "a", b"bytes")
    removed(store, "a", b"bytes")

    back = put_back(store, receipt, 0, evidence(store)).receipt

    assert (back.step, store.read("a")) == (ReceiptStep.RESTORED, b"bytes")


KEY, OTHER_KEY = b"k" * 32, b"o" * 32


def test_receipts_count_only_where_no_seal_is_to_be_expected() -> None:
    cases: list[tuple[bytes | None, bool, bytes | None, bool]] = [
        (None, False, None, True),
        (None, True, None, False),
        (None, False, KEY, False),
        (KEY, False, None, True),
        (KEY, True, None, False),
        (KEY, False, OTHER_KEY, False),
        (KEY, True, KEY, True),
    ]
    for key, receipts_in_store, sealed_with, is_verified in cases:
        store = MemoryStore()
        receipt = removed(store, "a", b"bytes")
        copy = store.head(quarantine_key("cluster", PLAN_ID, StoredObject("a", 5, 0, "1")))
        assert copy is not None, (key, receipts_in_store, sealed_with, is_verified)
        assert receipt.checksums is not None, (key, receipts_in_store, sealed_with, is_verified)
        note_bytes(store, sealed_with, PLAN_ID, [copied_bytes(copy, receipt.checksums)])
        back = put_back(store, receipt, 0, Evidence(store, key, PLAN_ID, receipts_in_store)).receipt
        assert (back.step is ReceiptStep.RESTORED) == is_verified, back.error
        assert is_verified or str(back.error).startswith("copy-unverified"), key


@pytest.mark.parametrize("others", [0, 2])
def test_a_note_stays_while_a_copy_does_though_the_store_denies_it_once(others: int) -> None:
    class Denying(MemoryStore):
        denied: str | None = None

        def head(self, key: str) -> StoredObject | None:
            if key == self.denied:
                self.denied = None
                return None
            return super().head(key)

    store = Denying()
    receipts = [removed(store, f"a{number}", b"bytes") for number in range(others + 1)]
    copies = [copy for copy in store.list() if copy.key.startswith(QUARANTINE)]
    note_bytes(store, KEY, PLAN_ID, [copied_bytes(copy, receipts[0].checksums or {}) for copy in copies])
    for copy in copies[1:]:
        store.delete([copy])

    store.denied = copies[0].key
    forget_noted_bytes(store, KEY)
    back = put_back(store, receipts[0], 0, Evidence(store, KEY, PLAN_ID, receipts_in_store=True)).receipt
    store.delete([copies[0]])
    forget_noted_bytes(store, KEY)

    assert back.step is ReceiptStep.RESTORED, back.error
    assert list(store.list(bytes_of_copies(PLAN_ID))) == []


def test_a_sealed_note_of_another_plan_or_store_tells_nothing() -> None:
    for plan_id, url in (("another", "memory:"), (PLAN_ID, "memory:other")):
        store = MemoryStore()
        receipt = removed(store, "a", b"bytes")
        copy = store.put(quarantine_key("cluster", plan_id, StoredObject("a", 5, 0, "1")), b"bytes")
        note = BytesNote(url, (copied_bytes(copy, receipt.checksums or {}),))
        write_note(store, KEY, bytes_of_copies(PLAN_ID), BYTES_NOTE.encode(note))

        back = put_back(store, receipt, 0, Evidence(store, KEY, PLAN_ID, receipts_in_store=True)).receipt

        assert str(back.error).startswith("copy-unverified"), (plan_id, url)


def test_what_is_absent_was_removed_only_by_a_receipt_of_its_copy_and_with_its_bytes() -> None:
    planned = PlannedObject("a", 5, 0, "1", "orphan", None, None)
    recorded = removed(MemoryStore(), "a", b"bytes")
    for before, data, step in (
        (recorded, b"bytes", ReceiptStep.REMOVED),
        (recorded, b"other", ReceiptStep.FAILED),
        (recorded._replace(copy=None), b"bytes", ReceiptStep.GONE),
        (None, b"bytes", ReceiptStep.GONE),
    ):
        store = MemoryStore()
        removed(store, "a", data)
        preparation = Preparation(store, "cluster", PLAN_ID, RemovalMode.QUARANTINE, evidence(store))

        assert preparation.prepare(look(store, planned), before).step is step, (before, data)


NOW_MS = 1_700_000_000_000


def test_an_object_that_is_put_back_is_as_old_as_it_was() -> None:
    cases: list[tuple[int, int]] = [(5, 5), (NOW_MS + 9, NOW_MS), (-1 << 70, 0)]
    for modified_ms, put_back_as in cases:
        store = MemoryStore()
        receipt = removed(store, "a", b"bytes")._replace(modified_ms=modified_ms)
        put_back(store, receipt, NOW_MS, evidence(store))
        found = store.head("a")
        assert found is not None, (modified_ms, put_back_as)
        assert found.last_modified_ms == put_back_as, (modified_ms, put_back_as)
    # The quarantine alone tells how old an object was.
    store = MemoryStore()
    copy = store.put(quarantine_key("cluster", PLAN_ID, store.put("a", b"bytes", 5)), b"bytes")
    kept = QuarantinedCopy(copy.key, copy.size, copy.last_modified_ms, copy.version)
    store.delete([one for one in store.list() if one.key == "a"])
    put_back(store, Receipt(ReceiptStep.COPIED, "a", 0, 5, kept), NOW_MS, evidence(store, accept_unverified=True))
    found = store.head("a")
    assert found is not None
    assert found.last_modified_ms == 5


def test_what_is_put_back_without_a_copy() -> None:
    # An object that was never deleted is back without a copy.
    store = MemoryStore()
    found = store.put("a", b"bytes")
    back = put_back(store, Receipt(ReceiptStep.DELETING, "a", 0, 5, version=found.version), 0, evidence(store)).receipt
    assert (back.step, back.size) == (ReceiptStep.RESTORED, 5)
    # An object that was deleted without a copy cannot be put back.
    store = MemoryStore()
    back = put_back(store, Receipt(ReceiptStep.DELETING, "a", 0, 5), 0, evidence(store)).receipt
    assert back.step is ReceiptStep.FAILED
    assert back.error is not None
    assert "without a copy" in back.error


def test_a_run_that_lost_its_lease_does_not_say_that_a_restored_plan_is_applied() -> None:
    store = MemoryStore()
    Ledger(store, record_of(PLAN), PLAN_ID).record(PlanUse.RESTORED)

    with pytest.raises(TieredctlError) as caught:
        Ledger(store, record_of(PLAN), PLAN_ID).record(PlanUse.APPLIED)

    assert caught.value.code == "lease-lost"
    assert Ledger(store, record_of(PLAN), PLAN_ID).use() is PlanUse.RESTORED


@dataclass
class TwoPartitions:
    """Metadata of two partitions; the second, of which no record is left, may come from a replica that is behind."""

    events: list[MetadataEvent]
    second_ends: list[int] = field(default_factory=list)
    """Of each reading."""

    def opened(self) -> _TwoPartitions:
        return _TwoPartitions(self.events, self.second_ends)


@dataclass
class _TwoPartitions(EventsInMemory):
    second_ends: list[int]

    def __post_init__(self) -> None:
        super().__post_init__()
        self.second_end = self.second_ends.pop(0)

    def advance(self) -> bool:
        before, self.second_end = self.second_end, self.second_ends.pop(0)
        return super().advance() or before != self.second_end

    def metadata_partitions(self) -> list[int]:
        return [0, 1]

    def chunks(self, metadata_partition: int, from_offset: int = 0) -> Iterator[RecordChunk]:
        return super().chunks(0, from_offset) if metadata_partition == 0 else iter(())

    def offset_range(self, metadata_partition: int) -> OffsetRange:
        return super().offset_range(0) if metadata_partition == 0 else OffsetRange(self.second_end, self.second_end)


def test_what_was_read_before_a_replica_was_found_behind_is_not_forgotten() -> None:
    announced, finished = copied(1, 0, 9)
    topic = TwoPartitions([announced], second_ends=[5, 4, 5])
    metadata = FreshMetadata(
        FollowedMetadata(topic.opened, "cluster"), LAYOUT, 0, NO_TOPIC_SOURCES, lambda: 2_000_000_000_000
    )
    metadata.refresh()
    topic.events.append(finished)
    with pytest.raises(TieredctlError, match="was read up to 5 before"):
        metadata.refresh()

    metadata.refresh()

    key = LAYOUT.promised_objects(started(1, 0, 9))[Part.LOG]
    assert metadata.verdicts([StoredObject(key, 1, 0, "")]) == [(ObjectStatus.OWNED, None)]


def test_where_a_plan_recorded_no_names_what_a_layout_explains_stays_in_quarantine() -> None:
    source = EventsInMemory(copied(1, 0, 9))
    metadata = FreshMetadata(
        FollowedMetadata(lambda: source, "cluster"), LAYOUT, 0, NO_TOPIC_SOURCES, lambda: 2_000_000_000_000
    )
    metadata.refresh()
    without_names = PlanRecord(PlanUse.APPLIED, "cluster", "local", None)
    explained = LAYOUT.promised_objects(started(2, 10, 19))[Part.LOG]

    may_go = {key: metadata.may_be_purged(key, ObjectStatus.UNKNOWN, without_names) for key in (explained, "notes.txt")}

    assert may_go == {explained: False, "notes.txt": True}
