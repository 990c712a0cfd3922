"""A ledger that an earlier tieredctl wrote, in Spark's own folders, and the segments that it knows."""

from __future__ import annotations

import tarfile
from datetime import UTC, datetime
from pathlib import Path

from tests.metadata_logs import started
from tieredctl.ops.verification.report import Level, SegmentTask
from tieredctl.ports.layout import Part
from tieredctl.ports.object_store import StoredObject
from tieredctl.ports.read_only_store import StoreAround
from tieredctl.storage.memory import MemoryStore

ARCHIVE = Path(__file__).with_name("earlier-ledger.tar.xz")
"""It has a base, in which two runs were put together, and the chunks of two later runs. Segments 1 and 2 are sound, 3
has a finding and was called sound later, 4 could not be read, 5 was not looked at, 6 was read in full; 7 is unknown."""
ROWS = 7
CHECKED = datetime(2026, 7, 1, 12, tzinfo=UTC)
"""When the later runs were; those of the base were an hour before."""


def unpack(folder: Path) -> None:
    """Makes it the ledger of a job's output folder."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")


class Bucket(StoreAround):
    """A store that has the same name everywhere."""

    @property
    def url(self) -> str:
        return "s3://kafka-tiered/prod"


def bucket() -> Bucket:
    return Bucket(MemoryStore())


def segment(number: int) -> SegmentTask:
    """As a listing had it."""
    metadata = started(number, 100 * number, 100 * number + 99)
    log = StoredObject(f"t-0/{number}.log", 1_000, 1_700_000_000_000, f"version-{number}")
    return SegmentTask(metadata, {Part.LOG: log.key}, Level.HEADERS, listed={Part.LOG: log})
