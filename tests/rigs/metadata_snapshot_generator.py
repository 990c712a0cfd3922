"""Snapshots of large clusters, written by Kafka's own classes; `java/MetadataSnapshotGenerator.java` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .java_program import run_java_program
from .maven import kafka_jars

GENERATOR_VERSION = "4.3.1"


@dataclass(frozen=True)
class GeneratedSnapshot:
    """A snapshot, and how many metadata records it holds."""

    file: Path
    records: int


def generate_snapshot(folder: Path, records: int, *, seed: int = 1) -> GeneratedSnapshot:
    """Write a snapshot with at least this many metadata records in a folder that has none. The same arguments give the
    same records. Raises RigMissing."""
    told = run_java_program(
        kafka_jars(GENERATOR_VERSION), "MetadataSnapshotGenerator", str(folder), str(records), str(seed)
    )
    (file,) = folder.glob("*.checkpoint")
    return GeneratedSnapshot(file, told["records"])
