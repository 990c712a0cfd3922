"""An exporter that looks, in a process of its own: prints what each part of its looks added to that process.

`python -m tests.monitoring.looks PLACE STORE LOOKS…` looks so many times, and again; PLACE is a data folder or a
broker's address. A line for each: resident bytes and objects.
"""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

from tieredctl.wiring.exporter import Exporter
from tieredctl.wiring.exporter_metrics import ExporterMetrics
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, StorePlace
from tieredctl.wiring.status import StatusPlaces

HOUR_MS, INTERVAL_SECONDS = 3_600_000, 30


def places(place: str, store: str) -> StatusPlaces:
    found = StorePlace(f"file:{store}", {}, "local", {}) if store else None
    if Path(place).is_dir():
        return StatusPlaces(MetadataPlace((Path(place),)), found, ())
    return StatusPlaces(MetadataPlace(cluster=ClusterPlace(place)), found, ())


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def main(place: str, store: str, *looks: str) -> None:
    exporter = Exporter(places(place, store), HOUR_MS, 100)
    metrics = ExporterMetrics(lambda: exporter.latest, INTERVAL_SECONDS)
    for times in looks:
        for _ in range(int(times)):
            exporter.refresh()
            assert list(metrics.collect())
        gc.collect()
        assert all(part.is_up for part in exporter.latest.parts.values())
        sys.stdout.write(f"{resident_bytes()} {len(gc.get_objects())}\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
