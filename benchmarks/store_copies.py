"""Copies a bucket from one local S3 server to another, beside `rclone copy` and `aws s3 sync` where the PATH has them:
`python -m benchmarks.store_copies --objects 20000`. Requests are lines of the servers' own access logs."""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from hashlib import md5
from pathlib import Path
from threading import Thread

from benchmarks.measure import Contender, tieredctl
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer, measured_versitygw

BUCKET = "tiered"
_SMALL_BYTES, _SEGMENTS_A_PARTITION = 4_096, 200
_SUFFIXES = ("indexes", "log", "rsm-manifest")
_PARTS = (10, 50)
"""Percents of the objects, after which memory is looked at."""
_SECONDS_BETWEEN_LOOKS = 0.5
_WRITES = (b" s3_PutObject ", b" s3_CopyObject ")
"""How the servers log that an object is written."""


def fill(server: ObjectServer, objects: int) -> None:
    """Puts objects, no two with the same bytes: as the server's own files, which takes less time than a request."""
    for number in range(objects):
        data = number.to_bytes(8) * (_SMALL_BYTES // 8)
        file = server.data / BUCKET / key(number)
        if number % (_SEGMENTS_A_PARTITION * len(_SUFFIXES)) == 0:
            file.parent.mkdir(parents=True)
        file.write_bytes(data)
        os.setxattr(file, "user.etag", f'"{md5(data).hexdigest()}"'.encode())


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


class Watched:
    """The memory of a process, each time that so many objects were written."""

    def __init__(self, logs: Path, objects: int) -> None:
        self._logs = logs
        self._left = {part: objects * part // 100 for part in _PARTS}
        self.megabytes: dict[int, float] = {}

    def begin(self, process: int) -> None:
        """Looks at it until it has ended."""
        self._thread = Thread(target=self._watch, args=(process,))
        self._thread.start()

    def _watch(self, process: int) -> None:
        read, written = dict.fromkeys(self._logs.glob("*.log"), 0), 0
        for log in read:
            read[log] = log.stat().st_size
        while (megabytes := _most_megabytes(process)) is not None:
            for log in read:
                with log.open("rb") as file:
                    file.seek(read[log])
                    lines = file.read()
                read[log] += len(lines)
                written += sum(lines.count(kind) for kind in _WRITES)
            for part in [part for part, wanted in self._left.items() if written >= wanted]:
                self.megabytes[part] = megabytes
                del self._left[part]
            time.sleep(_SECONDS_BETWEEN_LOOKS)


def _most_megabytes(process: int) -> float | None:
    """The most that it had in memory so far; None once it has ended."""
    try:
        status = Path(f"/proc/{process}/status").read_text()
    except FileNotFoundError:
        return None
    peak = next((line for line in status.splitlines() if line.startswith("VmHWM:")), None)
    return None if peak is None else int(peak.split()[1]) / 1024


def measured(name: str, way: Way, objects: int, source: ObjectServer, logs: Path) -> str:
    """One run to a new server, as a line of the table. Raises RuntimeError unless all objects are copied."""
    with measured_versitygw(logs / "destination.log") as destination:
        (destination.data / BUCKET).mkdir()
        before = _lines(logs)
        watched = Watched(logs, objects)
        contender = Contender(name, way(source.endpoint, destination.endpoint), watch=watched.begin)
        contender.run()
        requests = _lines(logs) - before
        copied = max(_objects_in(destination, BUCKET), _objects_in(source, "copied"))
    if copied != objects:
        raise RuntimeError(f"{name} copied {copied} of {objects}")
    (run,) = contender.runs
    memory = " ".join(f"{watched.megabytes[part]:.0f}" for part in _PARTS)
    return (
        f"| {name} | {requests / objects:.2f} | {run.cpu / objects * 1e3:.2f} ms | {run.wall:.0f} s | "
        f"{memory} {run.megabytes:.0f} MB |"
    )


def _lines(logs: Path) -> int:
    total = 0
    for log in logs.glob("*.log"):
        with log.open("rb") as file:
            total += sum(1 for _ in file)
    return total


def _objects_in(server: ObjectServer, bucket: str) -> int:
    files = (path for path in (server.data / bucket).rglob("*") if path.is_file())
    return sum(".tieredctl" not in path.parts and ".sgwtmp" not in path.parts for path in files)


def show(objects: int) -> None:
    """Prints a line for each way."""
    os.environ |= {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY, "AWS_REGION": "us-east-1"}
    os.environ.pop("AWS_CA_BUNDLE", None)  # rclone ends where it is set; these servers have no TLS
    ways: dict[str, Way] = {"tieredctl store copy": copy_by_tieredctl}
    if shutil.which("rclone"):
        ways["rclone copy"] = copy_by_rclone
    if shutil.which("aws"):
        ways["aws s3 sync, within a server"] = copy_by_aws
    parts = ", ".join(f"{part} %" for part in _PARTS)
    print(f"{objects} objects of {_SMALL_BYTES} bytes\n")
    print(f"| | requests per object | CPU per object | took | memory at {parts} and the end |")
    print("| --- | --- | --- | --- | --- |", flush=True)
    with ExitStack() as stack:
        logs = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        source = stack.enter_context(measured_versitygw(logs / "source.log"))
        (source.data / "copied").mkdir()
        fill(source, objects)
        for name, way in ways.items():
            print(measured(name, way, objects, source, logs), flush=True)


def main() -> None:
    """Measures as many objects as it is told."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--objects", type=int, default=20_000)
    show(parser.parse_args().objects)


if __name__ == "__main__":
    main()
