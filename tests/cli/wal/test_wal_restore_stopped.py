"""`tieredctl wal restore`: all of it is in its folder, or nothing, whatever is there and whatever interrupts it."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from errno import ENOSPC
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tieredctl_proposals.ops.wal import restore
from tieredctl_proposals.ops.wal.restored_log import RestoredLog, write_log

from tests.cli.command_line import Tieredctl
from tests.cli.wal.store_of_uploads import restored
from tests.wal.killed_store import Killed
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.object_store import ObjectStore

KILLED = 137


def test_what_is_there_already_is_never_written_over(uploaded: Path, tmp_path: Path, tieredctl: Tieredctl) -> None:
    (tmp_path / "to/orders-1").mkdir(parents=True)

    assert restored(tieredctl, uploaded, tmp_path / "to") == 1
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["orders-1"]


def test_what_a_killed_restore_left_is_gone_after_the_next(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl
) -> None:
    (tmp_path / "to/.tieredctl-unfinished-1234/orders-0").mkdir(parents=True)

    assert restored(tieredctl, uploaded, tmp_path / "to") == 0

    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1", "other-0"}


def test_a_restore_that_is_interrupted_leaves_nothing(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, written = write_log, list[str]()

    def stopping(store: ObjectStore, partition: TopicIdPartition, *given: Any) -> RestoredLog:
        if written:
            raise Killed
        written.append(partition.topic)
        return real(store, partition, *given)

    monkeypatch.setattr(restore, "write_log", stopping)
    with pytest.raises(Killed):
        restored(tieredctl, uploaded, tmp_path / "to")

    assert written
    assert not (tmp_path / "to").exists()


def failing_at(moved: int, fault: BaseException, renamed: list[str]) -> Callable[[Path, Path], Path]:
    real = Path.rename

    def failing(self: Path, target: Path) -> Path:
        if len(renamed) == moved:
            renamed.append("failed")
            raise fault
        renamed.append(self.name)
        return real(self, target)

    return failing


def test_a_restore_that_fails_while_it_puts_folders_in_place_leaves_none(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    for fault, moved, is_new in product((OSError(ENOSPC, os.strerror(ENOSPC)), Killed()), range(4), (True, False)):
        case = f"{type(fault).__name__}-{moved}-{is_new}"
        to, renamed = tmp_path / case, list[str]()
        if not is_new:
            to.mkdir()

        with monkeypatch.context() as patched:
            patched.setattr(Path, "rename", failing_at(moved, fault, renamed))
            with suppress(Killed):
                assert restored(tieredctl, uploaded, to) == 1, case

        assert len(renamed) == max(2 * moved, 1), case
        assert to.exists() is not is_new, case
        assert is_new or not list(to.iterdir()), case


def test_while_a_restore_runs_another_one_into_the_same_folder_is_refused(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, others = write_log, set[int]()

    def in_between(*given: Any) -> RestoredLog:
        with monkeypatch.context() as patched:
            patched.setattr(restore, "write_log", real)
            others.add(restored(tieredctl, uploaded, tmp_path / "to"))
        return real(*given)

    monkeypatch.setattr(restore, "write_log", in_between)
    assert restored(tieredctl, uploaded, tmp_path / "to") == 0

    assert others == {11}
    assert {path.name for path in (tmp_path / "to").iterdir()} == {"orders-0", "orders-1", "other-0"}


def test_what_somebody_else_writes_into_a_new_folder_stays_when_a_restore_fails(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopping(*_given: Any) -> RestoredLog:
        (tmp_path / "to/mine").touch()
        raise Killed

    monkeypatch.setattr(restore, "write_log", stopping)
    with pytest.raises(Killed):
        restored(tieredctl, uploaded, tmp_path / "to")

    assert [path.name for path in (tmp_path / "to").iterdir()] == ["mine"]


def test_what_a_killed_restore_had_written_whole_is_put_into_its_place_by_the_next(
    uploaded: Path, tmp_path: Path, tieredctl: Tieredctl, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Path.rename
    for moved in range(1, 4):
        to, renamed = tmp_path / f"to-{moved}", list[str]()

        def killed(self: Path, target: Path, moved: int = moved, renamed: list[str] = renamed) -> Path:
            if len(renamed) == moved:
                os._exit(KILLED)
            renamed.append(self.name)
            return real(self, target)

        if (child := os.fork()) == 0:
            monkeypatch.setattr(Path, "rename", killed)
            restored(tieredctl, uploaded, to)
            os._exit(0)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == KILLED
        assert {path.name for path in to.iterdir()} != {"orders-0", "orders-1", "other-0"}

        assert restored(tieredctl, uploaded, to) == 0, moved
        assert {path.name for path in to.iterdir()} == {"orders-0", "orders-1", "other-0"}, moved
