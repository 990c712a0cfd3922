"""A listing without any object, of a store that has promised ones when it is asked by name, is no answer."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl
from tests.diskless.removals import Removal
from tests.diskless.scanned_coordinators import Cluster
from tests.rigs.inkless import Inkless
from tieredctl.errors import ExitCode
from tieredctl.ports.object_store import StoredObject
from tieredctl.storage.file import FileStore

COMMANDS = [("orphans", "scan"), ("orphans", "scan", "-o", "jsonl"), ("status",)]


@pytest.fixture
def nothing_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    def listed(_store: FileStore, prefix: str = "", start_after: str = "") -> Iterator[StoredObject]:
        return iter(())

    monkeypatch.setattr(FileStore, "list", listed)


@pytest.mark.usefixtures("nothing_listed")
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_nothing_is_said_of_a_bucket_by_it(tidy: Inkless, tieredctl: Tieredctl, words: tuple[str, ...]) -> None:
    outcome = tieredctl("diskless", *words, *tidy.places)

    assert (outcome.exit_code, outcome.out) == (ExitCode.FAILURE, "")
    assert "listed no object, and has " in outcome.err


@pytest.mark.usefixtures("nothing_listed")
def test_nothing_is_planned_by_it(removal: Removal) -> None:
    outcome = removal.plan()

    assert (outcome.exit_code, removal.plan_file.exists()) == (ExitCode.FAILURE, False)
    assert "listed no object, and has " in outcome.err


@pytest.mark.usefixtures("nothing_listed")
def test_nothing_is_said_of_coordinators_files_by_it(tieredctl: Tieredctl, tmp_path: Path) -> None:
    outcome = Cluster(tmp_path).scan(tieredctl)

    assert (outcome.exit_code, outcome.out) == (ExitCode.FAILURE, "")
    assert "listed no object, and has " in outcome.err


@pytest.mark.usefixtures("nothing_listed")
@pytest.mark.parametrize("level", ["listing", "full"])
def test_verify_asks_for_each_object_by_name(tidy: Inkless, tieredctl: Tieredctl, level: str) -> None:
    outcome = tieredctl("diskless", "verify", "--level", level, *tidy.places)

    assert outcome.exit_code == ExitCode.CLEAN
