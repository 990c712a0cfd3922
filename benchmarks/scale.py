"""What a large store takes, here and on Spark: `make bench-scale`. Spark is `local[2]` with a heap of 1 GiB.

Orphans: every contender reads the same inventory in Parquet; tieredctl reads and replays the metadata's logs as well,
the anti-join gets the ids of live segments ready-made, and Iceberg a table whose manifests name the live objects. All
have to find exactly the orphans that were generated.

Verification: every contender reads all bytes of segments of 1 GiB; the anchor only computes a CRC of them.

The ledger: the job reads the headers of the segments of a captured cluster, with nothing in its ledger and with rows
about millions of others."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit

from benchmarks.distant_server import distant
from benchmarks.large_ledger import write_large_ledger
from benchmarks.large_store import BUCKET, LargeStore, write_large_store
from benchmarks.measure import python, tieredctl
from benchmarks.process_tree import TreeRun, run_tree
from benchmarks.records_on_a_cluster import read_on_a_cluster
from benchmarks.remote_segment import RemoteSegments, remote_segments
from benchmarks.store_copies import show as show_store_copies
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, versitygw
from tests.rigs.segment_generator import LARGEST_SEGMENT_BYTES, CompressionName, GeneratedSegment, generate_segment

ROOT = Path(__file__).parents[1]
CAPTURE = ROOT / "tests/captures/kafka-4.3.1.tar.gz"
JSON_FILE = ROOT / "build" / "bench-scale.json"
SEGMENT_KINDS: tuple[tuple[int, CompressionName], ...] = (
    (500, "none"),
    (16_384, "none"),
    (500, "zstd"),
    (16_384, "zstd"),
)
"""The size of batches in bytes, and their compression."""
_DISTANCE_SECONDS = 0.03
_SMALL = 1 << 20
_LARGE = LARGEST_SEGMENT_BYTES - (1 << 20)
_UNEQUAL_BYTES = 6 << 30
_FIGURES = ("wall", "java_cpu", "python_cpu", "java_megabytes", "python_megabytes")


@dataclass
class Scaled:
    """A command, and all of its runs."""

    name: str
    command: Sequence[str]
    exit_code: int = 0
    runs: list[TreeRun] = field(default_factory=list)

    def median(self, what: str) -> float:
        """Of all runs; `what` names an attribute of `TreeRun`."""
        return float(statistics.median(getattr(run, what) for run in self.runs))


def contenders(store: LargeStore, endpoint: Mapping[str, str]) -> list[Scaled]:
    """The anchor is the first."""
    files, orphans = str(store.parquet_manifest.parent / "*.parquet"), str(store.orphans)
    options = [word for name, value in endpoint.items() for word in ("--store-option", f"{name}={value}")]
    where = ("--log-dir", str(store.log_dir), "--store", f"s3://{BUCKET}", *options, "--layout", "local")
    return [
        Scaled("Spark's anti-join of ready-made ids", python("spark_anti_join", files, store.live_ids, orphans)),
        Scaled("Spark's start", python("spark_start")),
        Scaled(
            "tieredctl's two passes on Spark", python("spark_orphans", store.log_dir, store.parquet_manifest, orphans)
        ),
        Scaled(
            "tieredctl orphans scan",
            tieredctl("orphans", "scan", *where, "--inventory", store.parquet_manifest),
            exit_code=3,
        ),
    ]


def icebergs(store: LargeStore, folder: Path) -> list[Scaled]:
    """Iceberg's search, whose first run fetches it."""
    from benchmarks.iceberg import iceberg_with

    return [Scaled("Iceberg's remove_orphan_files", iceberg_with(store, folder).command(store))]


def large_segments(
    folder: Path, gigabytes: int, batch_bytes: int, compression: CompressionName
) -> list[GeneratedSegment]:
    """Segments of 1 GiB each, before compression."""
    segment = generate_segment(folder / "segment", 1 << 30, batch_bytes=batch_bytes, compression=compression)
    return [segment] * max(1, round((gigabytes << 30) / segment.log.stat().st_size))


