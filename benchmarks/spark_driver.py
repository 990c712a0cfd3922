"""What a scan for orphans takes of the driver: `python -m benchmarks.spark_driver LOG-DIR MANIFEST ORPHANS`.

Executors are processes of their own. Prints the most that the driver's heap in Java held after a full collection, and
the most memory that its Python had, in MB."""

from __future__ import annotations

import re
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.spark_orphans import found_orphans
from benchmarks.spark_sessions import small_session

_AFTER_COLLECTION = re.compile(r"Pause Full .*->(\d+)M\(")
_SECONDS_BETWEEN_COLLECTIONS = 1.0


def main() -> None:
    """Finds the orphans, and prints two numbers."""
    log_dir, manifest, orphans = sys.argv[1:]
    with tempfile.TemporaryDirectory(prefix="tieredctl-bench-") as folder:
        log = Path(folder, "gc.log")
        java = f"-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xlog:gc:file={log}"
        settings = {"spark_master": "local-cluster[1,2,1024]", "spark_driver_extraJavaOptions": java}
        with small_session(**settings) as session, _collections(session):
            found = found_orphans(session, Path(log_dir), manifest)
        assert found == int(orphans), found
        heap = max(int(held) for held in _AFTER_COLLECTION.findall(log.read_text(encoding="utf-8")))
    print(heap, _own_peak_megabytes())


def _own_peak_megabytes() -> int:
    """What getrusage gives is at least what the process that started this one had: Linux hands it on to a child."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(re.findall(r"VmHWM:\s+(\d+) kB", status)[0]) // 1024


@contextmanager
def _collections(session: SparkSession) -> Iterator[None]:
    """Collects the driver's garbage again and again."""
    is_over = threading.Event()

    def collect() -> None:
        while not is_over.wait(_SECONDS_BETWEEN_COLLECTIONS):
            session.sparkContext._jvm.System.gc()  # type: ignore[union-attr]

    collecting = threading.Thread(target=collect)
    collecting.start()
    try:
        yield
    finally:
        is_over.set()
        collecting.join()


main()
