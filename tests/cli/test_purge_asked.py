"""`orphans purge` looks what there is before it asks, asks only if there is something, and deletes nothing newer."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cli.command_line import Outcome
from tests.cli.crashed_cluster import AT_ONCE, CLUSTER_ID, ORPHANS, OTHER_CLUSTER_ID, CrashedClusterOnDisk
from tieredctl.ops.guards.own_objects import QUARANTINE

AGE = ("--older-than", "7d")


class Terminal(io.StringIO):
    """A terminal, and what happens while its user thinks."""

    def __init__(self, typed: str = "", meanwhile: Callable[[], object] = lambda: None) -> None:
        super().__init__(typed)
        self.meanwhile = meanwhile

    def isatty(self) -> bool:
        return True

    def readline(self, *limit: int) -> str:  # type: ignore[override]
        self.meanwhile()
        return super().readline(*limit)


def purge(cluster: CrashedClusterOnDisk, *words: str | Path) -> Outcome:
    metadata = ("--layout", "aiven", "--offline-metadata", "--log-dir", cluster.log_dir)
    return cluster.tieredctl("orphans", "purge", *cluster.store, *metadata, *words)


def copies(cluster: CrashedClusterOnDisk) -> list[Path]:
    return [file for file in (cluster.bucket / QUARANTINE).rglob("*") if file.is_file()]


def test_where_nothing_is_old_enough_nobody_is_asked(quarantined: CrashedClusterOnDisk) -> None:
    """What there is and what stays is said before it is asked."""
    before = quarantined.objects()

    outcome = purge(quarantined, *AGE)

    assert outcome.exit_code == 0
    assert f"Not 7d old yet: {ORPHANS} copies, " in outcome.err
    assert quarantined.objects() == before

    for file in copies(quarantined)[:5]:
        os.utime(file, (1_700_000_000, 1_700_000_000))
    asked = purge(quarantined, *AGE)

    waiting, refused, *_ = asked.err.splitlines()
    assert asked.exit_code == 2
    assert waiting.startswith(f"Not 7d old yet: {ORPHANS - 5} copies, ")
    assert refused.startswith("tieredctl: Permanently deleting 5 copies, ")


def test_an_empty_quarantine_asks_nobody_but_refuses_another_cluster(cluster: CrashedClusterOnDisk) -> None:
    outcome, of_another = purge(cluster, *AGE), purge(cluster, *AGE, "--cluster-id", OTHER_CLUSTER_ID)

    assert (outcome.exit_code, of_another.exit_code) == (0, 2)
    assert outcome.err.startswith("Nothing to delete: ")


def test_what_comes_into_quarantine_while_it_is_asked_stays(
    quarantined: CrashedClusterOnDisk, monkeypatch: pytest.MonkeyPatch
) -> None:
    later = copies(quarantined)[0]

    # Now: after it was shown, and before it is done.
    monkeypatch.setattr(sys, "stdin", Terminal(f"{CLUSTER_ID}\n", lambda: os.utime(later)))
    monkeypatch.setattr(sys, "stderr", screen := Terminal())

    outcome = purge(quarantined, *AT_ONCE)

    assert outcome.exit_code == 0, screen.getvalue()
    assert copies(quarantined) == [later]


def test_what_a_rehearsal_would_delete_is_what_is_deleted(quarantined: CrashedClusterOnDisk) -> None:
    rehearsed = purge(quarantined, *AT_ONCE, "--dry-run")
    done = quarantined.purge(*AT_ONCE)

    assert rehearsed.err.startswith(f"Would delete {ORPHANS} of {ORPHANS} ")
    assert done.err.startswith(f"Deleted {ORPHANS} of {ORPHANS} ")
