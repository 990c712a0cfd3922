"""`recover log-starts`, stopped within: each file is the old one or the new one, and another run finishes."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.moved_log_starts import (
    EPOCHS,
    RIGHT,
    STARTS,
    STARTS_MOVED,
    checkpoint,
    contents,
    is_right,
    kept,
    moved_node,
    plan,
    put_back,
    written,
)
from tieredctl.errors import ExitCode
from tieredctl.wiring.log_start_recovery import log_start_recovery


@pytest.fixture
def node(tmp_path: Path) -> Path:
    moved_node(tmp_path / "data")
    return tmp_path / "data"


@pytest.fixture
def plan_file(tmp_path: Path) -> Path:
    return written(tmp_path / "plan.json", plan())


class Killed(BaseException):
    """Nothing of the process runs after it."""


_CHANGES = ("link", "replace", "fsync", "fchmod", "unlink")


def counted_changes(patch: pytest.MonkeyPatch, at: int, then: Callable[[str], None]) -> list[str]:
    """Does something right before the change of this number; notes all."""
    seen: list[str] = []
    for name in _CHANGES:
        original = getattr(os, name)

        def changed(*words: Any, _name: str = name, _original: Any = original, **named: Any) -> Any:
            seen.append(_name)
            if len(seen) == at:
                then(_name)
            return _original(*words, **named)

        patch.setattr(os, name, changed)
    return seen


def killed(_name: str) -> None:
    raise Killed


def full(name: str) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), name)


def test_killed_at_every_change_in_turn_another_run_finishes(tmp_path: Path) -> None:
    number, done = 0, False
    while not done:
        number += 1
        node = tmp_path / str(number) / "data"
        moved_node(node)
        before, plan_file = contents(node), written(tmp_path / str(number) / "plan.json", plan())
        with pytest.MonkeyPatch.context() as patch:
            seen = counted_changes(patch, number, killed)
            try:
                with log_start_recovery(plan_file, node) as recovery:
                    done = recovery.apply().is_complete
            except Killed:
                assert contents(node)[STARTS] in (before[STARTS], RIGHT[STARTS]), seen
        between = {name: contents(node)[name] for name in RIGHT}
        assert all(text in (before[name], RIGHT[name]) for name, text in between.items()), (seen, between)
        assert between[STARTS] == before[STARTS] or between == RIGHT, seen

        outcome = put_back(plan_file, node)

        assert (outcome.exit_code, is_right(node)) == (ExitCode.CLEAN, True), (seen, outcome.err)
        assert kept(node) == {name: before[name] for name in RIGHT}, seen
        assert not [name for name in contents(node) if name.endswith(".tmp")], seen
    assert number > 3 * len(RIGHT)


def test_a_disk_that_is_full_at_any_change_leaves_whole_files_and_says_so(tmp_path: Path) -> None:
    for number in range(1, 8):
        node = tmp_path / str(number) / "data"
        moved_node(node)
        before, plan_file = contents(node), written(tmp_path / str(number) / "plan.json", plan())
        with pytest.MonkeyPatch.context() as patch:
            counted_changes(patch, number, full)
            outcome = put_back(plan_file, node)

        after = contents(node)
        assert all(after[name] in (before[name], RIGHT[name]) for name in RIGHT), number
        assert not [name for name in after if name.endswith(".tmp")], number
        ended = outcome.exit_code == ExitCode.FAILURE and "No space left" in outcome.err
        assert ended or is_right(node), (number, outcome.err)
        assert put_back(plan_file, node).exit_code == ExitCode.CLEAN
        assert is_right(node), number


STARTED_MEANWHILE: Mapping[str, tuple[Callable[[Path], object], ExitCode]] = {
    "a node": (lambda node: (node / ".lock").rename(node / "former"), ExitCode.LOCKED),
    "whoever writes the log starts": (
        lambda node: (node / STARTS).write_text(STARTS_MOVED.replace("7 5", "7 6")),
        ExitCode.INCOMPLETE,
    ),
    "whoever writes epochs": (
        lambda node: (node / f"orders-1/{EPOCHS}").write_text(checkpoint((5, 40), (6, 60))),
        ExitCode.INCOMPLETE,
    ),
}


def test_what_changes_the_files_meanwhile_stops_it(tmp_path: Path) -> None:
    for name, (change, code) in STARTED_MEANWHILE.items():
        node = tmp_path / name / "data"
        moved_node(node)
        plan_file = written(tmp_path / name / "plan.json", plan())
        with pytest.MonkeyPatch.context() as patch:
            counted_changes(patch, 2, lambda _name, change=change, node=node: change(node))  # type: ignore[misc]
            outcome = put_back(plan_file, node, "-o", "json")

        assert outcome.exit_code == code, (name, outcome.err)
        assert json.loads(outcome.out)["summary"]["done"] == 0, name
        assert "orders 0 22" in contents(node)[STARTS], name


def test_what_has_the_name_of_an_old_file_is_not_replaced(node: Path, plan_file: Path, tmp_path: Path) -> None:
    shutil.copytree(node, tmp_path / "copy")
    put_back(plan_file, tmp_path / "copy")
    (name,) = (path.name for path in (tmp_path / "copy").glob("*-kept-*"))
    (node / name).write_text("somebody's")

    outcome = put_back(plan_file, node)

    assert (outcome.exit_code, (node / name).read_text()) == (ExitCode.FAILURE, "somebody's"), outcome.err
    assert (node / STARTS).read_text() == STARTS_MOVED


def test_an_owner_that_cannot_be_kept_stops_it(node: Path, plan_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    of_another = os.fstat

    def fstat(descriptor: int) -> os.stat_result:
        found = of_another(descriptor)
        is_new = os.readlink(f"/proc/self/fd/{descriptor}").endswith(".tmp")
        return os.stat_result([*found[:4], found.st_uid + 1, *found[5:]]) if is_new else found

    def fchown(*_words: object) -> None:
        raise PermissionError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "fstat", fstat)
    monkeypatch.setattr(os, "fchown", fchown)
    before = contents(node)

    outcome = put_back(plan_file, node)

    assert outcome.exit_code == ExitCode.FAILURE, outcome.err
    assert {name: text for name, text in contents(node).items() if "-kept-" not in name} == before
