"""A folder as an object store: what is special about files. What every store promises is in test_promises.py."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.refusals import refused_with
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED, DeletionOutcome, list_unreserved
from tieredctl.storage.file import FileStore
from tieredctl.storage.file_changes import UNFINISHED_FOLDER
from tieredctl.testing.store_reading import keys_of

DAY_SECONDS = 24 * 60 * 60


def test_times_are_milliseconds(root: Path, store: FileStore) -> None:
    os.utime(root / "a/1.log", ns=(0, 1_700_000_000_123_999_999))

    stored = store.head("a/1.log")

    assert stored is not None
    assert stored.last_modified_ms == 1_700_000_000_123


def test_a_file_that_is_cut_while_it_is_read_is_not_read_whole(root: Path, store: FileStore) -> None:
    (root / "a/1.log").write_bytes(b"0123456789")
    pieces = store.stream("a/1.log", chunk_size=4)
    first = next(pieces)

    os.truncate(root / "a/1.log", 6)

    with refused_with("unreadable", "cut"):
        list(pieces)
    assert first == b"0123"


def test_what_is_no_folder_is_not_a_store(root: Path) -> None:
    for path in (root / "gone", root / "a/1.log"):
        with refused_with("path-missing", path):
            FileStore(str(path))


@pytest.mark.parametrize("look", [lambda s: list(s.list()), lambda s: s.head("a/1.log"), lambda s: s.read("a/1.log")])
def test_a_store_that_has_gone_does_not_look_like_an_empty_one(root: Path, store: FileStore, look: Any) -> None:
    root.rename(root.with_name("moved"))

    with refused_with("path-missing"):
        look(store)


def test_files_outside_the_folder_are_out_of_reach(root: Path, store: FileStore) -> None:
    (root.parent / "secret").write_bytes(b"secret")

    assert store.head("../secret") is None
    assert store.head(str(root.parent / "secret")) is None
    assert list(store.list("../s")) == []
    with pytest.raises(TieredctlError, match="no object"):
        store.read("a/../../secret")


def test_pipes_are_no_objects_and_nobody_waits_for_them(root: Path, store: FileStore) -> None:
    os.mkfifo(root / "a/pipe")

    assert keys_of(store) == ["a/1.log", "a/2.log", "b/1.log"]
    assert store.head("a/pipe") is None
    with pytest.raises(TieredctlError, match="no object"):
        store.read("a/pipe")


def test_names_that_are_not_utf_8_can_be_listed_and_read(root: Path, store: FileStore) -> None:
    (root / os.fsdecode(b"a/\xff.log")).write_bytes(b"odd")

    key = next(key for key in keys_of(store) if key not in ("a/1.log", "a/2.log", "b/1.log"))

    assert os.fsencode(key) == b"a/\xff.log"
    assert store.read(key) == b"odd"


def test_what_vanishes_during_a_listing_is_not_in_it(root: Path, store: FileStore) -> None:
    listing = store.list()
    first = next(listing)
    (root / "a/2.log").unlink()
    (root / "b/1.log").unlink()
    (root / "b").rmdir()

    assert first.key == "a/1.log"
    assert list(listing) == []


@pytest.mark.parametrize(
    ("failure", "code"),
    [(PermissionError(13, "Permission denied"), "path-forbidden"), (OSError(5, "I/O"), "unreadable")],
)
def test_a_folder_that_cannot_be_read_ends_the_listing(
    root: Path, store: FileStore, monkeypatch: pytest.MonkeyPatch, failure: OSError, code: str
) -> None:
    scandir = os.scandir

    def refusing(path: str) -> Iterator[os.DirEntry[str]]:
        if path.rstrip("/") == str(root / "b"):
            raise failure
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)

    with refused_with(code):
        list(store.list())


def test_a_file_that_may_not_be_read_is_there_all_the_same(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refusing)

    with refused_with("path-forbidden"):
        store.read("a/1.log")
    assert store.head("a/1.log") is not None


def test_no_file_stays_open(root: Path, store: FileStore) -> None:
    before = os.listdir("/dev/fd")

    next(store.stream("a/1.log", chunk_size=1))
    next(store.list())
    store.read("a/1.log")

    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_file_that_is_still_being_written_is_tieredctls_own(root: Path, store: FileStore) -> None:
    (root / f"a/{UNFINISHED}0123").write_bytes(b"half of")

    assert [stored.key for stored in list_unreserved(store)] == ["a/1.log", "a/2.log", "b/1.log"]
    assert f"a/{UNFINISHED}0123" in keys_of(store)


def test_what_is_being_written_is_not_among_what_is_kept(root: Path, store: FileStore) -> None:
    kept = root / RESERVED_FOLDER / "receipts"
    kept.mkdir(parents=True)
    (kept / f"{UNFINISHED}0123").write_bytes(b"half of")

    assert list(store.list(RESERVED_FOLDER)) == []


@pytest.fixture
def leftovers(root: Path) -> dict[str, Path]:
    """What killed writers left, two days ago and just now, and somebody else's old file."""
    paths = {
        "old": root / f"a/{UNFINISHED}old",
        "old and apart": root / UNFINISHED_FOLDER / "old",
        "new": root / f"b/{UNFINISHED}new",
        "new and apart": root / UNFINISHED_FOLDER / "new",
        "another's": root / "a/1.log",
    }
    for name, path in paths.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
        if not name.startswith("new"):
            os.utime(path, (path.stat().st_atime, path.stat().st_mtime - 2 * DAY_SECONDS))
    return paths


