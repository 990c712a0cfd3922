"""Links in a folder that is an object store: read through, and nothing is changed through them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.refusals import refused_with
from tieredctl.errors import TieredctlError
from tieredctl.ports.object_store import RESERVED_FOLDER, UNFINISHED, DeletionOutcome, StoredObject
from tieredctl.storage.file import FileStore
from tieredctl.testing.store_reading import keys_of


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


def test_leftovers_behind_a_link_stay(root: Path, store: FileStore) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / f"{UNFINISHED}old").touch()
    os.utime(outside / f"{UNFINISHED}old", (0, 0))
    (root / "linked").symlink_to(outside)

    store.put_if_absent("c", b"")

    assert (outside / f"{UNFINISHED}old").exists()


@pytest.fixture
def linked(root: Path) -> Path:
    """A folder outside, with a file, and links to both inside the store."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "1.log").write_bytes(b"precious")
    (root / "folder").symlink_to(outside)
    (root / "file.log").symlink_to(outside / "1.log")
    (root / "beside").symlink_to(root / "a")
    return outside


LINKED_KEYS = ["folder/1.log", "file.log", "beside/1.log"]


def stored_object(store: FileStore, key: str) -> StoredObject:
    stored = store.head(key)
    assert stored is not None
    return stored


@pytest.mark.parametrize("key", LINKED_KEYS)
def test_nothing_is_deleted_through_a_link(root: Path, store: FileStore, linked: Path, key: str) -> None:
    (deletion,) = store.delete([stored_object(store, key)])

    assert deletion.outcome is DeletionOutcome.FAILED
    assert deletion.error is not None
    assert "is a link, or reached through one" in deletion.error.message
    assert (linked / "1.log").read_bytes() == b"precious"
    assert (root / "a/1.log").exists()
    assert (root / key).exists()


@pytest.mark.parametrize("key", LINKED_KEYS)
def test_nothing_is_copied_out_of_a_link(root: Path, store: FileStore, linked: Path, key: str) -> None:
    with pytest.raises(TieredctlError, match="is a link, or reached through one"):
        store.copy(stored_object(store, key), "quarantine/copy")

    assert not (root / "quarantine/copy").exists()


@pytest.mark.parametrize("key", ["folder/1.log", "folder/2.log", "folder/deep/er.log"])
@pytest.mark.parametrize("change", ["put", "replace", "copy"])
def test_nothing_is_written_through_a_link(store: FileStore, linked: Path, key: str, change: str) -> None:
    changes = {
        "put": lambda: store.put_if_absent(key, b"altered"),
        "replace": lambda: store.replace(store.head(key) or StoredObject(key, 0, 0, ""), b"altered"),
        "copy": lambda: store.copy(stored_object(store, "a/1.log"), key),
    }

    with refused_with("path-forbidden"):
        changes[change]()
    assert {path.name: path.read_bytes() for path in linked.iterdir()} == {"1.log": b"precious"}


def test_a_copy_takes_the_place_of_a_link_and_not_of_what_it_leads_to(
    root: Path, store: FileStore, linked: Path
) -> None:
    store.copy(stored_object(store, "a/1.log"), "file.log")

    assert (linked / "1.log").read_bytes() == b"precious"
    assert not (root / "file.log").is_symlink()


def test_what_is_reserved_is_not_written_through_a_link(root: Path, store: FileStore, linked: Path) -> None:
    (root / ".tieredctl").symlink_to(linked)

    with pytest.raises(TieredctlError, match="is a link, or reached through one"):
        store.copy(stored_object(store, "a/1.log"), f"{RESERVED_FOLDER}quarantine/1.log")

    assert [path.name for path in linked.iterdir()] == ["1.log"]
