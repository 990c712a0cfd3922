"""Memory follows the pieces in which a segment is read, not the segment."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from tests.faults.cluster import LAYOUT, key_of
from tests.faults.segment_writer import SegmentWriter
from tieredctl.formats.indexes import OffsetIndexEntry, TimeIndexEntry, encode_offset_index, encode_time_index
from tieredctl.ops.demo.demo_cluster import flip_bits
from tieredctl.ops.verification.report import Level, SegmentReport, SegmentTask
from tieredctl.ops.verification.segment_check import check_segment
from tieredctl.ports.layout import Part
from tieredctl.storage.file import FileStore

BATCHES, RECORD_BYTES = 256, 1 << 20
MOST_BYTES = 32 << 20


@pytest.fixture(scope="module")
def large_task(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SegmentTask, Path]]:
    """A segment of 256 MiB, and the folder that it is stored in. Its batches are alike but for their offsets, which lie
    outside the CRC."""
    writer = SegmentWriter(0)
    writer.append(writer.data(1, RECORD_BYTES))
    one = writer.close()
    batch = one.parts[Part.LOG]
    metadata = replace(one.metadata, end_offset=BATCHES - 1, segment_size_in_bytes=BATCHES * len(batch))
    entries = [OffsetIndexEntry(offset, offset * len(batch)) for offset in range(1, BATCHES)]
    parts = one.parts | {
        Part.OFFSET_INDEX: encode_offset_index(entries),
        Part.TIME_INDEX: encode_time_index([TimeIndexEntry(metadata.max_timestamp_ms, 0)]),
    }
    folder = tmp_path_factory.mktemp("large")
    keys = {part: key_of(metadata, part) for part in parts}
    for part, key in keys.items():
        (folder / key).parent.mkdir(exist_ok=True)
        (folder / key).write_bytes(parts[part])
    with (folder / keys[Part.LOG]).open("wb") as log:
        for offset in range(BATCHES):
            log.write(offset.to_bytes(8) + batch[8:])
    yield SegmentTask(metadata, keys, Level.FULL), folder
    (folder / keys[Part.LOG]).unlink()


def checked_within_bounds(task: SegmentTask, folder: Path) -> SegmentReport:
    tracemalloc.start()
    try:
        report = check_segment(task, FileStore(str(folder)), LAYOUT)
        assert tracemalloc.get_traced_memory()[1] < MOST_BYTES
    finally:
        tracemalloc.stop()
    return report


@contextmanager
def flipped(path: Path, position: int) -> Iterator[None]:
    flip_bits(path, position)
    yield
    flip_bits(path, position)


def test_a_large_segment(large_task: tuple[SegmentTask, Path]) -> None:
    task, folder = large_task

    report = checked_within_bounds(task, folder)

    assert report.findings == ()
    assert (report.batches, report.records) == (BATCHES, BATCHES)


@pytest.mark.parametrize("byte", [8, 16, 500_000], ids=["length", "magic", "record"])
def test_a_large_segment_with_damage(large_task: tuple[SegmentTask, Path], byte: int) -> None:
    task, folder = large_task
    position = task.metadata.segment_size_in_bytes // BATCHES * 100

    with flipped(folder / task.keys[Part.LOG], position + byte):
        report = checked_within_bounds(task, folder)

    (finding,) = report.findings
    assert (finding.code, finding.evidence["position"]) == ("batch-corrupt", position)
    assert finding.evidence["offsets"] == [100, 100]
    assert report.batches == BATCHES - 1


def test_headers_of_a_large_segment(large_task: tuple[SegmentTask, Path]) -> None:
    task, folder = large_task

    report = checked_within_bounds(replace(task, level=Level.HEADERS), folder)

    assert report.findings == ()
    assert report.bytes_read < 3 * RECORD_BYTES
