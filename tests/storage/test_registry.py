"""`--store URL`: which store it opens, and what is said of one that it cannot open."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest

from tests.refusals import refused_with
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.ports.read_only_store import ReadOnlyStore
from tieredctl.storage.file import FileStore
from tieredctl.storage.registry import open_store, open_writable_store

NO_BUCKET = [
    "s3:",
    "s3://",
    "s3:bucket",
    "s3:///prefix",
    "s3://a b/c",
    "gs://",
    "gs://_/",
    "s3://user:password@bucket/",
]


def test_file_names_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which is remembered as an absolute one; the host of its URL may be empty."""
    (tmp_path / "remote").mkdir()
    monkeypatch.chdir(tmp_path)

    store = open_store(f"file:{tmp_path}", {})

    assert store == ReadOnlyStore(FileStore(str(tmp_path))) == open_store(store.url, {})
    assert open_store("file:remote/", {}).url == f"file:{tmp_path}/remote"
    assert open_store(f"file://{tmp_path}", {}).url == f"file:{tmp_path}"
    assert open_writable_store(f"file:{tmp_path}", {}) == FileStore(str(tmp_path))
    assert list(open_store("memory:", {}).list()) == []


def test_other_urls_are_refused_as_wrong_usage() -> None:
    for url in ("ftp://host/dir", "/var/lib/remote", "remote", "", ":", "file:", "memory:name", *NO_BUCKET):
        with pytest.raises(TieredctlError) as raised:
            open_store(url, {})
        assert (raised.value.code, raised.value.exit_code) == ("no-store", ExitCode.USAGE), url
    with pytest.raises(TieredctlError, match=r"'ftp://host'.* file:DIR, .*memory:, s3://"):
        open_store("ftp://host", {})


WITH_CREDENTIALS = [
    "s3://KEYID:SECRET@bucket",
    "s3://KEYID:SECRET@bucket/prefix",
    "s3://KEYID:SEC/RET@bucket/prefix",
    "s3://KEYID:SECRET",
    "s3:KEYID:SECRET@bucket",
    "s3:///KEYID:SECRET@bucket",
    "gs://KEYID:SECRET@bucket",
    "S3://KEYID:SECRET@bucket",
    "https://KEYID:SECRET@s3.example.com/bucket",
    "KEYID:SECRET@bucket",
    "file://KEYID:SECRET@host/folder",
]


@pytest.mark.parametrize("opened", [open_store, open_writable_store])
def test_credentials_in_a_url_are_refused_and_not_repeated(opened: Callable[..., object]) -> None:
    for url in WITH_CREDENTIALS:
        with pytest.raises(TieredctlError) as raised:
            opened(url, {})
        assert "contains credentials" in raised.value.message, url
        said = f"{raised.value.message} {raised.value.hint}"
        assert not any(part in said for part in ("KEYID", "SEC", "RET")), url
        assert raised.value.code == "no-store"
    for url in ("file:a@b", "file:///a:b@c"):  # a folder may have such a name
        with refused_with("path-missing", url):
            opened(url, {})


def test_options_and_folders_that_there_are_not_are_refused(tmp_path: Path) -> None:
    with refused_with("path-missing"):
        open_store(f"file:{tmp_path}/gone", {})
    route = "ca-bundle, proxy"
    known = {"s3://bucket": f"endpoint, region, profile, addressing-style, {route}"}
    known["gs://bucket"] = f"endpoint, {route}"
    for url in ("file:.", "memory:", *known):
        with pytest.raises(TieredctlError, match="has no option 'secret-key'") as raised:
            open_store(url, {"secret-key": "x"})
        assert raised.value.code == "usage", url
        assert url not in known or raised.value.hint == f"It has {known[url]}."
    with pytest.raises(TieredctlError, match="'domain'") as raised:
        open_store("s3://bucket", {"addressing-style": "domain"})
    assert raised.value.hint == "Give one of auto, path, virtual."


def test_an_endpoint_that_is_none_is_refused() -> None:
    none = ["", "host:9000", "ftp://host", "http://", "http://host:port", "http://user:word@host", "http://h/?a=b"]
    for url, endpoint in product(("s3://bucket", "gs://bucket"), none):
        with pytest.raises(TieredctlError) as raised:
            open_store(url, {"endpoint": endpoint})
        assert raised.value.code == "usage", (url, endpoint)
        assert "word" not in raised.value.message.replace("password", "")


def test_a_bucket_and_a_folder_in_it_are_named() -> None:
    named = {
        "//bucket": "//bucket",
        "//bucket/": "//bucket",
        "//bucket/prefix": "//bucket/prefix",
        "//bucket/prefix/": "//bucket/prefix",
        "//bucket/a/b c%20?d#e": "//bucket/a/b c%20?d#e",
        "//my.bucket-1_x/prefix//": "//my.bucket-1_x/prefix//",
        "//bucket//prefix///": "//bucket//prefix///",
    }
    for scheme, (rest, url) in product(("s3", "gs", "az"), named.items()):
        options = {"endpoint": "http://127.0.0.1:1/account"} if scheme == "az" else {}
        store = open_store(f"{scheme}:{rest}", options)
        assert store.url == f"{scheme}:{url}"
        assert open_store(store.url, options) == store, "a plan names its store by this"


def test_opening_a_bucket_asks_nobody() -> None:
    assert open_store("s3://bucket", {"endpoint": "http://192.0.2.1:1"}).parallel_reads > 1


@pytest.mark.parametrize(
    ("url", "library", "extra"), [("s3://bucket", "boto3", "s3"), ("gs://bucket", "google.cloud.storage", "gs")]
)
def test_a_library_that_is_not_there_is_named_with_how_to_get_it(
    url: str, library: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == library else there(name))

    with pytest.raises(TieredctlError) as raised:
        open_store(url, {})

    assert raised.value.code == "missing-extra"
    assert f"tieredctl[{extra}]" in raised.value.hint


def test_no_library_of_a_cloud_is_loaded_before_it_is_needed() -> None:
    script = "\n".join(
        [
            "import sys",
            "from tieredctl.storage.registry import open_store",
            "open_store('s3://bucket', {})",
            "open_store('gs://bucket', {})",
            "print({'boto3', 'botocore', 'google.cloud.storage', 'requests'} & sys.modules.keys())",
        ]
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)

    assert done.stdout.strip() == "set()"
