"""The two passes of `orphans scan --engine spark`: `python -m benchmarks.spark_orphans LOG-DIR MANIFEST ORPHANS`.

Metadata is read and replayed, and every object of an inventory is judged, as by the job. No store is asked."""

from __future__ import annotations

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from tieredctl_spark.kept_frames import kept_by_executors
from tieredctl_spark.orphan_scan import scanned

from benchmarks.large_store import BUCKET, TAKEN_MS
from benchmarks.spark_sessions import small_session
from tieredctl.model.ownership import ObjectStatus
from tieredctl.ops.orphans.scan import ScanOptions
from tieredctl.wiring.listing_place import ListingPlace
from tieredctl.wiring.orphans import ScanPlaces
from tieredctl.wiring.places import MetadataPlace, StorePlace

_DAY_MS = 86_400_000


def main() -> None:
    """Counts the orphans."""
    log_dir, manifest, orphans = sys.argv[1:]
    with small_session() as session:
        found = found_orphans(session, Path(log_dir), manifest)
    assert found == int(orphans), found


def found_orphans(session: SparkSession, log_dir: Path, manifest: str) -> int:
    """How many objects of an inventory are orphans by the metadata of a log directory."""
    store, listing = StorePlace(f"s3://{BUCKET}", layout="local"), ListingPlace(inventory=manifest)
    places = ScanPlaces(MetadataPlace((log_dir,)), store, listing=listing)
    options = ScanOptions(TAKEN_MS, _DAY_MS)
    found = scanned(session, places, options, kept_by_executors, frozenset({ObjectStatus.ORPHAN}))
    return int(found.summary()["status"][ObjectStatus.ORPHAN.value]["objects"])


if __name__ == "__main__":
    main()
