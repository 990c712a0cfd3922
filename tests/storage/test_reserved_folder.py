"""The folder `.tieredctl/` belongs to tieredctl: what is in it is passed over."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import this_process
from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED, StoredObject, list_unreserved
from tieredctl.storage.memory import MemoryStore

QUARANTINED = RESERVED_FOLDER + "quarantine/1/"


def store_of(*keys: str) -> MemoryStore:
    store = MemoryStore()
    for key in keys:
        store.put(key, b"bytes")
    return store


@pytest.fixture(scope="module")
def cluster(captures: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sound cluster, of which a copy of every object is in quarantine, and one was not finished."""
    copy = tmp_path_factory.mktemp("cluster") / "kafka-4.3.1"
    shutil.copytree(captures / "kafka-4.3.1", copy)
    store = copy / "remote" / "kafka-tiered-storage"
    shutil.copytree(captures / "kafka-4.3.1" / "remote" / "kafka-tiered-storage", store / QUARANTINED)
    (next(store.glob("*/*.log")).parent / f"{UNFINISHED}0123").write_bytes(b"half of")
    return copy


def outcome(cluster: Path, *words: str) -> tuple[int, str]:
    where = ("--store", f"file:{cluster / 'remote' / 'kafka-tiered-storage'}")
    metadata = () if words[0] == "remote" else ("--log-dir", cluster / "data")
    done = this_process(*words, *where, *metadata, "-o", "jsonl")
    return done.exit_code, done.out


@pytest.mark.parametrize(
    "words",
    [("remote", "ls"), ("remote", "du"), ("verify", "--level", "listing"), ("orphans", "scan", "--min-age", "0s")],
    ids=["remote ls", "remote du", "verify", "orphans scan"],
)
def test_what_tieredctl_keeps_in_a_store_changes_no_answer(
    cluster: Path, captures: Path, words: tuple[str, ...]
) -> None:
    assert outcome(cluster, *words) == outcome(captures / "kafka-4.3.1", *words)


def test_a_scan_says_how_much_it_passed_over(cluster: Path) -> None:
    store = cluster / "remote" / "kafka-tiered-storage"
    kept = [file for file in (store / RESERVED_FOLDER).rglob("*") if file.is_file()]
    kept += store.glob(f"*/{UNFINISHED}*")

    done = this_process("orphans", "scan", "--store", f"file:{store}", "--log-dir", cluster / "data", "-o", "json")

    summary = json.loads(done.out)["summary"]
    assert summary["reserved"] == {"objects": len(kept), "bytes": sum(file.stat().st_size for file in kept)}


@pytest.mark.parametrize(
    "keys",
    [
        ["-a", ".a", ".tieredctl", ".tieredctl-a", ".tieredctl0", "a/.tieredctl/b", "z"],
        ["-a", ".tieredctl/lease", ".tieredctl/quarantine/a", "a"],
        [".tieredctl/\U0010ffff", ".tieredctl/\U0010ffffa", "a"],
        [".tieredctl/lease"],
    ],
    ids=["names that are like it", "in the midst", "the greatest names", "nothing else"],
)
def test_only_what_is_in_the_folder_is_passed_over(keys: list[str]) -> None:
    listed = [stored.key for stored in list_unreserved(store_of(*keys))]

    assert listed == [key for key in keys if not key.startswith(RESERVED_FOLDER)]


def test_prefix_and_start_hold_below_the_folder_too() -> None:
    store = store_of(".a", ".tieredctl/lease", ".u", ".v", "a")

    assert [stored.key for stored in list_unreserved(store, ".", ".a")] == [".u", ".v"]


def test_a_large_quarantine_is_not_listed() -> None:
    listed = []

    class Watched(MemoryStore):
        def list(self, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
            for stored in super().list(prefix, start_after):
                listed.append(stored.key)
                yield stored

    store = Watched()
    for number in range(1_000):
        store.put(f"{QUARANTINED}{number}", b"")
    store.put("a", b"")

    assert [stored.key for stored in list_unreserved(store)] == ["a"]
    assert len(listed) == 2
