"""Whatever is stored as Aiven's storage manager stores it comes back, in any range, however it was cut."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.chunk_index import decode_chunk_sizes
from tieredctl_aiven.keys import PrivateKeys

from tests.faults.aiven_storage_manager import AivenStorageManager, encoded_sizes, private_key
from tieredctl.ports.layout import ORIGINAL_PARTS, ExplainedKey, Part, SegmentReader
from tieredctl.storage.memory import MemoryStore

SEGMENT = ExplainedKey("t", "ABEiM0RVZneImaq7zN3u_w", 3, 42, "AQIDBAUGBwgJCgsMDQ4PEA", Part.LOG)

managers = st.builds(AivenStorageManager, st.integers(1, 300), st.booleans(), st.booleans())
logs = st.binary(max_size=1_000) | st.builds(
    lambda data, times: data * times, st.binary(max_size=50), st.integers(0, 40)
)
indexes = st.fixed_dictionaries(
    {part: st.binary(max_size=60) for part in ORIGINAL_PARTS if part not in (Part.LOG, Part.TRANSACTION_INDEX)},
    optional={Part.TRANSACTION_INDEX: st.binary(max_size=60)},
)
positions = st.integers(0, 1_200)
CHUNK_SIZES = st.lists(st.integers(0, (1 << 31) - 1), max_size=50) | st.lists(st.integers(900, 1_100), max_size=50)


def stored(manager: AivenStorageManager, parts: dict[Part, bytes]) -> SegmentReader:
    store, layout = MemoryStore(), AivenLayout(keys=PrivateKeys((private_key(),)))
    manager.copy_segment(store, layout, SEGMENT, parts)
    return layout.open_segment(store, SEGMENT)


@given(
    manager=managers, log=logs, others=indexes, start=positions, end=positions | st.none(), piece=st.integers(1, 500)
)
@settings(deadline=None)
def test_every_part_comes_back(
    manager: AivenStorageManager, log: bytes, others: dict[Part, bytes], start: int, end: int | None, piece: int
) -> None:
    parts = {Part.LOG: log, **others}

    reader = stored(manager, parts)

    assert reader.parts() == {part: len(data) for part, data in parts.items()}
    assert list(reader.contradictions()) == []
    assert {part: reader.read(part, start, end) for part in parts} == {p: data[start:end] for p, data in parts.items()}
    assert {part: b"".join(reader.stream(part, piece)) for part in parts} == parts


@given(sizes=CHUNK_SIZES)
def test_lists_of_chunk_sizes_come_back(sizes: list[int]) -> None:
    assert decode_chunk_sizes(encoded_sizes(sizes), len(sizes)).tolist() == sizes