def unequal_segments(folder: Path, largest: int) -> list[GeneratedSegment]:
    """6 GiB in segments of 1 MiB and, where it is larger, one of `largest` bytes among them."""
    small = generate_segment(folder / "small", _SMALL)
    if largest <= _SMALL:
        return [small] * (_UNEQUAL_BYTES // _SMALL)
    large = generate_segment(folder / "large", largest)
    each = [small] * ((_UNEQUAL_BYTES - largest) // _SMALL // 2)
    return [*each, large, *each]


def verifiers(remote: RemoteSegments, output: Path, s3_options: Mapping[str, str] | None = None) -> list[Scaled]:
    """The anchor is the first."""
    return [
        Scaled("reading and CRC-32C alone", python("read_and_checksum", *remote.logs)),
        Scaled("Spark's start", python("spark_start")),
        *verifications(remote, output, "full", s3_options),
    ]


def verifications(
    remote: RemoteSegments, output: Path, level: str, s3_options: Mapping[str, str] | None = None
) -> list[Scaled]:
    """The job and the command, of a folder, or of S3 that serves it as a bucket."""
    url = f"s3://{remote.store.name}" if s3_options else f"file:{remote.store}"
    options = [word for name, value in (s3_options or {}).items() for word in ("--store-option", f"{name}={value}")]
    where = ("--log-dir", str(remote.log_dir), "--store", url, *options, "--layout", "local", "--level", level)
    job = [sys.executable, "-m", "tieredctl_spark.jobs.verify", *where, "--max-age", "0s", "--output", str(output)]
    return [Scaled("the job verify on Spark", job), Scaled("tieredctl verify", tieredctl("verify", *where))]


def table(measured: Sequence[Scaled]) -> str:
    """A row for each contender; the ratios are how many times less than the first it took."""
    titles = ("wall s", "Java CPU s", "Python CPU s", "Java MB", "Python MB", "wall", "CPU", "memory")
    lines = [f"{'':<38}" + "".join(f"{title:>13}" for title in titles)]
    for one in measured:
        figures = "".join(f"{one.median(what):13.1f}" for what in _FIGURES)
        ratios = "".join(
            f"{measured[0].median(what) / one.median(what):12.2f}x" for what in ("wall", "cpu", "megabytes")
        )
        lines.append(f"{one.name:<38}{figures}{ratios}")
    return "\n".join(lines)


def main() -> None:
    """Measures, prints tables, writes build/bench-scale.json."""
    options = _parser().parse_args()
    measured: dict[str, list[Scaled]] = {}
    for title, contending in chain(orphan_searches(options), verified_stores(options), asked_ledgers(options)):
        measured[title] = raced(contending, options.repetitions)
        _show(measured)
    if options.distant_segments:
        print(distant_requests(options.distant_segments))
    if options.copy_objects:
        show_store_copies(options.copy_objects)
    if options.records_gigabytes:
        print(read_on_a_cluster(options.records_gigabytes))


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=main.__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000, help="to find the orphans of; 0 for none")
    parser.add_argument("--skew", type=float, default=0.0, help="the first topic's share of all segments")
    parser.add_argument("--metadata-skew", type=float, default=0.0, help="one metadata partition's share of all events")
    parser.add_argument("--iceberg", action="store_true", help="measure Iceberg's remove_orphan_files beside them")
    parser.add_argument("--driver", action="store_true", help="what a scan on Spark takes of the driver, too")
    parser.add_argument("--verify-gigabytes", type=int, default=0, help="to verify, of each kind of segment")
    parser.add_argument("--segment-skew", action="store_true", help="verify one of 2 GB among many of 1 MB, too")
    parser.add_argument("--s3-gigabytes", type=int, default=0, help="to verify in a store that speaks S3")
    parser.add_argument("--distant-segments", type=int, default=0, help="to verify in a store 30 ms away")
    parser.add_argument("--ledger-rows", type=int, default=0, help="that a job's ledger has about other segments")
    parser.add_argument("--records-gigabytes", type=int, default=0, help="to read as records on a standalone cluster")
    parser.add_argument("--copy-objects", type=int, default=0, help="to copy from one S3 server to another")
    parser.add_argument("--repetitions", type=int, default=3)
    return parser


def orphan_searches(options: argparse.Namespace) -> Iterator[tuple[str, list[Scaled]]]:
    """Each as its title and those who search: while it is raced, what they search is there."""
    if not options.objects:
        return
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder, versitygw() as server:
        skews = options.skew, options.metadata_skew
        store = write_large_store(Path(folder), options.objects, skew=skews[0], metadata_skew=skews[1])
        title = f"{store.objects:,} objects, {store.segments:,} segments, {store.orphans:,} orphans, skew {skews}"
        bucket = S3Bucket(server.endpoint).options
        yield title, contenders(store, bucket) + (icebergs(store, Path(folder)) if options.iceberg else [])
        if options.driver:
            print(f"The driver's own memory: {driver_memory(store)}\n", flush=True)


def verified_stores(options: argparse.Namespace) -> Iterator[tuple[str, list[Scaled]]]:
    """Each as its title and those who verify it: while it is raced, it is there."""
    for batch_bytes, compression in SEGMENT_KINDS if options.verify_gigabytes else ():
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            large = large_segments(Path(folder), options.verify_gigabytes, batch_bytes, compression)
            title = f"{options.verify_gigabytes} GB, batches of {batch_bytes} bytes, compression {compression}"
            yield title, verifiers(remote_segments(Path(folder), large), Path(folder, "output"))
    for largest in (_SMALL, _LARGE) if options.segment_skew else ():
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            remote = remote_segments(Path(folder), unequal_segments(Path(folder), largest))
            title = f"{_UNEQUAL_BYTES >> 30} GB in segments of 1 MB, the largest of {largest >> 20} MB"
            yield title, verifiers(remote, Path(folder, "output"))
    if options.s3_gigabytes:
        with versitygw() as server, tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            large = large_segments(Path(folder), options.s3_gigabytes, *SEGMENT_KINDS[0])
            remote = remote_segments(server.data, large)
            title = f"{options.s3_gigabytes} GB on S3, batches of {SEGMENT_KINDS[0][0]} bytes"
            yield title, verifiers(remote, Path(folder, "output"), S3Bucket(server.endpoint).options)


def asked_ledgers(options: argparse.Namespace) -> Iterator[tuple[str, list[Scaled]]]:
    """The same, of the captured cluster, with a small and a large ledger."""
    if not options.ledger_rows:
        return
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder, tarfile.open(CAPTURE) as capture:
        capture.extractall(folder, filter="data")
        cluster, outputs = Path(folder) / CAPTURE.name.removesuffix(".tar.gz"), Path(folder, "outputs")
        write_large_ledger(outputs / "large", options.ledger_rows)
        where = ("--log-dir", cluster / "data", "--store", f"file:{cluster / 'remote/kafka-tiered-storage'}")
        job = python("spark_ledger", *where, "--layout", "local", "--max-age", "0s", "--output")
        yield (
            f"a captured cluster, {options.ledger_rows:,} rows about other segments in the ledger",
            [
                Scaled("with an empty ledger", [*job, str(outputs / "small")]),
                Scaled("Spark's start", python("spark_start")),
                Scaled("with the large one", [*job, str(outputs / "large")]),
            ],
        )


def distant_requests(count: int) -> str:
    """Of verifying that many segments of 1 MB at `headers`, in an S3 store 30 ms away."""
    lines = [f"{count} segments at headers, {_DISTANCE_SECONDS * 1000:.0f} ms a request: wall s, requests a segment"]
    with versitygw() as server, tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
        remote = remote_segments(server.data, [generate_segment(Path(folder, "small"), _SMALL)] * count)
        options = S3Bucket(server.endpoint).options
        with distant(urlsplit(server.endpoint).port or 0, _DISTANCE_SECONDS) as far:
            for one in verifications(remote, Path(folder, "output"), "headers", options | {"endpoint": far.endpoint}):
                before = far.requests
                raced([one], 1)
                lines.append(f"{one.name:<38}{one.median('wall'):13.1f}{(far.requests - before) / count:13.2f}")
    return "\n".join(lines)


def driver_memory(store: LargeStore) -> str:
    """Of a scan whose executors are processes of their own."""
    words = python("spark_driver", store.log_dir, store.parquet_manifest, str(store.orphans))
    told = subprocess.run(words, env=_environment(), check=True, capture_output=True, text=True).stdout.split()
    return f"{told[-2]} MB of Java's heap after collections, {told[-1]} MB in Python"


def _show(measured: Mapping[str, list[Scaled]]) -> None:
    """The last table is printed, all are written."""
    title = list(measured)[-1]
    print(f"{title}\n{table(measured[title])}\n", flush=True)
    document = {
        title: [{"name": one.name, "runs": [asdict(run) for run in one.runs]} for one in rows]
        for title, rows in measured.items()
    }
    JSON_FILE.parent.mkdir(exist_ok=True)
    JSON_FILE.write_text(json.dumps({"cores": os.cpu_count(), "tables": document}, indent=2) + "\n", encoding="utf-8")


def raced(contending: list[Scaled], repetitions: int) -> list[Scaled]:
    """Runs all in turn, so that other load on the machine affects all of them alike."""
    for number in range(repetitions):
        for one in contending:
            print(f"  {number + 1} of {repetitions}: {one.name}", file=sys.stderr, flush=True)
            one.runs.append(run_tree(one.command, _environment(one.command[0]), one.exit_code))
    return contending


def _environment(interpreter: str = sys.executable) -> Mapping[str, str]:
    """Of a command that this Python runs, or another."""
    return os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": interpreter,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }


if __name__ == "__main__":
    main()
