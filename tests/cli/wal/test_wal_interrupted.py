"""`wal upload`, `clean`, `purge` and `restore`, interrupted by real signals: what is said next finishes the work."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl, own_process
from tests.cli.wal.store_of_uploads import EVENTS, objects, upload_words
from tests.cli.wal.test_wal_clean import CONFIRMED, make_old, tiered
from tests.rigs.stopped_process import INT, TERM, TWICE, Change, Stop
from tests.wal.local_partitions import ORDERS, batch, write_partition
from tieredctl.ops.guards.own_objects import QUARANTINE

BATCHES = [batch(offset, size=100) for offset in range(6)]


def is_sound(tieredctl: Tieredctl, store: Path) -> bool:
    """By its events, all of them, and every byte of its objects; what an interrupted upload left is not yet stuck."""
    is_begun = objects(store) or (store / EVENTS).exists()
    return not is_begun or tieredctl("wal", "verify", "--store", f"file:{store}", "--level", "full").exit_code == 0


@pytest.fixture
def uploading(log_dir: Path, store: Path, tieredctl: Tieredctl) -> Change:
    words = [*upload_words(log_dir, store), "--upload-bytes", "400", "--apply"]
    is_whole = partial(is_sound, tieredctl, store)
    is_done = lambda: len(objects(store)) == 4  # noqa: E731
    return Change(words, store, r"rename .*\.wal$", is_whole, is_done, is_whole_at_once=True)


@pytest.fixture
def cleaning(store: Path, tmp_path: Path, tieredctl: Tieredctl) -> Change:
    """All that was uploaded is in remote storage."""
    for partition in ORDERS:
        write_partition(tmp_path / "logs", partition, BATCHES)
    assert tieredctl(*upload_words(tmp_path / "logs", store), "--upload-bytes", "400", "--apply").exit_code == 0
    make_old(store)
    words = ["wal", "clean", "--store", f"file:{store}", *tiered_as_well(tmp_path), *CONFIRMED]
    is_whole, is_done = partial(is_sound, tieredctl, store), lambda: not objects(store)
    return Change(words, store, rf"link {EVENTS}/", is_whole, is_done, is_last=True, is_whole_at_once=True)


@pytest.fixture
def purging(cleaning: Change, store: Path, tmp_path: Path, tieredctl: Tieredctl) -> Change:
    assert tieredctl(*cleaning.words).exit_code == 0
    for copy in copies(store):
        os.utime(copy, (copy.stat().st_atime, copy.stat().st_mtime - 7_200))
    words = ["wal", "purge", "--older-than", "1h", "--store", f"file:{store}", *tiered_as_well(tmp_path), *CONFIRMED]
    is_whole, is_done = partial(is_sound, tieredctl, store), lambda: not copies(store)
    return Change(words, store, f"remove {QUARANTINE}", is_whole, is_done, is_last=True, is_whole_at_once=True)


def tiered_as_well(folder: Path) -> Sequence[str | Path]:
    metadata = folder / "metadata"
    if not metadata.exists():
        tiered(metadata, *[len(BATCHES) - 1] * len(ORDERS))
    return "--log-dir", metadata, "--offline-metadata", "--max-percent", "100"


def copies(store: Path) -> list[Path]:
    return [path for path in (store / QUARANTINE).rglob("*") if path.is_file()]


FULL = [(name, stop) for name in ("uploading", "cleaning", "purging") for stop in (INT, TERM, TWICE)]
ALWAYS = [("cleaning", TERM), ("uploading", TWICE)]


@pytest.mark.parametrize(
    ("name", "stop"),
    [*ALWAYS, *(pytest.param(*case, marks=pytest.mark.exhaustive) for case in FULL if case not in ALWAYS)],
)
def test_what_is_said_finishes_the_work(name: str, stop: Stop, request: pytest.FixtureRequest) -> None:
    change: Change = request.getfixturevalue(name)

    change.demand_finished(stop)


@pytest.mark.exhaustive
@pytest.mark.parametrize("stop", [INT, TERM, TWICE])
def test_after_the_last_object_of_an_upload_nothing_is_left_but_to_look_again(uploading: Change, stop: Stop) -> None:
    replace(uploading, number=4, is_last=True).demand_finished(stop)


@pytest.mark.parametrize("stop", [INT, *(pytest.param(one, marks=pytest.mark.exhaustive) for one in (TERM, TWICE))])
def test_a_restore_that_is_interrupted_begins_again(uploaded: Path, tmp_path: Path, stop: Stop) -> None:
    to = tmp_path / "to"
    words: list[str | Path] = ["wal", "restore", "--store", f"file:{uploaded}", "--to", to, "--untiered-topic", "other"]
    change = Change(words, tmp_path, "open to/.*checkpoint$", lambda: not to.exists(), (to / "other-0").exists)

    stopped = change.stopped_by(stop)

    assert stopped.exit_code == 130
    assert stop is TWICE or change.is_whole()
    again = own_process(*map(str, words))
    assert (again.exit_code, sorted(path.name for path in to.iterdir())) == (0, ["orders-0", "orders-1", "other-0"])


@pytest.mark.exhaustive
@pytest.mark.parametrize("stop", [INT, TERM])
def test_a_restore_that_is_put_into_place_is_finished(uploaded: Path, tmp_path: Path, stop: Stop) -> None:
    to = tmp_path / "to"
    words: list[str | Path] = ["wal", "restore", "--store", f"file:{uploaded}", "--to", to, "--untiered-topic", "other"]
    change = Change(words, tmp_path, "rename to/orders", lambda: True, (to / "other-0").exists)

    finished = change.stopped_by(stop)

    assert (finished.exit_code, "Restored 3 partitions" in finished.err, change.is_done()) == (0, True, True)
