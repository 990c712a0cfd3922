"""Small objects of the remote store that new followers, and consumers of committed records, depend on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tieredctl_local.layout import LocalLayout

from tests.doctor.test_cluster_rules import PLACE, SOUND, segment
from tests.metadata_logs import DELETING, copied, updated, write_events
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.indexes import AbortedTransaction, encode_transaction_index
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.layouts.registry import layout_in
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.snapshot import PartitionFacts
from tieredctl.ops.doctor.gathering import with_objects
from tieredctl.ops.doctor.object_checks import (
    INDEXES_A_PARTITION,
    LONGEST_INDEX_BYTES,
    auxiliary_state,
    transaction_indexes,
)
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed
from tieredctl.ports.layout import AUTO, Part
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore

LAYOUT = LocalLayout()
ABORTED = AbortedTransaction(producer_id=1, first_offset=12, last_offset=15, last_stable_offset=16)
THREE = replace(PLACE, segments=[segment(1, 0, 9), segment(2, 10, 19), segment(3, 20, 24)], latest_tiered=24)
"""The leader's disk begins at 20, after the second of three segments."""


def key(number: int, part: Part, facts: PartitionFacts = THREE) -> str:
    metadata = facts.segments[number - 1].metadata
    return (LAYOUT.promised_objects(metadata) | LAYOUT.optional_objects(metadata))[part]


def stored(facts: PartitionFacts = THREE) -> MemoryStore:
    """A store with all that is promised."""
    store = MemoryStore()
    for known in facts.segments:
        for one in LAYOUT.promised_objects(known.metadata).values():
            store.put(one, b"bytes")
    return store


def without(*keys: str) -> MemoryStore:
    whole, store = stored(), MemoryStore()
    for one in whole.list():
        if one.key not in keys:
            store.put(one.key, b"bytes")
    return store


def with_index(data: bytes, number: int = 2) -> MemoryStore:
    store = stored()
    store.put(key(number, Part.TRANSACTION_INDEX), data)
    return store


def indexes(store: MemoryStore) -> list[Finding]:
    return transaction_indexes([THREE], store, LAYOUT).findings


def test_what_followers_need_of_the_last_segments_is_missed() -> None:
    # Two segments are asked for two objects each.
    looked = auxiliary_state([THREE], stored(), LAYOUT)
    assert (looked.objects, looked.findings) == (4, [])
    # One that a follower needs is missed.
    cases: list[Part] = [Part.LEADER_EPOCH, Part.PRODUCER_SNAPSHOT]
    for part in cases:
        for number in [2, 3]:
            (finding,) = auxiliary_state([THREE], without(key(number, part)), LAYOUT).findings
            assert finding.code == "follower-state-missing", (part, number)
            assert finding.is_corruption, (part, number)
            assert (finding.evidence["part"], finding.evidence["key"]) == (part.value, key(number, part)), part
    # One that no follower needs is not missed.
    gone = [key(1, Part.LEADER_EPOCH), key(1, Part.PRODUCER_SNAPSHOT), key(2, Part.OFFSET_INDEX), key(3, Part.LOG)]
    assert auxiliary_state([THREE], without(*gone), LAYOUT).findings == []
    # Of segments that overlap the one of the later leader counts.
    later = segment(4, 8, 19, epoch=3)
    facts = replace(THREE, segments=[*THREE.segments, later])
    store = without(key(2, Part.LEADER_EPOCH))
    for one in LAYOUT.promised_objects(later.metadata).values():
        store.put(one, b"bytes")
    assert auxiliary_state([facts], store, LAYOUT).findings == []
    # A partition that has nothing remote needs nothing.
    assert auxiliary_state([replace(THREE, segments=[])], MemoryStore(), LAYOUT).objects == 0


def test_a_transaction_index_that_cannot_be_is_damaged() -> None:
    # A sound transaction index is read.
    looked = transaction_indexes([THREE], with_index(encode_transaction_index([ABORTED])), LAYOUT)
    assert (looked.objects, looked.passed_over, looked.findings) == (1, 0, [])
    # A transaction that began before its segment is sound.
    assert indexes(with_index(encode_transaction_index([ABORTED._replace(first_offset=3)]))) == []
    # One that cannot be is damaged.
    cases: list[tuple[bytes, int]] = [
        (encode_transaction_index([ABORTED._replace(last_offset=9)]), 0),
        (encode_transaction_index([ABORTED, ABORTED._replace(last_offset=20)]), 34),
        (encode_transaction_index([ABORTED._replace(first_offset=16)]), 0),
        (encode_transaction_index([ABORTED, ABORTED]), 34),
        (encode_transaction_index([ABORTED])[:-1], 0),
        (b"\0\1" + encode_transaction_index([ABORTED])[2:], 0),
    ]
    for data, position in cases:
        (finding,) = indexes(with_index(data))
        assert finding.code == "transaction-index-damaged", (data, position)
        assert finding.is_corruption, (data, position)
        assert (finding.evidence["key"], finding.evidence["position"]) == (key(2, Part.TRANSACTION_INDEX), position)


