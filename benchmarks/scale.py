"""What a large store takes, here and on Spark: `make bench-scale`. Spark is `local[2]` with a heap of 1 GiB.

Orphans: every contender reads the same inventory in Parquet; tieredctl reads and replays the metadata's logs as well,
the anti-join gets the ids of live segments ready-made, and Iceberg a table whose manifests name the live objects. All
have to find exactly the orphans that were generated.

Verification: every contender reads all bytes of segments of 1 GiB; the anchor only computes a CRC of them."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.large_store import BUCKET, LargeStore, write_large_store
from benchmarks.measure import python, tieredctl
from benchmarks.process_tree import TreeRun, run_tree
from benchmarks.remote_segment import remote_segments
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, versitygw
from tests.rigs.segment_generator import LARGEST_SEGMENT_BYTES, CompressionName, GeneratedSegment, generate_segment

ROOT = Path(__file__).parents[1]
JSON_FILE = ROOT / "build" / "bench-scale.json"
SEGMENT_KINDS: tuple[tuple[int, CompressionName], ...] = (
    (500, "none"),
    (16_384, "none"),
    (500, "zstd"),
    (16_384, "zstd"),
)
"""The size of batches in bytes, and their compression."""
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
        Scaled("tieredctl's transforms on Spark", python("spark_orphans", store.log_dir, files, orphans)),
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


def verifiers(folder: Path, segments: Sequence[GeneratedSegment]) -> list[Scaled]:
    """The anchor is the first."""
    remote = remote_segments(folder, segments)
    where = ("--log-dir", str(remote.log_dir), "--store", f"file:{remote.store}", "--layout", "local")
    job = [sys.executable, "-m", "tieredctl_spark.jobs.verify", *where, "--level", "full", "--max-age", "0s"]
    return [
        Scaled("reading and CRC-32C alone", python("read_and_checksum", *remote.logs)),
        Scaled("Spark's start", python("spark_start")),
        Scaled("the job verify on Spark", [*job, "--output", str(folder / "output")]),
        Scaled("tieredctl verify", tieredctl("verify", *where, "--level", "full")),
    ]


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
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=main.__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000, help="to find the orphans of; 0 for none")
    parser.add_argument("--skew", type=float, default=0.0, help="the first topic's share of all segments")
    parser.add_argument("--metadata-skew", type=float, default=0.0, help="one metadata partition's share of all events")
    parser.add_argument("--iceberg", action="store_true", help="measure Iceberg's remove_orphan_files beside them")
    parser.add_argument("--driver", action="store_true", help="what a scan on Spark takes of the driver, too")
    parser.add_argument("--verify-gigabytes", type=int, default=0, help="to verify, of each kind of segment")
    parser.add_argument(
        "--segment-skew", action="store_true", help="verify one segment of 2 GB among many of 1 MB, too"
    )
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    measured: dict[str, list[Scaled]] = {}
    if options.objects:
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder, versitygw() as server:
            skews = options.skew, options.metadata_skew
            store = write_large_store(Path(folder), options.objects, skew=skews[0], metadata_skew=skews[1])
            title = f"{store.objects:,} objects, {store.segments:,} segments, {store.orphans:,} orphans, skew {skews}"
            bucket = S3Bucket(server.endpoint).options
            racing = contenders(store, bucket) + (icebergs(store, Path(folder)) if options.iceberg else [])
            measured[title] = raced(racing, options.repetitions)
            _show(measured)
            if options.driver:
                print(f"The driver's own memory: {driver_memory(store)}\n", flush=True)
    for batch_bytes, compression in SEGMENT_KINDS if options.verify_gigabytes else ():
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            large = large_segments(Path(folder), options.verify_gigabytes, batch_bytes, compression)
            kinds = verifiers(Path(folder), large)
            title = f"{options.verify_gigabytes} GB, batches of {batch_bytes} bytes, compression {compression}"
            measured[title] = raced(kinds, options.repetitions)
            _show(measured)
    for largest in (_SMALL, _LARGE) if options.segment_skew else ():
        with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
            kinds = verifiers(Path(folder), unequal_segments(Path(folder), largest))
            title = f"{_UNEQUAL_BYTES >> 30} GB in segments of 1 MB, the largest of {largest >> 20} MB"
            measured[title] = raced(kinds, options.repetitions)
            _show(measured)


def driver_memory(store: LargeStore) -> str:
    """Of a scan whose executors are processes of their own."""
    words = python("spark_driver", store.log_dir, str(store.parquet_manifest.parent / "*.parquet"), str(store.orphans))
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
