"""Files that tieredctl writes: whole or not at all, private, and out of strangers' hands."""

from __future__ import annotations

import os
from itertools import product
from pathlib import Path

import pytest

from tests.refusals import refused_with
from tieredctl.errors import TieredctlError
from tieredctl.process.replaced_file import READABLE_BY_ALL, replaced_file

STICKY, ALL_MAY_WRITE = 0o1777, 0o777
STRANGER = 65_534


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder where all may write, and remove what is another's."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(ALL_MAY_WRITE)
    return folder


@pytest.fixture
def precious(tmp_path: Path) -> Path:
    path = tmp_path / "precious"
    path.write_bytes(b"precious")
    return path


def write(path: Path, data: bytes = b"new", *, mode: int = 0o600) -> None:
    with replaced_file(path, force=True, mode=mode) as file:
        file.write(data)


def mode_of(path: Path) -> int:
    return path.stat().st_mode & 0o777


def test_a_new_file_is_private_unless_others_collect_it_as_far_as_the_umask_lets_them(tmp_path: Path) -> None:
    write(tmp_path / "new")
    umask = os.umask(0o027)
    try:
        write(tmp_path / "metrics", mode=READABLE_BY_ALL)
    finally:
        os.umask(umask)

    assert (mode_of(tmp_path / "new"), mode_of(tmp_path / "metrics")) == (0o600, 0o640)


def test_a_replaced_file_keeps_its_mode(precious: Path) -> None:
    for mode, new_mode in product((0o600, 0o640, 0o644, 0o664), (0o600, READABLE_BY_ALL)):
        precious.chmod(mode)
        data = f"{mode} {new_mode}".encode()

        write(precious, data, mode=new_mode)

        assert (precious.read_bytes(), mode_of(precious)) == (data, mode)


def test_a_private_file_is_private_while_it_is_written_again(precious: Path) -> None:
    precious.chmod(0o600)

    with replaced_file(precious, force=True, mode=READABLE_BY_ALL):
        (unfinished,) = precious.parent.glob(".*.tmp")
        assert mode_of(unfinished) == 0o600


def test_nobody_can_know_the_name_of_an_unfinished_file(tmp_path: Path) -> None:
    names = []
    for _ in range(2):
        with replaced_file(tmp_path / "same", force=True):
            names += [path.name for path in tmp_path.glob(".*.tmp")]

    assert len(set(names)) == 2


@pytest.mark.parametrize("mode", [ALL_MAY_WRITE, STICKY])
def test_a_strangers_link_is_not_followed(shared: Path, precious: Path, mode: int) -> None:
    link = shared / "plan.jsonl"
    link.symlink_to(precious)
    os.chown(link, STRANGER, STRANGER, follow_symlinks=False)
    shared.chmod(mode)

    with refused_with("unwritable"):
        write(link)
    assert precious.read_bytes() == b"precious"
    assert [path.name for path in shared.iterdir()] == ["plan.jsonl"]


def test_nor_is_one_on_the_way_to_the_file(shared: Path, tmp_path: Path, precious: Path) -> None:
    (shared / "folder").symlink_to(tmp_path)

    with pytest.raises(TieredctlError, match="a symbolic link in a world-writable folder"):
        write(shared / "folder" / "precious")

    assert precious.read_bytes() == b"precious"


def test_ones_own_link_is_followed_where_nobody_else_can_lay_it(shared: Path, precious: Path) -> None:
    shared.chmod(STICKY)
    (shared / "link").symlink_to(precious)

    write(shared / "link")

    assert precious.read_bytes() == b"new"
    assert (shared / "link").is_symlink()


def test_links_that_lead_to_links_and_up_and_down_are_followed(tmp_path: Path, precious: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "second").symlink_to("../precious")
    (tmp_path / "first").symlink_to("folder/../folder/second")

    write(tmp_path / "first")

    assert precious.read_bytes() == b"new"


def test_links_in_a_circle_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")

    with pytest.raises(TieredctlError, match="cannot be written: Too many levels"):
        write(tmp_path / "a")


def test_another_name_of_a_replaced_file_keeps_the_old_bytes(precious: Path) -> None:
    os.link(precious, precious.with_name("other"))

    write(precious)

    assert precious.with_name("other").read_bytes() == b"precious"


def test_of_a_failure_nothing_is_left(precious: Path) -> None:
    with pytest.raises(RuntimeError):
        _fail_in_the_middle(precious)

    assert {path.name: path.read_bytes() for path in precious.parent.iterdir()} == {"precious": b"precious"}


def _fail_in_the_middle(path: Path) -> None:
    with replaced_file(path, force=True) as file:
        file.write(b"half")
        raise RuntimeError
