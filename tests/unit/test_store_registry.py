"""`--store URL`: which store it opens, and what is said of one that it cannot open."""

from __future__ import annotations

from pathlib import Path

import pytest

from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.storage.file import FileStore
from tieredctl.storage.memory import MemoryStore
from tieredctl.storage.registry import open_store


def test_file_names_a_folder(tmp_path: Path) -> None:
    assert open_store(f"file:{tmp_path}", {}) == FileStore(str(tmp_path))


def test_a_relative_folder_is_remembered_as_an_absolute_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "remote").mkdir()
    monkeypatch.chdir(tmp_path)

    assert open_store("file:remote/", {}).url == f"file:{tmp_path}/remote"


def test_a_file_url_may_have_an_empty_host(tmp_path: Path) -> None:
    assert open_store(f"file://{tmp_path}", {}).url == f"file:{tmp_path}"


def test_the_url_of_a_store_opens_it_again(tmp_path: Path) -> None:
    store = open_store(f"file:{tmp_path}", {})

    assert open_store(store.url, {}) == store


def test_memory_is_empty() -> None:
    store = open_store("memory:", {})

    assert isinstance(store, MemoryStore)
    assert list(store.list()) == []


@pytest.mark.parametrize("url", ["ftp://host/dir", "/var/lib/remote", "remote", "", ":", "file:", "memory:name"])
def test_other_urls_are_refused_as_wrong_usage(url: str) -> None:
    with pytest.raises(TieredctlError) as raised:
        open_store(url, {})

    assert raised.value.kind.code == "no-store"
    assert raised.value.exit_code is ExitCode.USAGE


def test_the_refusal_tells_what_can_be_opened() -> None:
    with pytest.raises(TieredctlError, match=r"'ftp://host'.* file:DIR, memory:"):
        open_store("ftp://host", {})


@pytest.mark.parametrize("url", ["file:.", "memory:"])
def test_an_option_that_a_store_does_not_have_is_refused(url: str) -> None:
    with pytest.raises(TieredctlError, match="has no option 'region'") as raised:
        open_store(url, {"region": "eu-west-1"})

    assert raised.value.kind.code == "usage"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError) as raised:
        open_store(f"file:{tmp_path}/gone", {})

    assert raised.value.kind.code == "path-missing"
