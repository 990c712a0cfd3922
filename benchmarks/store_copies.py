"""Copies a bucket from one local S3 server to another, beside `rclone copy` and `aws s3 sync` where the PATH has them:
`python -m benchmarks.store_copies --objects 20000`. Requests are lines of the servers' own access logs."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

from benchmarks.measure import Contender, tieredctl
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer, versitygw
from tieredctl.storage.registry import open_writable_store

BUCKET = "tiered"
_SMALL_BYTES, _SEGMENTS_A_PARTITION = 4_096, 200
_SUFFIXES = ("indexes", "log", "rsm-manifest")


def fill(server: ObjectServer, objects: int) -> None:
    """Puts objects, no two with the same bytes."""
    store = open_writable_store(f"s3://{BUCKET}", settings(server.endpoint))

    def put(number: int) -> None:
        store.write(key(number), number.to_bytes(8) * (_SMALL_BYTES // 8))

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(put, range(objects)))


def key(number: int) -> str:
    """As Aiven's plugin names its objects, three for each segment."""
    segment, suffix = divmod(number, len(_SUFFIXES))
    partition, of_partition = divmod(segment, _SEGMENTS_A_PARTITION)
    folder = f"topic{partition // 5}-{partition // 5:022}/{partition % 5}"
    return f"{folder}/{of_partition * 1000:020}-{segment * 7919:022}.{_SUFFIXES[suffix]}"


def settings(endpoint: str) -> dict[str, str]:
    """Of a store on a local server."""
    return {"endpoint": endpoint, "region": "us-east-1", "addressing-style": "path"}


def copy_by_tieredctl(source: str, to: str) -> list[str]:
    """From server to server."""
    words: list[str] = []
    for option, endpoint in (("store", source), ("to", to)):
        words += [f"--{option}", f"s3://{BUCKET}"]
        for name, value in settings(endpoint).items():
            words += [f"--{option}-option", f"{name}={value}"]
    return tieredctl("store", "copy", *words, "--apply", "--yes", "--cluster-id", "benchmark", "-o", "jsonl", "-q")


def copy_by_rclone(source: str, to: str) -> list[str]:
    """From server to server, with rclone's own defaults but for as many transfers as tieredctl has."""
    remotes = (
        f":s3,provider=Other,env_auth=true,force_path_style=true,endpoint='{one}':{BUCKET}" for one in (source, to)
    )
    return ["rclone", "copy", *remotes, "--transfers", "8", "--checkers", "8"]


def copy_by_aws(source: str, _to: str) -> list[str]:
    """From bucket to bucket of one server: it takes one endpoint, and no byte passes through it."""
    return ["aws", "s3", "sync", f"s3://{BUCKET}", "s3://copied", "--endpoint-url", source, "--only-show-errors"]


Way = Callable[[str, str], Sequence[str]]


def measured(name: str, way: Way, objects: int) -> str:
    """One run on two new servers, as a line of the table. Raises RuntimeError unless all objects are copied."""
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        servers = [
            stack.enter_context(versitygw(access_log=logs / f"{side}.log")) for side in ("source", "destination")
        ]
        for server in servers:
            for bucket in (BUCKET, "copied"):
                (server.data / bucket).mkdir(exist_ok=True)
        fill(servers[0], objects)
        before = sum(len(log.read_text().splitlines()) for log in logs.glob("*.log"))
        contender = Contender(name, way(*(server.endpoint for server in servers)))
        contender.run()
        requests = sum(len(log.read_text().splitlines()) for log in logs.glob("*.log")) - before
        copied = max(_objects_in(servers[1], BUCKET), _objects_in(servers[0], "copied"))
    if copied != objects:
        raise RuntimeError(f"{name} copied {copied} of {objects}")
    (run,) = contender.runs
    a_million = run.cpu / objects * 1e6 / 60
    return (
        f"| {name} | {requests / objects:.2f} | {run.cpu / objects * 1e3:.2f} ms | {run.wall:.0f} s | "
        f"{run.megabytes:.0f} MB | {a_million:.0f} min |"
    )


def _objects_in(server: ObjectServer, bucket: str) -> int:
    files = (path for path in (server.data / bucket).rglob("*") if path.is_file())
    return sum(".tieredctl" not in path.parts and ".sgwtmp" not in path.parts for path in files)


def main() -> None:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=20_000)
    objects: int = parser.parse_args().objects
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}
    os.environ.pop("AWS_CA_BUNDLE", None)  # rclone ends where it is set; these servers have no TLS
    ways: dict[str, Way] = {"tieredctl store copy": copy_by_tieredctl}
    if shutil.which("rclone"):
        ways["rclone copy"] = copy_by_rclone
    if shutil.which("aws"):
        ways["aws s3 sync, within a server"] = copy_by_aws
    print(f"{objects} objects of {_SMALL_BYTES} bytes\n")
    print("| | requests per object | CPU per object | took | memory | CPU for a million |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, way in ways.items():
        print(measured(name, way, objects), flush=True)


if __name__ == "__main__":
    main()
