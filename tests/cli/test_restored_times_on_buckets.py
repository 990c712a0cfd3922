"""A bucket calls what was put back as old as that: only a note that was sealed with the key of plans makes it older."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_bucket import ROOT, FilledBucket, broker_of_bucket, crashed_contents, store_words
from tests.cli.crashed_cluster import (
    AT_ONCE,
    ENOUGH,
    NO_AGE,
    CrashedCluster,
    plan_lines,
)
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.waiting import wait_until
from tieredctl.ops.guards.own_objects import CLOCK_KEY, TIMES_OF_COPIES, TIMES_OF_RESTORED
from tieredctl.ports.object_store import StoredObject, WritableObjectStore, list_unreserved
from tieredctl.storage.registry import open_writable_store

SERVERS: Mapping[str, type[Bucket]] = {
    "moto": S3Bucket,
    "versitygw": S3Bucket,
    "fake_gcs_server": GcsBucket,
    "azurite": AzureContainer,
}
AGE_MS = 200_000
AGED = ("--min-age", "200s", "--allow-young", *ENOUGH)
PARTITIONS = re.compile("tiered/orders33-[^/]+/[02]/")
CAUSE = ("--cause", "copy-never-finished")


@dataclass
class AgingBucket:
    """A crashed cluster's bucket, and a clock that stands still where the test puts it."""

    cluster: CrashedCluster
    filled: FilledBucket
    store: WritableObjectStore
    patch: pytest.MonkeyPatch

    def newest_ms(self) -> int:
        """The time of the youngest object but tieredctl's own."""
        return max(stored.last_modified_ms for stored in list_unreserved(self.store))

    def next_second(self) -> None:
        """What is written from now on is younger than all that is there."""
        next_ms = self.newest_ms() + 1_000
        wait_until(lambda: self._store_time_ms() >= next_ms, "the store's clock goes on", 60)

    def head(self, key: str) -> StoredObject:
        stored = self.store.head(key)
        assert stored is not None
        return stored

    def _store_time_ms(self) -> int:
        return self.store.write(CLOCK_KEY, b"").last_modified_ms // 1_000 * 1_000

    def remove(self) -> set[str]:
        """Quarantines what was never copied to its end; the keys."""
        assert self.cluster.plan(*ENOUGH, *NO_AGE, *CAUSE, "--force").exit_code == 0
        assert self.cluster.apply().exit_code == 0
        return set(self.planned())

    def removed_and_restored(self) -> set[str]:
        """The same, put back a second later at least."""
        removed = self.remove()
        self.next_second()
        restored = self.cluster.restore()
        assert restored.exit_code == 0, restored.err
        return removed

    def plan_what_is_older_than(self, newest_ms: int) -> Outcome:
        """Plans what is no younger than this, and holds the clock: near enough to the store's for all changes."""
        self.patch.setattr("tieredctl.process.steady_time.now_ms", lambda: newest_ms + AGE_MS)
        self.cluster.receipts_file.unlink(missing_ok=True)
        return self.cluster.plan(*AGED, *CAUSE, "--force")

    def planned(self) -> dict[str, Mapping[str, object]]:
        """The evidence for each object of the plan, by key; of nothing, no plan is written."""
        if not self.cluster.plan_file.exists():
            return {}
        return {line["key"]: line["evidence"] for line in plan_lines(self.cluster.plan_file) if "key" in line}

    def notes(self) -> list[str]:
        return [stored.key for stored in self.store.list(TIMES_OF_RESTORED)]


@pytest.fixture(scope="module")
def contents(captures: Path) -> Mapping[str, bytes]:
    """Two partitions are enough."""
    return {key: data for key, data in crashed_contents(captures).items() if PARTITIONS.match(key)}


@pytest.fixture
def filled(server: str, contents: Mapping[str, bytes], request: pytest.FixtureRequest) -> FilledBucket:
    """All of it put there now, and nothing else."""
    filled = FilledBucket(SERVERS[server](request.getfixturevalue(server).endpoint), contents)
    filled.empty()
    filled.fill()
    return filled


@pytest.fixture
def bucket(
    tieredctl: Tieredctl, captures: Path, filled: FilledBucket, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AgingBucket:
    cluster = CrashedCluster(
        tieredctl, broker_of_bucket(captures, filled.contents), tmp_path, store_words(filled.bucket)
    )
    store = open_writable_store(f"{filled.bucket.scheme}://{BUCKET}/{ROOT}", filled.bucket.options)
    return AgingBucket(cluster, filled, store, monkeypatch)


@pytest.fixture
def newest_ms(bucket: AgingBucket) -> int:
    """The time of the youngest object before anything was removed."""
    return bucket.newest_ms()


on_all_servers = pytest.mark.parametrize(
    "server", ["versitygw", "fake_gcs_server", "azurite", pytest.param("moto", marks=pytest.mark.exhaustive)]
)
on_moto = pytest.mark.parametrize("server", ["moto"])


@on_all_servers
def test_what_was_put_back_is_planned_and_removed_again_at_once(bucket: AgingBucket, newest_ms: int) -> None:
    """But what was written over it is young."""
    removed = bucket.removed_and_restored()

    planned = bucket.plan_what_is_older_than(newest_ms)
    again = bucket.planned()
    applied = bucket.cluster.apply()
    notes = bucket.notes()
    restored = bucket.cluster.restore()
    bucket.plan_what_is_older_than(newest_ms)

    assert (planned.exit_code, applied.exit_code, restored.exit_code) == (0, 0, 0)
    assert set(again) == removed
    assert all("originalTime" in evidence for evidence in again.values())
    assert notes == []
    assert set(bucket.planned()) == removed
    assert bucket.filled.kept() == bucket.filled.as_filled()

    bucket.next_second()
    other_bytes, same_bytes = sorted(removed)[:2]
    bucket.filled.bucket.put(ROOT + other_bytes, bytes(len(bucket.filled.contents[other_bytes])))
    bucket.filled.bucket.put(ROOT + same_bytes, bucket.filled.contents[same_bytes])
    bucket.plan_what_is_older_than(newest_ms)

    assert set(bucket.planned()) == removed - {other_bytes, same_bytes}


@on_moto
def test_apply_goes_by_notes_and_not_by_the_plan_and_who_has_another_key_waits(
    bucket: AgingBucket, newest_ms: int, tmp_path: Path
) -> None:
    bucket.removed_and_restored()
    other_key = tmp_path / "other.key"
    other_key.write_text("00" * 32)
    other_key.chmod(0o600)
    with bucket.patch.context() as patch:
        patch.setenv("TIEREDCTL_PLAN_KEY_FILE", str(other_key))
        bucket.plan_what_is_older_than(newest_ms)
    by_another_key = bucket.planned()
    bucket.plan_what_is_older_than(newest_ms)
    bucket.store.delete(list(bucket.store.list(TIMES_OF_RESTORED)))

    applied = bucket.cluster.apply()

    assert (by_another_key, applied.exit_code) == ({}, 5)
    assert bucket.filled.kept() == bucket.filled.as_filled()


@on_moto
def test_notes_of_copies_go_with_the_copies(bucket: AgingBucket) -> None:
    bucket.remove()
    before = list(bucket.store.list(TIMES_OF_COPIES))

    purged = bucket.cluster.purge(*AT_ONCE)

    assert purged.exit_code == 0
    assert (len(before), list(bucket.store.list(TIMES_OF_COPIES))) == (1, [])
