"""The command line on buckets: the same answers as on the folder that they were filled from."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.cli.command_line import this_process
from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, GcsBucket, S3Bucket
from tests.rigs.object_servers import SECRET_KEY, ObjectServer
from tests.rigs.ports import free_ports

pytestmark = pytest.mark.integration

REPOSITORY = Path(__file__).parents[2]
TOPIC = "slow7"


class Filled:
    """A captured cluster, its remote store in a folder and in a bucket."""

    def __init__(self, cluster: Path, bucket: Bucket) -> None:
        self.bucket = bucket
        self.log_dir = cluster / "data"
        self.folder = cluster / "remote/kafka-tiered-storage"
        files = [file for file in sorted(self.folder.rglob("*")) if file.is_file()]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(self._put, files))
        self.at_folder = ("--store", f"file:{self.folder}")
        self.at_bucket = ("--store", f"{bucket.scheme}://{BUCKET}/captured", *options(bucket.options))

    def key(self, file: Path) -> str:
        return file.relative_to(self.folder).as_posix()

    def _put(self, file: Path) -> None:
        self.bucket.put(f"captured/{self.key(file)}", file.read_bytes())


def options(settings: dict[str, str]) -> list[str]:
    return [word for name, value in settings.items() for word in ("--store-option", f"{name}={value}")]


def tieredctl(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "tieredctl", *map(str, words)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(REPOSITORY)},
        timeout=120,
        check=False,
    )


def document(*words: str | Path) -> dict[str, Any]:
    done = tieredctl(*words, "-o", "json")
    parsed: dict[str, Any] = json.loads(done.stdout)
    return parsed | {"exitCode": done.returncode}


@pytest.fixture(scope="module")
def s3(captures: Path, versitygw: ObjectServer) -> Filled:
    return Filled(captures / "kafka-4.3.1", S3Bucket(versitygw.endpoint))


@pytest.fixture(scope="module")
def gs(captures: Path, fake_gcs_server: ObjectServer) -> Filled:
    return Filled(captures / "kafka-4.3.1", GcsBucket(fake_gcs_server.endpoint))


@pytest.fixture(scope="module")
def az(captures: Path, azurite: ObjectServer) -> Filled:
    return Filled(captures / "kafka-4.3.1", AzureContainer(azurite.endpoint))


@pytest.fixture(params=["s3", "gs", "az"])
def filled(request: pytest.FixtureRequest) -> Filled:
    return request.getfixturevalue(request.param)  # type: ignore[no-any-return]


def test_the_same_objects_are_listed(filled: Filled) -> None:
    listed = [document("remote", "ls", *store) for store in (filled.at_folder, filled.at_bucket)]

    # Folders have no storage classes, and times of their own.
    untold = {"lastModified": None, "storageClass": None}
    in_folder, in_bucket = ([item | untold for item in answer["items"]] for answer in listed)
    assert in_bucket == in_folder
    assert len(in_bucket) > 100


def test_verification_comes_to_the_same_result(filled: Filled) -> None:
    words = ("verify", "--level", "full", "--log-dir", filled.log_dir, "--topic", TOPIC)

    in_folder, in_bucket = (document(*words, *store) for store in (filled.at_folder, filled.at_bucket))

    assert in_bucket["items"] == in_folder["items"] == []
    assert in_bucket["summary"] == in_folder["summary"]
    assert (in_bucket["exitCode"], in_bucket["summary"]["complete"]) == (0, True)


@pytest.mark.parametrize("scheme", ["s3", "gs", "az"])
def test_a_server_that_is_not_there_ends_in_a_sentence(scheme: str, cloud_environment: None, asked_once: None) -> None:
    (port,) = free_ports(1)
    where = options({"endpoint": f"http://127.0.0.1:{port}"})

    done = this_process("remote", "ls", "--store", f"{scheme}://{BUCKET}/captured", *where)

    assert (done.exit_code, done.out) == (1, "")
    assert "does not answer" in done.err
    assert "Traceback" not in done.err


def test_a_bucket_that_is_not_there_is_wrong_usage(s3: Filled) -> None:
    done = tieredctl("remote", "ls", "--store", "s3://gone/captured", *options(s3.bucket.options))

    assert done.returncode == 2
    assert "no bucket for s3://gone/captured" in done.stderr


def test_credentials_are_in_no_output(s3: Filled) -> None:
    listed = tieredctl("remote", "ls", *s3.at_bucket, "-o", "json")
    refused = tieredctl("remote", "ls", "--store", "s3://gone/captured", *options(s3.bucket.options))

    assert SECRET_KEY not in listed.stdout + listed.stderr + refused.stdout + refused.stderr
