"""Logs as storage managers leave them in a store: what is compressed or encrypted is not called damaged."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.faults.aiven_storage_manager import AivenStorageManager
from tests.faults.segments_made import indexed_by_batch
from tieredctl.ports.layout import Part

OBJECT = "00000000000000001000-AQIDBAUGBwgJCgsMDQ4PEA.log"
BROKERS = "00000000000000001000.log"


def test_every_encrypted_log_of_a_cluster(tieredctl: Tieredctl, captures: Path) -> None:
    logs = sorted((captures / "aiven-zstd-encrypted-4.3.1" / "bucket").rglob("*.log"))
    assert len(logs) > 100

    for log in logs[::8]:
        outcome = tieredctl("store", "inspect", log)
        assert (outcome.exit_code, outcome.out) == (5, ""), log
        assert "it is encrypted, compressed" in outcome.err
        assert "remote read" in outcome.err


@pytest.mark.parametrize("compression", [False, True])
@pytest.mark.parametrize("encryption", [False, True])
def test_what_each_way_to_store_a_log_looks_like(
    tieredctl: Tieredctl, tmp_path: Path, compression: bool, encryption: bool
) -> None:
    """Its records are random, so that zstd keeps them as they are."""
    manager = AivenStorageManager(chunk_size=8_192, compression=compression, encryption=encryption)
    path = tmp_path / OBJECT
    path.write_bytes(manager.objects(indexed_by_batch().parts)[Part.LOG])

    assert tieredctl("store", "inspect", path).exit_code == (5 if compression or encryption else 0)


def test_a_broker_transforms_nothing(tieredctl: Tieredctl, tmp_path: Path) -> None:
    path = tmp_path / BROKERS
    path.write_bytes(os.urandom(9_000))

    assert tieredctl("store", "inspect", path).exit_code == 4


def test_a_log_with_one_batch_that_is_damaged_is_damaged(tieredctl: Tieredctl, tmp_path: Path) -> None:
    log = bytearray(indexed_by_batch().parts[Part.LOG])
    log[100] ^= 1
    path = tmp_path / OBJECT
    path.write_bytes(log)

    outcome = tieredctl("store", "inspect", path, "-o", "json")

    assert outcome.exit_code == 4
    assert [entry["isValid"] for entry in outcome.document()["items"][0]["entries"]].count(False) == 1
