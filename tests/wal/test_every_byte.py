"""A byte that changed anywhere in a store of combined objects is found."""

from __future__ import annotations

from pathlib import Path

import pytest
from tieredctl_proposals.ops.wal.contents import read_contents
from tieredctl_proposals.ops.wal.level import WalLevel
from tieredctl_proposals.ops.wal.local_batches import local_active_logs
from tieredctl_proposals.ops.wal.upload import ActiveSegmentsUpload
from tieredctl_proposals.ops.wal.verify import verify_wal

from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.cli.arguments import clock_ms
from tieredctl.kafka.local_logs import read_local_replicas
from tieredctl.model.clock import Clock
from tieredctl.ports.object_store import RESERVED_FOLDER
from tieredctl.storage.memory import MemoryStore

NOW = Clock(clock_ms(), 0)
EPOCH_OF_A_BATCH = range(12, 16)
"""In the event log a batch's leader epoch is its broker's business, and no CRC covers it."""


@pytest.fixture
def store(tmp_path: Path) -> MemoryStore:
    write_partition(tmp_path, ORDERS[0], [batch(0, size=1), batch(1, epoch=1, size=1)])
    store = MemoryStore()
    logs = local_active_logs(read_local_replicas([tmp_path]))
    assert ActiveSegmentsUpload(store, logs, 1, clock_ms, 1 << 20).run().objects == 1
    return store


def damage(store: MemoryStore, key: str, position: int) -> set[str]:
    """The codes of what is found after a bit of one byte was turned; it is turned back."""
    sound = store.read(key)
    store.put(key, sound[:position] + bytes([sound[position] ^ 4]) + sound[position + 1 :])
    found = verify_wal(store, read_contents(store), WalLevel.FULL, NOW).findings
    store.put(key, sound)
    return {finding.code.value for finding in found}


def positions(store: MemoryStore, step: int) -> list[tuple[str, int]]:
    keys = [stored.key for stored in store.list() if not stored.key.startswith(RESERVED_FOLDER)]
    return [(key, at) for key in keys for at in range(0, len(store.read(key)), step)]


def demand_found(store: MemoryStore, step: int) -> None:
    for key, position in positions(store, step):
        codes = damage(store, key, position)
        if key.endswith(".wal"):
            assert "wal-object-damaged" in codes, (key, position)
        elif position not in EPOCH_OF_A_BATCH:
            assert "wal-metadata-damaged" in codes, (key, position)


def test_a_byte_that_changed_is_found(store: MemoryStore) -> None:
    assert verify_wal(store, read_contents(store), WalLevel.FULL, NOW).findings == []

    demand_found(store, step=67)


@pytest.mark.exhaustive
def test_every_byte_that_changed_is_found(store: MemoryStore) -> None:
    demand_found(store, step=1)
