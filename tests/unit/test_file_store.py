"""A folder as an object store: what is special about files. The common contract is in tests/conformance."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tieredctl.errors import TieredctlError
from tieredctl.storage.file import FileStore
from tieredctl.storage.file_paths import UNFINISHED
from tieredctl.storage.protocol import DeletionOutcome


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "store"
    for key in ("a/1.log", "a/2.log", "b/1.log"):
        (folder / key).parent.mkdir(parents=True, exist_ok=True)
        (folder / key).write_bytes(key.encode())
    return folder


@pytest.fixture
def store(root: Path) -> FileStore:
    return FileStore(str(root))


def keys_of(store: FileStore) -> list[str]:
    return [stored.key for stored in store.list()]


def code_of(raised: pytest.ExceptionInfo[TieredctlError]) -> str:
    return raised.value.kind.code


def test_times_are_milliseconds(root: Path, store: FileStore) -> None:
    os.utime(root / "a/1.log", ns=(0, 1_700_000_000_123_999_999))

    stored = store.head("a/1.log")

    assert stored is not None
    assert stored.last_modified_ms == 1_700_000_000_123


def test_a_folder_that_is_not_there_is_no_store(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError, match="There is no") as raised:
        FileStore(str(tmp_path / "gone"))

    assert code_of(raised) == "path-missing"


def test_a_file_is_no_store(root: Path) -> None:
    with pytest.raises(TieredctlError, match="is not a folder") as raised:
        FileStore(str(root / "a/1.log"))

    assert code_of(raised) == "path-missing"


@pytest.mark.parametrize("look", [lambda s: list(s.list()), lambda s: s.head("a/1.log"), lambda s: s.read("a/1.log")])
def test_a_store_that_has_gone_does_not_look_like_an_empty_one(root: Path, store: FileStore, look: Any) -> None:
    root.rename(root.with_name("moved"))

    with pytest.raises(TieredctlError) as raised:
        look(store)

    assert code_of(raised) == "path-missing"


def test_files_outside_the_folder_are_out_of_reach(root: Path, store: FileStore) -> None:
    (root.parent / "secret").write_bytes(b"secret")

    assert store.head("../secret") is None
    assert store.head(str(root.parent / "secret")) is None
    assert list(store.list("../s")) == []
    with pytest.raises(TieredctlError, match="no object"):
        store.read("a/../../secret")


def test_links_are_followed(root: Path, store: FileStore) -> None:
    (root / "c").symlink_to(root / "a")
    (root / "d.log").symlink_to(root / "b/1.log")

    assert keys_of(store) == ["a/1.log", "a/2.log", "b/1.log", "c/1.log", "c/2.log", "d.log"]
    assert store.read("c/1.log") == b"a/1.log"
    assert [(s.key, s.size) for s in store.list("d")] == [("d.log", len("b/1.log"))]


def test_links_that_lead_nowhere_are_no_objects(root: Path, store: FileStore) -> None:
    (root / "a/broken.log").symlink_to(root / "gone")
    (root / "a/itself.log").symlink_to(root / "a/itself.log")

    assert keys_of(store) == ["a/1.log", "a/2.log", "b/1.log"]
    assert store.head("a/broken.log") is None
    assert store.head("a/itself.log") is None
    with pytest.raises(TieredctlError, match="no object"):
        store.read("a/itself.log")


def test_links_back_are_not_followed_for_ever(root: Path, store: FileStore) -> None:
    (root / "a/up").symlink_to(root)
    (root / "a/beside").symlink_to(root / "b")
    (root / "b/beside").symlink_to(root / "a")

    assert keys_of(store) == [
        "a/1.log",
        "a/2.log",
        "a/beside/1.log",
        "b/1.log",
        "b/beside/1.log",
        "b/beside/2.log",
    ]


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

    with pytest.raises(TieredctlError, match=str(root / "b")) as raised:
        list(store.list())

    assert code_of(raised) == code


def test_a_file_that_may_not_be_read_is_there_all_the_same(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refusing)

    with pytest.raises(TieredctlError, match=r"a/1\.log may not be read") as raised:
        store.read("a/1.log")

    assert code_of(raised) == "path-forbidden"
    assert store.head("a/1.log") is not None


def test_no_file_stays_open(root: Path, store: FileStore) -> None:
    before = os.listdir("/dev/fd")

    next(store.stream("a/1.log", chunk_size=1))
    next(store.list())
    store.read("a/1.log")

    assert len(os.listdir("/dev/fd")) == len(before)


def test_a_file_that_is_still_being_written_is_no_object(root: Path, store: FileStore) -> None:
    unfinished = f"a/{UNFINISHED}0123"
    (root / unfinished).write_bytes(b"half of")

    assert keys_of(store) == ["a/1.log", "a/2.log", "b/1.log"]
    assert store.head(unfinished) is None


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


def test_a_file_on_the_way_to_a_key_is_no_folder(store: FileStore) -> None:
    with pytest.raises(TieredctlError, match="cannot be changed") as raised:
        store.put_if_absent("a/1.log/below", b"")

    assert code_of(raised) == "unwritable"


def test_a_deletion_in_a_store_that_has_gone_has_failed(root: Path, store: FileStore) -> None:
    (stored,) = store.list("b/")
    root.rename(root.with_name("moved"))

    (deletion,) = store.delete([stored])

    assert deletion.outcome is DeletionOutcome.FAILED
    assert deletion.error is not None
    assert deletion.error.kind.code == "path-missing"


def test_a_folder_that_may_not_be_changed_is_named(store: FileStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    (stored,) = store.list("b/")
    monkeypatch.setattr(os, "unlink", refusing)

    (deletion,) = store.delete([stored])

    assert deletion.outcome is DeletionOutcome.FAILED
    assert deletion.error is not None
    assert deletion.error.kind.code == "path-forbidden"


def test_a_deletion_leaves_the_folder(root: Path, store: FileStore) -> None:
    store.delete(list(store.list("b/")))

    assert (root / "b").is_dir()
