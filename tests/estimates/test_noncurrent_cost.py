"""`estimate cost` where the store keeps versions: what a deletion left is paid for, too."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.cli.command_line import this_process
from tests.doctor.bucket_answers import azure, azure_listing
from tests.metadata_logs import copied, write_events
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import AZURE_ACCOUNT, ObjectServer
from tests.rigs.settings_server import BUCKET, settings_server
from tieredctl.storage.registry import open_settings, open_store, open_writable_store

GIB_PRICE = 1 << 30
"""Of a month, so that a byte costs one."""


def summary(url: str, options: Mapping[str, str], folder: Path) -> dict[str, Any]:
    write_events(folder / "log", *copied(1, 0, 9, segment_size_in_bytes=0))
    stated: list[str] = []
    for name, value in options.items():
        stated += ["--store-option", f"{name}={value}"]
    outcome = this_process(
        *("estimate", "cost", "--store", url, *stated, "--layout", "local", "--log-dir", str(folder / "log")),
        *("--price", str(GIB_PRICE), "-o", "json"),
    )
    assert outcome.exit_code == 0, outcome.err
    found: dict[str, Any] = outcome.document()["summary"]
    return found


def kept_reasons(found: Mapping[str, Any]) -> list[str]:
    return [reason for reason in found["notKnown"] if reason.startswith("noncurrent")]


@pytest.fixture
def bucket(moto: ObjectServer) -> tuple[Any, str, Mapping[str, str]]:
    """An S3 client, the URL of an empty bucket, and its options."""
    known, name = S3Bucket(moto.endpoint), f"versions-{uuid4().hex[:12]}"
    known.client.create_bucket(Bucket=name)
    return known.client, f"s3://{name}/prod", known.options


@pytest.mark.integration
def test_noncurrent_versions_are_in_the_cost(bucket: tuple[Any, str, Mapping[str, str]], tmp_path: Path) -> None:
    client, url, options = bucket
    versioned = {"Status": "Enabled"}
    client.put_bucket_versioning(Bucket=url.split("/")[2], VersioningConfiguration=versioned)
    store = open_writable_store(url, options)
    for data in (b"12", b"345"):
        store.write("a", data)
    store.delete([*store.list()])

    found = summary(url, options, tmp_path)

    kept, told = [*store.kept_versions()], found["noncurrent"]
    size = sum(one.size for one in kept)
    assert {one.size for one in kept if one.key == "a"} == {2, 3, 0}
    assert (told["versioning"], told["versions"] + told["deleteMarkers"], told["bytes"]) == ("enabled", len(kept), size)
    assert (told["monthlyCost"], found["cost"], kept_reasons(found)) == (size, size, [])


@pytest.mark.integration
def test_a_bucket_that_keeps_none_has_none(bucket: tuple[Any, str, Mapping[str, str]], tmp_path: Path) -> None:
    _, url, options = bucket

    found = summary(url, options, tmp_path)

    assert (found["noncurrent"]["versions"], found["cost"], kept_reasons(found)) == (0, 0.0, [])


@pytest.mark.integration
def test_the_listing_of_versions_is_not_read_to_its_end(bucket: tuple[Any, str, Mapping[str, str]]) -> None:
    client, url, options = bucket
    client.put_bucket_versioning(Bucket=url.split("/")[2], VersioningConfiguration={"Status": "Enabled"})
    store, settings = open_writable_store(url, options), open_settings(url, options)
    for key in ("a", "b", "c", "d"):
        store.write(key, b"12")
    store.write("a", b"345")

    whole, part = settings.kept_versions(100), settings.kept_versions(3)

    assert ([*whole.kept], whole.is_cut) == ([*open_store(url, options).kept_versions()], False)
    assert part.is_cut


def test_what_the_store_does_not_tell_is_unknown_and_said(cloud_environment: None, tmp_path: Path) -> None:
    past = azure_listing(more="<VersionId>2025-11-01T00:00:00.0000001Z</VersionId>")
    with settings_server() as server:
        options = {"endpoint": f"{server.endpoint}/{AZURE_ACCOUNT}"}
        for answers, versions, reasons in (
            ({**azure(), "listing": past}, 1, 0),
            (azure(), None, 1),
            ({**azure(), "listing": 403}, None, 1),
        ):
            server.answer(answers)

            found = summary(f"az://{BUCKET}/prod", options, tmp_path)

            assert (found["noncurrent"]["versions"], len(kept_reasons(found))) == (versions, reasons)


def test_a_store_that_does_not_answer_ends_no_estimate(cloud_environment: None, tmp_path: Path) -> None:
    found = summary("s3://nobody", {"endpoint": "http://localhost:1"}, tmp_path)

    assert (found["noncurrent"], len(kept_reasons(found))) == (None, 1)
