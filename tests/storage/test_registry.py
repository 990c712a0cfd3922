"""`--store URL`: which store it opens, and what is said of one that it cannot open."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

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


def test_file_names_a_folder(tmp_path: Path) -> None:
    assert open_store(f"file:{tmp_path}", {}) == ReadOnlyStore(FileStore(str(tmp_path)))


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
    assert list(open_store("memory:", {}).list()) == []


@pytest.mark.parametrize(
    "url", ["ftp://host/dir", "/var/lib/remote", "remote", "", ":", "file:", "memory:name", *NO_BUCKET]
)
def test_other_urls_are_refused_as_wrong_usage(url: str) -> None:
    with pytest.raises(TieredctlError) as raised:
        open_store(url, {})

    assert raised.value.code == "no-store"
    assert raised.value.exit_code is ExitCode.USAGE


def test_the_refusal_tells_what_can_be_opened() -> None:
    with pytest.raises(
        TieredctlError, match=r"'ftp://host'.* file:DIR, gs://BUCKET/PREFIX, memory:, s3://BUCKET/PREFIX"
    ):
        open_store("ftp://host", {})


@pytest.mark.parametrize(
    "url",
    [
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
    ],
)
@pytest.mark.parametrize("opened", [open_store, open_writable_store])
def test_credentials_in_a_url_are_refused_and_not_repeated(url: str, opened: Callable[..., object]) -> None:
    with pytest.raises(TieredctlError, match="contains credentials") as raised:
        opened(url, {})

    said = f"{raised.value.message} {raised.value.hint}"
    assert not any(part in said for part in ("KEYID", "SEC", "RET"))
    assert raised.value.code == "no-store"


@pytest.mark.parametrize("url", ["file:a@b", "file:///a:b@c"])
def test_a_folder_may_have_such_a_name(url: str) -> None:
    with pytest.raises(TieredctlError, match=r"There is no /.*@"):
        open_store(url, {})


@pytest.mark.parametrize("url", ["file:.", "memory:"])
def test_an_option_that_a_store_does_not_have_is_refused(url: str) -> None:
    with pytest.raises(TieredctlError, match="has no option 'region'") as raised:
        open_store(url, {"region": "eu-west-1"})

    assert raised.value.code == "usage"


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TieredctlError) as raised:
        open_store(f"file:{tmp_path}/gone", {})

    assert raised.value.code == "path-missing"


def test_a_folder_can_be_opened_to_change_it(tmp_path: Path) -> None:
    assert open_writable_store(f"file:{tmp_path}", {}) == FileStore(str(tmp_path))


@pytest.mark.parametrize("scheme", ["s3", "gs"])
@pytest.mark.parametrize(
    ("rest", "url"),
    [
        ("//bucket", "//bucket"),
        ("//bucket/", "//bucket"),
        ("//bucket/prefix", "//bucket/prefix"),
        ("//bucket/prefix/", "//bucket/prefix"),
        ("//bucket/a/b c%20?d#e", "//bucket/a/b c%20?d#e"),
        ("//my.bucket-1_x/prefix//", "//my.bucket-1_x/prefix/"),
    ],
)
def test_a_bucket_and_a_folder_in_it_are_named(scheme: str, rest: str, url: str) -> None:
    store = open_store(f"{scheme}:{rest}", {})

    assert store.url == f"{scheme}:{url}"


def test_opening_a_bucket_asks_nobody() -> None:
    assert open_store("s3://bucket", {"endpoint": "http://192.0.2.1:1"}).parallel_reads > 1


@pytest.mark.parametrize(
    ("url", "known"), [("s3://bucket", "endpoint, region, profile, addressing-style"), ("gs://bucket", "endpoint")]
)
def test_the_refusal_of_an_option_names_those_there_are(url: str, known: str) -> None:
    with pytest.raises(TieredctlError, match="has no option 'secret-key'") as raised:
        open_store(url, {"secret-key": "x"})

    assert raised.value.hint == f"It has {known}."


@pytest.mark.parametrize("url", ["s3://bucket", "gs://bucket"])
@pytest.mark.parametrize(
    "endpoint", ["", "host:9000", "ftp://host", "http://", "http://host:port", "http://user:word@host", "http://h/?a=b"]
)
def test_an_endpoint_that_is_none_is_refused(url: str, endpoint: str) -> None:
    with pytest.raises(TieredctlError) as raised:
        open_store(url, {"endpoint": endpoint})

    assert raised.value.code == "usage"
    assert "word" not in raised.value.message.replace("password", "")


def test_an_unknown_addressing_style_is_refused() -> None:
    with pytest.raises(TieredctlError, match="'domain'") as raised:
        open_store("s3://bucket", {"addressing-style": "domain"})

    assert raised.value.hint == "Give one of auto, path, virtual."


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
