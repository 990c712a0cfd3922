"""`orphans quarantine ls` and `orphans unlock`: what tieredctl keeps in a store."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome, Tieredctl
from tests.cli.crashed_cluster import CLUSTER_ID, LONG_AGO, ORPHANS, CrashedClusterOnDisk, plan_lines, planned_keys, put
from tieredctl.cli.arguments import clock_ms
from tieredctl.ops.guards.lease import LEASE_MS, lease_held
from tieredctl.ops.guards.own_objects import LEASE_KEY, QUARANTINE
from tieredctl.storage.file import FileStore

FORGED = (
    *("y", "x/y", "clusters/c/k", "clusters/c/p/k", "clusters/c/p/k~1~2", "clusters/%FF/p/k~1~2~3"),
    f"clusters/c/p/k~{'9' * 18}~{'9' * 18}~",
    f"clusters/c/p/k~1~-{'9' * 18}~",
    f"clusters/c/p/k~{'9' * 99}~1~",
)


def ls(cluster: CrashedClusterOnDisk, *words: str) -> Outcome:
    return cluster.tieredctl("orphans", "quarantine", "ls", *cluster.store, *words)


def test_the_quarantine_shows_what_a_plan_put_there(planned: CrashedClusterOnDisk) -> None:
    planned.apply()
    (planned_id,) = {plan_lines(planned.plan_file)[0]["planId"]}

    table, items = ls(planned), ls(planned, "-o", "json")

    document = items.document()
    assert (table.exit_code, items.exit_code) == (0, 0)
    assert planned_id in table.out
    assert f"orphans restore {planned_id} --store file:{planned.bucket}" in table.err
    assert (document["summary"]["plans"], document["summary"]["objects"]) == (1, ORPHANS)
    assert {item["key"] for item in document["items"]} == planned_keys(planned.plan_file)
    assert {(item["clusterId"], item["planId"]) for item in document["items"]} == {(CLUSTER_ID, planned_id)}
    assert all(item["lastModified"] < item["quarantined"] for item in document["items"])


def test_an_empty_quarantine_is_clean(planned: CrashedClusterOnDisk) -> None:
    outcome = ls(planned, "-o", "json")

    assert (outcome.exit_code, outcome.document()["items"]) == (0, [])


@pytest.mark.parametrize("form", ["table", "wide", "json", "jsonl", "yaml", "csv"])
def test_whatever_lies_in_the_quarantine_it_is_listed(planned: CrashedClusterOnDisk, form: str) -> None:
    for name in FORGED:
        put(planned, QUARANTINE + name)
    os.utime(planned.bucket / (QUARANTINE + "x/y"), (LONG_AGO, -LONG_AGO))

    outcome = ls(planned, "-o", form)

    assert outcome.exit_code == 0


def unlock(tieredctl: Tieredctl, folder: Path, *words: str) -> Outcome:
    return tieredctl("orphans", "unlock", "--store", f"file:{folder}", *words)


def held_lease(folder: Path, holder: str = "other-host:17", age_s: float = 0, **fields: object) -> Path:
    file = folder / LEASE_KEY
    file.parent.mkdir(exist_ok=True)
    file.write_text(json.dumps({"holder": holder, "purpose": "orphans apply", "sinceMs": LONG_AGO * 1_000, **fields}))
    then = clock_ms() / 1_000 - age_s
    os.utime(file, (then, then))
    return file


def can_be_locked(folder: Path) -> bool:
    with lease_held(FileStore(str(folder)), "a test", clock_ms):
        return True


@pytest.mark.parametrize(
    "words", [(), ("--yes",), ("--holder", "other-host:17"), ("--yes", "--holder", "other-host:18")]
)
def test_a_lease_is_shown_and_not_broken_unless_its_holder_is_named(
    tieredctl: Tieredctl, tmp_path: Path, words: tuple[str, ...]
) -> None:
    lease = held_lease(tmp_path, expiresMs=10**30)
    before = lease.read_bytes()

    outcome = unlock(tieredctl, tmp_path, *words)

    assert outcome.exit_code == 2
    assert "is locked by other-host:17 (orphans apply) since 2023-11-14T22:13:20.000Z, until 20" in outcome.err
    assert lease.read_bytes() == before


def test_a_lease_is_broken_by_its_holders_name(tieredctl: Tieredctl, tmp_path: Path) -> None:
    held_lease(tmp_path)

    outcome = unlock(tieredctl, tmp_path, "--yes", "--holder", "other-host:17", "-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, document["summary"]) == (0, {"held": True, "broken": True})
    assert (document["items"][0]["holder"], document["items"][0]["command"]) == ("other-host:17", "orphans apply")
    assert can_be_locked(tmp_path)


def test_a_lease_is_only_shown_by_a_dry_run(tieredctl: Tieredctl, tmp_path: Path) -> None:
    lease = held_lease(tmp_path)
    before = lease.read_bytes()

    outcome = unlock(tieredctl, tmp_path, "--yes", "--holder", "other-host:17", "--dry-run", "-o", "json")

    assert (outcome.exit_code, outcome.document()["summary"]) == (0, {"held": True, "broken": False})
    assert lease.read_bytes() == before


def test_a_run_on_this_host_is_reported_as_alive(tieredctl: Tieredctl, tmp_path: Path) -> None:
    with lease_held(FileStore(str(tmp_path)), "orphans purge", clock_ms):
        outcome = unlock(tieredctl, tmp_path)

    assert outcome.exit_code == 2
    assert f"{socket.gethostname()}:{os.getpid()} (orphans purge)" in outcome.err
    assert "is running on this host" in outcome.err


@pytest.mark.parametrize("state", ["none", "released", "run out"])
def test_what_is_free_is_left_as_it_is(tieredctl: Tieredctl, tmp_path: Path, state: str) -> None:
    lease = tmp_path / LEASE_KEY
    if state == "released":
        can_be_locked(tmp_path)
    elif state == "run out":
        held_lease(tmp_path, age_s=LEASE_MS / 1_000)
    before = lease.read_bytes() if lease.exists() else None

    outcome = unlock(tieredctl, tmp_path, "--yes", "--holder", "other-host:17")

    assert outcome.exit_code == 0
    assert "is not locked" in outcome.err
    assert (lease.read_bytes() if lease.exists() else None) == before


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"\xff", b'{"holder": 1, "sinceMs": 1e400}', b'{"holder": "h:99999999999"}']
)
def test_a_lease_that_cannot_be_read_is_shown_too(tieredctl: Tieredctl, tmp_path: Path, data: bytes) -> None:
    held_lease(tmp_path).write_bytes(data)

    outcome = unlock(tieredctl, tmp_path)

    assert outcome.exit_code == 2
    assert "is locked by " in outcome.err


@pytest.mark.parametrize("words", [("quarantine", "ls"), ("unlock",)])
def test_without_a_store_there_is_nothing_to_show(tieredctl: Tieredctl, words: tuple[str, ...]) -> None:
    assert tieredctl("orphans", *words).exit_code == 2
