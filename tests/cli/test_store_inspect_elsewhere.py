"""`store inspect` of stdin and of objects in a store shows what it shows of the same file."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.cli.command_line import SECONDS, Tieredctl, environment
from tests.rigs.buckets import BUCKET, S3Bucket
from tests.rigs.object_servers import ObjectServer


@pytest.fixture(params=["*.index", "*.log", "*.leader_epoch_checkpoint"])
def file(request: pytest.FixtureRequest, captures: Path) -> Path:
    """A file of a segment that a broker copied."""
    found: Path = max(captures.glob(f"kafka-4.3.1/remote/**/{request.param}"), key=lambda path: path.stat().st_size)
    return found


def item(out: str) -> dict[str, Any]:
    (found,) = json.loads(out)["items"]
    return dict(found)


def inspected_stdin(data: bytes, *words: str) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "tieredctl", "store", "inspect", "-", "-o", "json", *words]
    return subprocess.run(command, input=data, capture_output=True, env=environment(), timeout=SECONDS, check=False)


def test_stdin_is_read_as_the_file_is(file: Path, tieredctl: Tieredctl) -> None:
    expected = item(tieredctl("store", "inspect", file, "-o", "json").out)

    done = inspected_stdin(file.read_bytes(), "--kind", expected["fileKind"])

    shown = item(done.stdout.decode())
    assert (done.returncode, shown["path"]) == (0, "-")
    # What an index's name says, its base offset, is unknown here.
    known = [{name: value for name, value in entry.items() if value is not None} for entry in shown["entries"]]
    assert [before | found for before, found in zip(expected["entries"], known, strict=True)] == expected["entries"]
    assert shown["fields"]["sizeInBytes"] == expected["fields"]["sizeInBytes"]


def test_a_kind_is_found_by_content_on_stdin(captures: Path) -> None:
    log = next(captures.glob("kafka-4.3.1/remote/**/*.log"))

    assert item(inspected_stdin(log.read_bytes()).stdout.decode())["fileKind"] == "log"


def test_what_stdin_holds_may_be_unknown_nothing_or_damaged(captures: Path) -> None:
    log = max(captures.glob("kafka-4.3.1/remote/**/*.log"), key=lambda path: path.stat().st_size).read_bytes()

    unknown, nothing = inspected_stdin(b"\x07\x08"), inspected_stdin(b"")
    damaged = inspected_stdin(log[:-1] + bytes([log[-1] ^ 1]), "--kind", "log")

    assert [one.returncode for one in (unknown, nothing, damaged)] == [2, 2, 4]
    assert b"stdin is empty" in nothing.stderr


def test_stdin_is_read_once_a_terminal_is_not_waited_for_and_a_url_names_an_object(
    monkeypatch: pytest.MonkeyPatch, tieredctl: Tieredctl
) -> None:
    twice, no_key = tieredctl("store", "inspect", "-", "-"), tieredctl("store", "inspect", "s3://bucket/folder/")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    terminal = tieredctl("store", "inspect", "-")

    assert [one.exit_code for one in (twice, no_key, terminal)] == [2, 2, 2]


def test_a_file_url_is_the_file(file: Path, tieredctl: Tieredctl) -> None:
    expected = item(tieredctl("store", "inspect", file, "-o", "json").out)

    shown = item(tieredctl("store", "inspect", f"file:{file}", "-o", "json").out)

    assert shown == expected | {"path": f"file:{file}"}


@pytest.mark.integration
def test_an_object_of_a_bucket_is_the_file(moto: ObjectServer, file: Path, tieredctl: Tieredctl) -> None:
    expected = item(tieredctl("store", "inspect", file, "-o", "json").out)
    bucket, name = S3Bucket(moto.endpoint), f"inspected/{file.name}"
    bucket.put(name, file.read_bytes())
    url = f"s3://{BUCKET}/{name}"
    options = [word for pair in bucket.options.items() for word in ("--store-option", "=".join(pair))]

    outcome = tieredctl("store", "inspect", url, *options, "-o", "json")
    missing = tieredctl("store", "inspect", f"{url}x", *options)

    bucket.remove(name)
    assert item(outcome.out) == expected | {"path": url}
    assert (missing.exit_code != 0, missing.out) == (True, "")