def test_which_transaction_indexes_are_looked_at() -> None:
    # A segment without one needs none.
    assert transaction_indexes([THREE], stored(), LAYOUT).objects == 0
    # One that the metadata calls empty is not looked for.
    facts = replace(THREE, segments=[segment(2, 10, 19, txn_idx_empty=True)])
    store = MemoryStore()
    store.put(key(1, Part.TRANSACTION_INDEX, facts), b"cut")
    assert transaction_indexes([facts], store, LAYOUT).findings == []
    # Only the latest segments are looked at.
    many = [segment(number, 10 * number, 10 * number + 9) for number in range(INDEXES_A_PARTITION + 1)]
    facts = replace(THREE, segments=many)
    store = MemoryStore()
    for number in range(1, INDEXES_A_PARTITION + 2):
        store.put(key(number, Part.TRANSACTION_INDEX, facts), b"cut")
    assert len(transaction_indexes([facts], store, LAYOUT).findings) == INDEXES_A_PARTITION
    # A long index is passed over and counted.
    looked = transaction_indexes([THREE], with_index(bytes(LONGEST_INDEX_BYTES + 1)), LAYOUT)
    assert looked == (0, 1, [])


def test_what_brokers_copied_is_sound(captures: Path) -> None:
    for name, remote in [
        ("kafka-4.3.1", "remote/kafka-tiered-storage"),
        ("kafka-3.9.1", "remote/kafka-tiered-storage"),
        ("aiven-plain-4.3.1", "bucket"),
        ("aiven-zstd-encrypted-4.3.1", "bucket"),
    ]:
        capture = captures / name
        key_file = capture / "keys" / "private.pem"
        store = FileStore(str(capture / remote))
        layout = layout_in(store, AUTO, {"private-key": str(key_file)} if key_file.exists() else {})
        caches = replayed(EventStream(LogDirectories([capture / "data"]))).caches
        partitions = [
            PartitionFacts(partition, earliest=0, segments=cache.list_remote_log_segments())
            for partition, cache in caches.items()
        ]
        state, read = auxiliary_state(partitions, store, layout), transaction_indexes(partitions, store, layout)
        assert state.findings == read.findings == [], (name, remote)
        assert state.objects >= 2, (name, remote)
        assert read.objects > 0, (name, remote)


Events = Callable[[], EventStream]


@pytest.fixture
def metadata(tmp_path: Path) -> Callable[..., Events]:
    def metadata(*events: Any) -> Events:
        write_events(tmp_path, *events)
        return lambda: EventStream(LogDirectories([tmp_path]))

    return metadata


def test_what_is_missed_is_believed_if_the_segment_is_still_there(metadata: Callable[..., Events]) -> None:
    events = metadata(*copied(2, 10, 19), *copied(3, 20, 24))
    store = without(key(2, Part.LEADER_EPOCH), key(3, Part.LEADER_EPOCH))

    found = with_objects(replace(SOUND, partitions=[THREE]), store, LAYOUT, events).objects

    assert found is not None
    assert len(found.findings) == 2


def test_a_segment_that_goes_meanwhile_is_not_missed(metadata: Callable[..., Events]) -> None:
    events = metadata(*copied(2, 10, 19), updated(2, DELETING), *copied(3, 20, 24))
    store = without(key(2, Part.LEADER_EPOCH), key(3, Part.LEADER_EPOCH))

    found = with_objects(replace(SOUND, partitions=[THREE]), store, LAYOUT, events).objects

    assert found is not None
    assert [finding.evidence["key"] for finding in found.findings] == [key(3, Part.LEADER_EPOCH)]


def test_a_store_that_does_not_answer_is_reported_as_unseen(metadata: Callable[..., Events]) -> None:
    class SilentStore(MemoryStore):
        def head(self, key: str) -> Any:
            raise TieredctlError(ErrorCode.STORE_UNREACHABLE, "The store does not answer.")

    found = with_objects(replace(SOUND, partitions=[THREE]), SilentStore(), LAYOUT, metadata(*copied(2, 10, 19)))

    assert [one.code for one in found.not_looked_at] == ["check-not-made", "check-not-made"]
    assert found.objects is not None
    assert found.objects.auxiliary is None
