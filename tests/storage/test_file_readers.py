"""Who may read what is put into a folder: brokers do, whoever runs tieredctl, and with which umask."""

from __future__ import annotations

import os
from collections.abc import Iterator
from errno import ENOTSUP
from pathlib import Path
from stat import S_IMODE

import pytest

from tieredctl.ports.object_store import RESERVED_FOLDER
from tieredctl.storage.file import FileStore

BROKER = 12345
"""A user and a group of no other name."""
KEY = "t-0-id/1.log"


@pytest.fixture(autouse=True)
def _private_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A store's, which the broker has."""
    folder = tmp_path / "remote"
    folder.mkdir()
    folder.chmod(0o750)
    if os.geteuid() == 0:
        os.chown(folder, BROKER, BROKER)
    return folder


def who(path: Path) -> tuple[int, int, int]:
    status = path.stat()
    return S_IMODE(status.st_mode), status.st_uid, status.st_gid


@pytest.mark.parametrize("how", ["write", "put_if_absent", "upload"])
@pytest.mark.parametrize(
    ("around", "inner", "file"), [(0o750, 0o700, 0o600), (0o770, 0o770, 0o640), (0o1777, 0o700, 0o600)]
)
def test_who_may_write_into_a_folder_may_read_what_is_put_there(
    folder: Path, how: str, around: int, inner: int, file: int
) -> None:
    folder.chmod(around)
    store = FileStore(str(folder))
    if how == "upload":
        store.upload(KEY, 1, lambda: iter([b"1"]))
    else:
        getattr(store, how)(KEY, b"1")

    owner = who(folder)[1:]
    assert who(folder / "t-0-id") == (inner, *owner)
    assert who(folder / KEY) == (file, *owner)


@pytest.mark.parametrize("how", ["write", "replace"])
def test_a_file_keeps_the_readers_of_the_one_that_it_replaces(folder: Path, how: str) -> None:
    path = folder / "1.log"
    path.write_bytes(b"damaged")
    path.chmod(0o604)
    if os.geteuid() == 0:
        os.chown(path, BROKER + 1, BROKER + 2)
    before, store = who(path), FileStore(str(folder))
    current = store.head("1.log")
    assert current is not None

    made = store.write("1.log", b"sound") if how == "write" else store.replace(current, b"sound")

    assert (path.read_bytes(), who(path)) == (b"sound", before)
    assert made == store.head("1.log")


def test_what_tieredctl_keeps_for_itself_stays_as_the_umask_has_it(folder: Path) -> None:
    FileStore(str(folder)).write(f"{RESERVED_FOLDER}notes/1.json", b"{}")
    assert who(folder / f"{RESERVED_FOLDER}notes/1.json") == (0o600, os.geteuid(), os.getegid())
    assert who(folder / RESERVED_FOLDER) == (0o700, os.geteuid(), os.getegid())


def test_a_file_system_that_refuses_such_changes_is_not_asked_for_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.umask(0o022)
    folder.chmod(0o755)
    if os.geteuid() == 0:
        os.chown(folder, 0, os.getegid())

    def refused(*_words: object) -> None:
        raise OSError(ENOTSUP, os.strerror(ENOTSUP))

    for name in ("fchown", "fchmod"):
        monkeypatch.setattr(os, name, refused)
    store = FileStore(str(folder))

    current = store.write(KEY, b"1")

    assert store.replace(current, b"2") is not None
    assert store.read(KEY) == b"2"
