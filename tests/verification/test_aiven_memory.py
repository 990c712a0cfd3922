"""Memory follows the chunks in which Aiven's storage manager stores a log, not the log."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.keys import PrivateKeys

from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tieredctl.ports.layout import ORIGINAL_PARTS, ExplainedKey, Part, SegmentReader
from tieredctl.storage.file import FileStore

LOG_BYTES, CHUNK_BYTES, MOST_BYTES = 64 << 20, 1 << 20, 10 << 20
SEGMENT = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 3, 42, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)


@pytest.fixture(params=[(False, False), (True, False), (False, True), (True, True)], ids=str)
def reader(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SegmentReader]:
    """Of a large log, in a folder."""
    compression, encryption = request.param
    parts = dict.fromkeys(ORIGINAL_PARTS, b"") | {Part.LOG: bytes(range(256)) * (LOG_BYTES // 256)}
    layout = AivenLayout(keys=PrivateKeys((private_key(),)))
    keys = layout.promised_objects(SEGMENT)
    (tmp_path / keys[Part.LOG]).parent.mkdir(parents=True)
    for part, data in AivenStorageManager(CHUNK_BYTES, compression, encryption).objects(parts).items():
        (tmp_path / keys[part]).write_bytes(data)
    del parts
    yield layout.open_segment(FileStore(str(tmp_path)), SEGMENT)
    (tmp_path / keys[Part.LOG]).unlink()


def test_a_large_log_is_streamed_in_little_memory(reader: SegmentReader) -> None:
    reader.read(Part.LOG, 0, 1)  # what the first use loads is not counted
    tracemalloc.start()
    try:
        size = sum(map(len, reader.stream(Part.LOG)))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert size == LOG_BYTES
    assert peak < MOST_BYTES


def test_a_range_of_a_large_log_needs_no_more_than_its_chunks(reader: SegmentReader) -> None:
    reader.read(Part.LOG, 0, 1)
    tracemalloc.start()
    try:
        found = reader.read(Part.LOG, LOG_BYTES - 1_000_000)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()

    assert len(found) == 1_000_000
    assert peak < MOST_BYTES
