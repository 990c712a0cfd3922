"""Jobs that are submitted to a cluster, about a store whose answers can be held up."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Any
from urllib.parse import urlsplit

from tests.rigs.buckets import BUCKET, AzureContainer, Bucket, S3Bucket
from tests.rigs.faulty_proxy import FaultyProxy, Reply, Request, Rule, Server
from tests.rigs.object_servers import ACCESS_KEY, AZURE_ACCOUNT, AZURE_KEY, SECRET_KEY, ObjectServer
from tests.rigs.spark_cluster import JOB_SECONDS, SparkCluster, SparkJob
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode

DRIVER_CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": ACCESS_KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    "AZURE_STORAGE_ACCOUNT": AZURE_ACCOUNT,
    "AZURE_STORAGE_KEY": AZURE_KEY,
}
LISTINGS = {"s3": "list-type", "az": "comp=list"}
"""What the path of a request for a listing has in it, by the scheme of the store."""


@dataclass(frozen=True)
class Store:
    """A prefix of a bucket."""

    bucket: Bucket
    prefix: str

    def hold(self, folder: Path, instead_of: Path | None = None) -> int:
        """Makes the store what a folder is, or makes the difference between two; how many objects change."""
        names = {path.relative_to(one) for one in (folder, instead_of) if one for path in files_of(one)}
        changed = [name for name in names if instead_of is None or content(folder / name) != content(instead_of / name)]
        for name in changed:
            data, key = content(folder / name), f"{self.prefix}/{name}"
            self.bucket.remove(key) if data is None else self.bucket.put(key, data)
        return len(changed)

    @property
    def url(self) -> str:
        return f"{self.bucket.scheme}://{BUCKET}/{self.prefix}"

    def options(self, endpoint: str) -> dict[str, str]:
        """At a server's address."""
        return {**self.bucket.options, "endpoint": endpoint}

    def words(self, endpoint: str) -> list[str]:
        """With which a command finds it."""
        options = self.options(endpoint)
        return ["--store", self.url, *(word for one in options.items() for word in ("--store-option", "=".join(one)))]

    def source_options(self, endpoint: str) -> dict[str, str]:
        """With which a data source does."""
        return {"store": self.url} | {f"store-option.{name}": value for name, value in self.options(endpoint).items()}


def bucket_on(server: ObjectServer) -> Bucket:
    """The bucket of a server, in its language."""
    return (AzureContainer if AZURE_ACCOUNT in server.endpoint else S3Bucket)(server.endpoint)


def content(path: Path) -> bytes | None:
    return path.read_bytes() if path.exists() else None


class Held:
    """Lets a server's answers wait, so that a job stands still in its middle."""

    def __init__(self, proxy: FaultyProxy, path: str, first: int) -> None:
        self.is_reached, self._goes_on = Event(), Event()
        proxy.rules.append(Rule(self._wait, "GET", path=path, first=first))

    def _wait(self, request: Request, server: Server) -> Reply:
        self.is_reached.set()
        self._goes_on.wait(JOB_SECONDS)
        return server(request)

    def release(self) -> None:
        self._goes_on.set()

    def await_middle(self, job: SparkJob) -> None:
        wait_until(
            lambda: self.is_reached.is_set() or job.process.poll() is not None,
            "an executor waits for the store",
            JOB_SECONDS,
        )
        assert self.is_reached.is_set(), job.log()


@contextmanager
def held(server: ObjectServer, path: str, first: int) -> Iterator[tuple[str, Held]]:
    """A way to the server, and what holds up the answers from the `first` whose path has that text."""
    with FaultyProxy(server.endpoint) as proxy:
        middle = Held(proxy, path, first)
        try:
            yield proxy.endpoint + urlsplit(server.endpoint).path, middle
        finally:
            middle.release()


def kill_executors(cluster: SparkCluster) -> None:
    """All of them, at once; the cluster starts others."""
    killed = cluster.executors()
    for one in killed:
        os.kill(one, signal.SIGKILL)
    wait_until(lambda: not set(killed) & set(cluster.executors()), "the executors have ended", JOB_SECONDS)
    assert killed


def summary_of(job: SparkJob, code: ExitCode) -> dict[str, Any]:
    """What a job that has ended with that code printed."""
    said, _ = job.process.communicate(timeout=JOB_SECONDS)
    assert job.process.returncode == code, said + job.log()
    summary: dict[str, Any] = json.loads(said)["summary"]
    return summary


def files_of(folder: Path) -> list[Path]:
    """All files below, without the packed environment, which was there before."""
    return [path for path in folder.rglob("*") if path.is_file() and ".whl" not in str(path)]