def test_the_next_change_clears_away_what_killed_writers_left(leftovers: dict[str, Path], store: FileStore) -> None:
    store.put_if_absent("c", b"")

    assert sorted(name for name, path in leftovers.items() if not path.exists()) == ["old", "old and apart"]


def test_changes_leave_no_unfinished_file(root: Path, store: FileStore) -> None:
    (current,) = store.list("b/")
    store.put_if_absent("a/1.log", b"refused")
    store.put_if_absent("c/d/1.log", b"made")
    store.replace(current, b"replaced")
    store.replace(current, b"refused")
    store.copy(current, "refused")

    names = [path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file()]
    assert sorted(names) == ["a/1.log", "a/2.log", "b/1.log", "c/d/1.log"]


def test_a_copy_can_be_read_by_who_could_read_the_file(root: Path, store: FileStore) -> None:
    (root / "a/1.log").chmod(0o640)
    (stored,) = store.list("a/1")

    store.copy(stored, "quarantine/1.log")

    assert (root / "quarantine/1.log").stat().st_mode & 0o777 == 0o640


def test_a_file_written_in_place_is_another_version(root: Path, store: FileStore) -> None:
    (past,) = store.list("b/")
    (root / "b/1.log").write_bytes(b"B/1.LOG")
    os.utime(root / "b/1.log", ns=(0, 1))

    assert store.replace(past, b"replaced") is None
    assert store.copy(past, "copy") is None
    assert store.delete([past])[0].outcome is DeletionOutcome.CHANGED
    assert (root / "b/1.log").read_bytes() == b"B/1.LOG"


def test_a_file_on_the_way_to_a_key_is_not_a_folder(store: FileStore) -> None:
    with refused_with("unwritable"):
        store.put_if_absent("a/1.log/below", b"")


def test_what_is_no_object_at_a_key_is_not_taken_for_one_of_another_writer(root: Path, store: FileStore) -> None:
    (root / "folder").mkdir()
    os.mkfifo(root / "pipe")
    (root / "dangling").symlink_to("nowhere")
    (root / "link").symlink_to("a/1.log")

    for key, code in (("folder", "unwritable"), ("pipe", "unwritable"), ("dangling", "path-forbidden")):
        with refused_with(code):
            store.put_if_absent(key, b"new")
        assert store.head(key) is None
    assert store.put_if_absent("link", b"new") is None


def test_a_deletion_in_a_store_that_may_not_be_changed_or_has_gone_has_failed(root: Path, store: FileStore) -> None:
    def refusing(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    (stored,) = store.list("b/")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "unlink", refusing)
        (forbidden,) = store.delete([stored])
    root.rename(root.with_name("moved"))
    (missing,) = store.delete([stored])

    failed = DeletionOutcome.FAILED
    assert (forbidden.outcome, forbidden.error and forbidden.error.code) == (failed, "path-forbidden")
    assert (missing.outcome, missing.error and missing.error.code) == (failed, "path-missing")


def test_a_deletion_leaves_the_folder(root: Path, store: FileStore) -> None:
    store.delete(list(store.list("b/")))

    assert (root / "b").is_dir()


@pytest.fixture
def bottom(root: Path) -> Iterator[str]:
    """The key of a folder that lies deeper than a path can say."""
    names = ["d" * 250] * 20
    descriptor = os.open(root, os.O_RDONLY)
    for name in names:
        os.mkdir(name, dir_fd=descriptor)
        inner = os.open(name, os.O_RDONLY, dir_fd=descriptor)
        os.close(descriptor)
        descriptor = inner
    os.close(os.open("object", os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
    os.close(descriptor)
    yield "/".join(names)
    shutil.rmtree(root / names[0])


def test_what_lies_too_deep_to_be_looked_at_is_named(store: FileStore, bottom: str) -> None:
    with refused_with("unreadable"):
        list(store.list())


@pytest.mark.parametrize("look", [FileStore.head, FileStore.read])
def test_a_key_that_may_lie_too_deep_is_not_called_absent(store: FileStore, bottom: str, look: Any) -> None:
    with pytest.raises(TieredctlError, match="File name too long"):
        look(store, f"{bottom}/object")


def test_a_name_that_no_file_can_have_names_no_object(store: FileStore) -> None:
    assert store.head("n" * 256) is None
