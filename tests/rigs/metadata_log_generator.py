"""Big logs of the metadata topic, written by Kafka's own classes; `java/MetadataLogGenerator.java` does the work."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .java_program import run_java_program
from .maven import kafka_jars

GENERATOR_VERSION = "4.3.1"
# Kafka and its tools address a log by 32-bit positions; an event takes some 160 bytes
LARGEST_EVENT_COUNT = 12_000_000


@dataclass(frozen=True)
class GeneratedMetadataLog:
    """A log of the metadata topic, and how its segments stand at its end."""

    log_file: Path
    events: int
    bytes_written: int
    segments: int
    copy_started: int
    copy_finished: int
    delete_started: int
    delete_finished: int


def generate_metadata_log(
    folder: Path,
    events: int,
    *,
    live_share: float = 0.5,
    partitions: int = 60,
    seed: int = 1,
) -> GeneratedMetadataLog:
    """Write `__remote_log_metadata-0/00000000000000000000.log` under `folder`, exactly `events` events, one a batch.

    About `live_share` of all segments are COPY_SEGMENT_FINISHED at the end; a handful is under way. The same arguments
    give the same bytes. Raises ValueError for more events than one log can hold, and RigMissing.
    """
    if not 0 < events <= LARGEST_EVENT_COUNT:
        raise ValueError(f"one log holds 1 to {LARGEST_EVENT_COUNT} events, not {events}")
    if not 0 <= live_share <= 1:
        raise ValueError(f"a share is between 0 and 1, not {live_share}")
    log_file = folder / "__remote_log_metadata-0" / f"{0:020d}.log"
    log_file.parent.mkdir(parents=True, exist_ok=True)
    told = run_java_program(
        kafka_jars(GENERATOR_VERSION),
        "MetadataLogGenerator",
        *(str(log_file), str(events), str(live_share), str(partitions), str(seed)),
    )
    return GeneratedMetadataLog(
        log_file=log_file,
        events=events,
        bytes_written=told["bytes"],
        segments=told["segments"],
        copy_started=told["COPY_SEGMENT_STARTED"],
        copy_finished=told["COPY_SEGMENT_FINISHED"],
        delete_started=told["DELETE_SEGMENT_STARTED"],
        delete_finished=told["DELETE_SEGMENT_FINISHED"],
    )
