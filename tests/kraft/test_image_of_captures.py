"""The cluster as of a snapshot and the log after it, for what real clusters left: Kafka's own image is the oracle."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from tests.rigs.image_records import Records, image_records, kafka_records
from tests.rigs.line_program import LineProgram
from tests.rigs.maven import kafka_jars
from tieredctl.formats.record_batches import read_records
from tieredctl.kafka.metadata_log import MetadataLog, SegmentFile, SnapshotFile, logged_records, snapshot_records
from tieredctl.kraft.image import ClusterImage
from tieredctl.kraft.replay import MetadataReplay

CAPTURES = ("kafka-4.3.1", "kafka-3.9.1", "aiven-plain-4.3.1", "aiven-zstd-encrypted-4.3.1", "aiven-crash-4.3.1")


def opened(captures: Path, capture: str) -> MetadataLog:
    return MetadataLog.opened(captures / capture / "data/__cluster_metadata-0")


def image_at(log: MetadataLog, snapshot: SnapshotFile, end_offset: int | None = None) -> ClusterImage:
    logged = (one for batch in log.batches(snapshot.end_offset) for one in logged_records(batch))
    within = range(snapshot.end_offset, 1 << 63 if end_offset is None else end_offset)
    after = (one for one in logged if one.offset in within)
    replay = MetadataReplay()
    replay.load_snapshot(snapshot_records(snapshot), snapshot.end_offset)
    replay.load_log(after)
    return replay.image


def kafkas_image(program: LineProgram, log: MetadataLog, snapshot: SnapshotFile) -> Records:
    """The values of the snapshot and of the log's batches, loaded by Kafka."""
    lines = [f"snapshot {' '.join(_values(snapshot))}"]
    for batch in log.batches(snapshot.end_offset):
        if not batch.header.is_control:
            values = [(one.value or b"").hex() for one in read_records(batch.data, 0, batch.header)]
            lines.append(f"batch {batch.header.base_offset} {' '.join(values)}")
    answer = program.ask([*lines, "end"])
    assert answer["faults"] == []
    return kafka_records(answer["records"])


def _values(snapshot: SnapshotFile) -> Iterator[str]:
    as_log = MetadataLog(snapshot.path.parent, (), (SegmentFile(0, snapshot.path, snapshot.size),))
    for batch in as_log.batches():
        if not batch.header.is_control:
            yield from ((one.value or b"").hex() for one in read_records(batch.data, 0, batch.header))


@pytest.mark.integration
@pytest.mark.parametrize("release", ["4.3.1", "3.9.1"])
def test_the_cluster_is_what_kafkas_own_image_says(captures: Path, release: str) -> None:
    seen = 0
    with LineProgram(kafka_jars(release), "MetadataImageOracle") as kafka:
        for capture in CAPTURES if release == "4.3.1" else ("kafka-3.9.1",):
            log = opened(captures, capture)
            for snapshot in log.snapshots:
                image = image_at(log, snapshot)

                assert image.is_certain
                assert image_records(image) == kafkas_image(kafka, log, snapshot), (capture, snapshot)
                seen += 1
    assert seen >= 3


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_snapshot_and_the_log_up_to_the_next_one_give_the_next_one(captures: Path, capture: str) -> None:
    log = opened(captures, capture)
    assert len(log.snapshots) > 1
    for before, after in pairwise(log.snapshots):
        reached, written = image_at(log, before, after.end_offset), image_at(log, after, after.end_offset)

        assert image_records(reached) == image_records(written)
        assert reached.as_of_ms == written.as_of_ms
