"""Records of many gigabytes read by `tiered_log` on a standalone cluster, an executor of which is killed halfway."""

from __future__ import annotations

import json
import os
import signal
import tempfile
import time
import urllib.request
import zlib
from pathlib import Path
from typing import Any

from benchmarks import sum_records
from benchmarks.remote_segment import BENCH_TOPIC, RemoteSegments, remote_segments
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, ObjectServer, versitygw
from tests.rigs.ports import free_ports
from tests.rigs.segment_generator import generate_segment
from tests.rigs.spark_cluster import SparkCluster, SparkJob, spark_archive
from tieredctl.ops.metadata.selection import Selection
from tieredctl.records.request import RecordRequest
from tieredctl.wiring.places import MetadataPlace, StorePlace
from tieredctl.wiring.records import topic_records

_SECONDS_BETWEEN_LOOKS = 0.5
_CREDENTIALS = {"AWS_ACCESS_KEY_ID": ACCESS_KEY, "AWS_SECRET_ACCESS_KEY": SECRET_KEY}


def read_on_a_cluster(gigabytes: int) -> str:
    """Reads as many partitions of one segment of 1 GiB, links to the same file, from a store that speaks S3. Raises
    RuntimeError where a partition's sums are not those of the segment."""
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder, versitygw() as server:
        segment = generate_segment(Path(folder, "segment"), 1 << 30)
        remote = remote_segments(server.data, [segment] * gigabytes)
        expected = [[number, *_sums(remote)] for number in range(gigabytes)]
        with SparkCluster(spark_archive(), _CREDENTIALS) as cluster:
            (port,) = free_ports(1)
            settings = {"spark.ui.enabled": "true", "spark.ui.port": str(port)}
            began = time.monotonic()
            words = [json.dumps(_options(remote, server))]
            job = cluster.submitted(Path(sum_records.__file__), words, settings, _CREDENTIALS)
            watch = _Watch(cluster, f"http://127.0.0.1:{port}/api/v1/applications")
            watch.until_it_ends(job)
            told, _ = job.process.communicate()
            seconds = time.monotonic() - began
        if job.process.returncode or json.loads(told) != expected:
            raise RuntimeError(f"the sums are not those that were written: {told}\n{job.log()[-4_000:]}")
    records = sum(row[1] for row in expected)
    return (
        f"{remote.bytes:,} bytes of {gigabytes} partitions, {records:,} records: {seconds:.0f} s, "
        f"{remote.bytes / seconds / 1e6:.0f} MB a second with {len(watch.peaks)} Python processes, the largest of "
        f"{max(watch.peaks.values())} MB; killed an executor after {watch.killed_after} tasks; sums are equal"
    )


def _sums(remote: RemoteSegments) -> list[int]:
    """Of the first partition, without Spark."""
    sums = [0, 0, 0, 0]
    places = MetadataPlace((remote.log_dir,)), StorePlace(f"file:{remote.store}")
    with topic_records(*places, Selection.of(BENCH_TOPIC, partition=0)) as topic:
        for batch in topic.read(topic.partitions[0], RecordRequest(columns=("offset", "value"))):
            offsets, values = (batch.column(name).to_pylist() for name in ("offset", "value"))
            more = len(offsets), sum(offsets), sum(map(len, values)), sum(map(zlib.crc32, values))
            sums = [one + another for one, another in zip(sums, more, strict=True)]
    return sums


def _options(remote: RemoteSegments, server: ObjectServer) -> dict[str, str]:
    options = {f"store-option.{name}": value for name, value in S3Bucket(server.endpoint).options.items()}
    return options | {"store": f"s3://{remote.store.name}", "log-dir": str(remote.log_dir), "topic": BENCH_TOPIC}


class _Watch:
    """Looks at a job, and kills an executor once half of its tasks are done."""

    def __init__(self, cluster: SparkCluster, applications: str) -> None:
        self._cluster, self._applications = cluster, applications
        self.peaks: dict[int, int] = {}
        """Resident memory of executors' Python processes in MB, by process id."""
        self.killed_after = 0

    def until_it_ends(self, job: SparkJob) -> None:
        while job.process.poll() is None:
            time.sleep(_SECONDS_BETWEEN_LOOKS)
            self._look()
            done, of = (0, 0) if self.killed_after else self._tasks()
            if of and done * 2 >= of:
                os.kill(self._cluster.executors()[0], signal.SIGKILL)
                self.killed_after = done

    def _tasks(self) -> tuple[int, int]:
        """How many of the first stage's are done, and how many there are."""
        try:
            (application,) = _json(self._applications)
            stages = _json(f"{self._applications}/{application['id']}/stages")
        except (OSError, ValueError):
            return 0, 0  # it has not begun yet
        if not stages:
            return 0, 0
        first = min(stages, key=lambda stage: int(stage["stageId"]))
        return first["numCompleteTasks"], first["numTasks"]

    def _look(self) -> None:
        mark = f"TMPDIR={self._cluster.folder}".encode()
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if b"pyspark" in (folder / "cmdline").read_bytes() and mark in (folder / "environ").read_bytes():
                    fields = dict(line.split(":", 1) for line in (folder / "status").read_text().splitlines())
                    if fields["Name"].strip() != "java":
                        self.peaks[int(folder.name)] = int(fields["VmHWM"].split()[0]) // 1024
            except (OSError, KeyError):
                continue


def _json(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
