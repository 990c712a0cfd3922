"""Finds the orphans of a large bucket: here, on Spark, and by the least that Spark can do. `make bench-scale`.

Every contender reads the same inventory in Parquet; tieredctl reads and replays the metadata's logs as well, the
anti-join gets the ids of live segments ready-made. All have to find exactly the orphans that were generated. Spark is
`local[2]` with a heap of 1 GiB; its start alone is a row of its own."""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from benchmarks.large_store import BUCKET, LargeStore, write_large_store
from benchmarks.measure import python, tieredctl
from benchmarks.process_tree import TreeRun, run_tree
from tests.rigs.buckets import S3Bucket
from tests.rigs.object_servers import ACCESS_KEY, SECRET_KEY, versitygw

ROOT = Path(__file__).parents[1]
JSON_FILE = ROOT / "build" / "bench-scale.json"
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
    """Measures, prints a table, writes build/bench-scale.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=main.__doc__)
    parser.add_argument("--objects", type=int, default=1_000_000, help="three for each segment")
    parser.add_argument("--skew", type=float, default=0.0, help="the first topic's share of all segments")
    parser.add_argument("--repetitions", type=int, default=3)
    options = parser.parse_args()
    environment = os.environ | {
        "PYTHONPATH": str(ROOT),
        "PYSPARK_PYTHON": sys.executable,
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
    }
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder, versitygw() as server:
        store = write_large_store(Path(folder), options.objects, skew=options.skew)
        measured = contenders(store, S3Bucket(server.endpoint).options)
        for number in range(options.repetitions):
            for one in measured:
                print(f"  {number + 1} of {options.repetitions}: {one.name}", file=sys.stderr, flush=True)
                one.runs.append(run_tree(one.command, environment, one.exit_code))
    print(f"{store.objects:,} objects, {store.segments:,} segments, {store.orphans:,} orphans; skew {options.skew:g}")
    print(table(measured))
    rows = [{"name": one.name, "runs": [asdict(run) for run in one.runs]} for one in measured]
    document = {"objects": store.objects, "skew": options.skew, "cores": os.cpu_count(), "rows": rows}
    JSON_FILE.parent.mkdir(exist_ok=True)
    JSON_FILE.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
