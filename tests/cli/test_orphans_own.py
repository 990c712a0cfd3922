"""`orphans quarantine ls` and `orphans unlock`: what tieredctl keeps in a store."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

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
    empty = ls(planned, "-o", "json")
    planned.apply()
    (planned_id,) = {plan_lines(planned.plan_file)[0]["planId"]}

    table, items = ls(planned), ls(planned, "-o", "json")

    document = items.document()
    assert (empty.exit_code, empty.document()["items"]) == (0, [])
    assert (table.exit_code, items.exit_code) == (0, 0)
    assert planned_id in table.out
    assert (document["summary"]["plans"], document["summary"]["objects"]) == (1, ORPHANS)
    assert {item["key"] for item in document["items"]} == planned_keys(planned.plan_file)
    assert {(item["clusterId"], item["planId"]) for item in document["items"]} == {(CLUSTER_ID, planned_id)}
    assert all(item["lastModified"] < item["quarantined"] for item in document["items"])


def test_whatever_lies_in_the_quarantine_it_is_listed(cluster: CrashedClusterOnDisk) -> None:
    for name in FORGED:
        put(cluster, QUARANTINE + name)
    os.utime(cluster.bucket / (QUARANTINE + "x/y"), (LONG_AGO, -LONG_AGO))

    for form in ("table", "wide", "json", "jsonl", "yaml", "csv"):
        assert ls(cluster, "-o", form).exit_code == 0, form


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


def test_a_lease_is_shown_and_not_broken_unless_its_holder_is_named(tieredctl: Tieredctl, tmp_path: Path) -> None:
    lease, holder = held_lease(tmp_path, expiresMs=10**30), ("--holder", "other-host:17")
    before = lease.read_bytes()

    for words in ((), ("--yes",), holder, ("--yes", "--holder", "other-host:18")):
        outcome = unlock(tieredctl, tmp_path, *words)

        assert (outcome.exit_code, lease.read_bytes()) == (2, before), words
        assert "other-host:17 (orphans apply)" in outcome.err

    shown = unlock(tieredctl, tmp_path, "--yes", *holder, "--dry-run", "-o", "json")
    assert (shown.exit_code, shown.document()["summary"]) == (0, {"held": True, "broken": False})
    assert lease.read_bytes() == before


def test_a_lease_is_broken_by_its_holders_name(tieredctl: Tieredctl, tmp_path: Path) -> None:
    held_lease(tmp_path)

    outcome = unlock(tieredctl, tmp_path, "--yes", "--holder", "other-host:17", "-o", "json")

    document = outcome.document()
    assert (outcome.exit_code, document["summary"]) == (0, {"held": True, "broken": True})
    assert (document["items"][0]["holder"], document["items"][0]["command"]) == ("other-host:17", "orphans apply")
    assert can_be_locked(tmp_path)


def test_a_run_on_this_host_is_reported_as_alive(tieredctl: Tieredctl, tmp_path: Path) -> None:
    with lease_held(FileStore(str(tmp_path)), "orphans purge", clock_ms):
        outcome = unlock(tieredctl, tmp_path)

    assert outcome.exit_code == 2
    assert f"{socket.gethostname()}:{os.getpid()} (orphans purge)" in outcome.err
    assert "is running on this host" in outcome.err


def test_what_is_free_is_left_as_it_is(tieredctl: Tieredctl, tmp_path: Path) -> None:
    lease = tmp_path / LEASE_KEY
    for make in (lambda: None, lambda: can_be_locked(tmp_path), lambda: held_lease(tmp_path, age_s=LEASE_MS / 1_000)):
        make()
        before = lease.read_bytes() if lease.exists() else None

        outcome = unlock(tieredctl, tmp_path, "--yes", "--holder", "other-host:17")

        assert (outcome.exit_code, lease.read_bytes() if lease.exists() else None) == (0, before)


def test_a_lease_that_cannot_be_read_is_shown_too(tieredctl: Tieredctl, tmp_path: Path) -> None:
    for data in (b"", b"[]", b"\xff", b'{"holder": 1, "sinceMs": 1e400}', b'{"holder": "h:99999999999"}'):
        held_lease(tmp_path).write_bytes(data)

        assert unlock(tieredctl, tmp_path).exit_code == 2, data


def test_without_a_store_there_is_nothing_to_show(tieredctl: Tieredctl) -> None:
    for words in (("quarantine", "ls"), ("unlock",)):
        assert tieredctl("orphans", *words).exit_code == 2, words
