"""The contract of a layout (`tieredctl.ports.layout.Layout`)."""

from __future__ import annotations

import pickle
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tieredctl.layouts.registry import installed_layouts, layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.layout import (
    ORIGINAL_PARTS,
    UNNAMED_OFFSET,
    Layout,
    Part,
    SegmentIdentity,
    SegmentReader,
    possible_objects,
)
from tieredctl.storage.memory import MemoryStore
from tieredctl.testing.segments import metadata_of
from tieredctl.testing.store_reading import refused

CopySegment = Callable[[MemoryStore, SegmentIdentity, Mapping[Part, bytes]], None]
"""Stores a segment's parts as the layout's RemoteStorageManager does."""
Opened = Callable[[Mapping[Part, bytes]], SegmentReader]
"""Stores a segment of these parts, and opens it."""

topics = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)
ids = st.binary(min_size=16, max_size=16).map(lambda data: urlsafe_b64encode(data)[:22].decode("ascii"))
partitions = st.builds(TopicIdPartition, topic_id=ids, topic=topics, partition=st.integers(0, 2**31 - 1))
segments = st.builds(metadata_of, partitions, ids, st.integers(0, 2**63 - 1))
SEGMENT = metadata_of(TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "a-1.b_2", 3), "AQIDBAUGBwgJCgsMDQ4PEA", 42)
PARTS = {part: part.value.encode() * 3 for part in ORIGINAL_PARTS} | {Part.TIME_INDEX: b""}


def for_any(**given_values: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A property of a layout, which is the same for all values: fixtures need not be made for each."""
    checks = [HealthCheck.function_scoped_fixture, HealthCheck.differing_executors]
    return lambda test: settings(suppress_health_check=checks, deadline=None)(given(**given_values)(test))


class LayoutContract:
    """To be inherited by the tests of a layout, which have a fixture `layout`."""

    @pytest.fixture
    def copy_segment(self, layout: Layout) -> CopySegment:
        """For a layout whose objects are the parts themselves; any other has its own."""

        def copied(store: MemoryStore, segment: SegmentIdentity, parts: Mapping[Part, bytes]) -> None:
            keys = possible_objects(layout, segment)
            for part, data in parts.items():
                store.put(keys[part], data)

        return copied

    @pytest.fixture
    def opened(self, layout: Layout, copy_segment: CopySegment) -> Opened:
        """Opens a segment in a store of its own."""

        def reader(parts: Mapping[Part, bytes]) -> SegmentReader:
            store = MemoryStore()
            copy_segment(store, SEGMENT, parts)
            return layout.open_segment(store, SEGMENT)

        return reader

    def test_a_layout_is_found_by_its_name(self, layout: Layout) -> None:
        assert layout.name in installed_layouts()

    def test_options_that_a_layout_does_not_have_are_refused(self, layout: Layout) -> None:
        with refused("usage"):
            layout_named(layout.name, {"no-such-option": "1"})

    @for_any(segment=segments)
    def test_every_object_of_a_segment_is_explained_as_its(
        self, layout: Layout, segment: RemoteLogSegmentMetadata
    ) -> None:
        explained = {part: layout.explain(key) for part, key in possible_objects(layout, segment).items()}

        for part, explained_key in explained.items():
            assert explained_key is not None
            assert explained_key.part is part
            assert explained_key.topic_id_partition == segment.topic_id_partition
            assert explained_key.segment_id == segment.segment_id
            assert explained_key.start_offset in (segment.start_offset, UNNAMED_OFFSET)

    @for_any(segment=segments)
    def test_every_object_has_a_key_of_its_own(self, layout: Layout, segment: RemoteLogSegmentMetadata) -> None:
        promised, optional = layout.promised_objects(segment), layout.optional_objects(segment)

        keys = [*promised.values(), *optional.values()]

        assert Part.LOG in promised
        assert len(set(keys)) == len(keys)

    @for_any(segment=segments)
    def test_a_key_leads_to_its_siblings_without_any_metadata(
        self, layout: Layout, segment: RemoteLogSegmentMetadata
    ) -> None:
        explained = layout.explain(layout.promised_objects(segment)[Part.LOG])

        assert explained is not None
        assert possible_objects(layout, explained) == possible_objects(layout, segment)

    @for_any(segment=segments, segment_id=ids, start_offset=st.integers(0, 2**63 - 1))
    def test_the_segments_of_a_partition_have_the_same_parts(
        self, layout: Layout, segment: RemoteLogSegmentMetadata, segment_id: str, start_offset: int
    ) -> None:
        other = metadata_of(segment.topic_id_partition, segment_id, start_offset)

        assert list(layout.promised_objects(other)) == list(layout.promised_objects(segment))
        assert list(layout.optional_objects(other)) == list(layout.optional_objects(segment))
        assert layout.stored_size(other) is None

    @for_any(parts=st.sets(st.sampled_from(list(Part))), size=st.integers(1, 2**40))
    def test_whether_the_size_of_a_log_is_told_depends_on_parts_alone(
        self, layout: Layout, parts: set[Part], size: int
    ) -> None:
        empty, filled = (layout.original_log_size(dict.fromkeys(parts, one)) for one in (0, size))

        assert (empty is None) == (filled is None)

    @for_any(segment=segments, other=partitions)
    def test_a_partition_prefix_has_all_keys_of_that_partition_and_no_others(
        self, layout: Layout, segment: RemoteLogSegmentMetadata, other: TopicIdPartition
    ) -> None:
        assume(other != segment.topic_id_partition)
        own, others = (layout.partition_prefix(partition) for partition in (segment.topic_id_partition, other))

        keys = possible_objects(layout, segment).values()

        assert all(key.startswith(own) and not key.startswith(others) for key in keys)

    @for_any(segment=segments, numbers=st.tuples(st.integers(0, 12), st.integers(0, 12)))
    def test_partition_1_is_not_a_prefix_of_partition_10(
        self, layout: Layout, segment: RemoteLogSegmentMetadata, numbers: tuple[int, int]
    ) -> None:
        assume(numbers[0] != numbers[1])
        topic = segment.topic_id_partition
        one, other = (layout.partition_prefix(TopicIdPartition(topic.topic_id, topic.topic, n)) for n in numbers)

        assert not one.startswith(other)

    @for_any(segment=segments, data=st.data())
    def test_what_is_not_exactly_a_segments_key_is_not_explained(
        self, layout: Layout, segment: RemoteLogSegmentMetadata, data: st.DataObject
    ) -> None:
        """An object is never taken for one that Kafka knows when its key merely looks like it."""
        key = data.draw(st.sampled_from(sorted(possible_objects(layout, segment).values())))
        start, removed = data.draw(st.integers(0, len(key))), data.draw(st.integers(0, 2))
        inserted = data.draw(st.text("a0A_-./\n\u0660", max_size=2))
        altered = key[:start] + inserted + key[start + removed :]

        explained = layout.explain(altered)

        assert explained is None or altered in possible_objects(layout, explained).values()

    @for_any(key=st.text())
    def test_no_key_is_too_odd_to_be_looked_at(self, layout: Layout, key: str) -> None:
        explained = layout.explain(key)

        assert explained is None or key in possible_objects(layout, explained).values()

    def test_parts_are_those_that_the_broker_wrote_with_their_sizes(self, opened: Opened) -> None:
        assert opened(PARTS).parts() == {part: len(data) for part, data in PARTS.items()}

    def test_parts_have_the_bytes_that_the_broker_wrote(self, opened: Opened) -> None:
        reader = opened(PARTS)

        assert {part: reader.read(part) for part in PARTS} == PARTS

    def test_parts_that_are_reported_as_verbatim_are_objects_of_their_own_with_those_bytes(
        self, layout: Layout, copy_segment: CopySegment
    ) -> None:
        store = MemoryStore()
        copy_segment(store, SEGMENT, PARTS)
        keys = possible_objects(layout, SEGMENT)

        stored = {part: store.read(keys[part]) for part in layout.verbatim_parts}

        assert stored == {part: PARTS[part] for part in layout.verbatim_parts}

    def test_streams_have_the_bytes_that_the_broker_wrote(self, opened: Opened) -> None:
        reader = opened(PARTS)

        for chunk_size in (1, 5, 1 << 20):
            assert {part: b"".join(reader.stream(part, chunk_size)) for part in PARTS} == PARTS, chunk_size

    def test_chunks_of_the_log_have_a_size(self, opened: Opened) -> None:
        assert opened(PARTS).chunk_bytes() >= 1

    def test_a_segment_without_transaction_index_lacks_that_part_alone(self, opened: Opened) -> None:
        reader = opened({part: data for part, data in PARTS.items() if part is not Part.TRANSACTION_INDEX})

        assert set(reader.parts()) == set(ORIGINAL_PARTS) - {Part.TRANSACTION_INDEX}
        with refused("object-missing"):
            reader.read(Part.TRANSACTION_INDEX)

    def test_what_no_broker_wrote_is_not_a_part(self, opened: Opened) -> None:
        for part in set(Part) - set(ORIGINAL_PARTS):
            with refused("object-missing"):
                pytest.fail(f"{part} has bytes: {list(opened(PARTS).stream(part))}")

    def test_opening_a_segment_reads_nothing(self, layout: Layout) -> None:
        layout.open_segment(MemoryStore(), SEGMENT)

    def test_a_segment_that_is_not_there_cannot_be_read(self, layout: Layout) -> None:
        with refused("object-missing"):
            layout.open_segment(MemoryStore(), SEGMENT).read(Part.LOG)

    def test_a_layout_that_is_settled_in_a_store_explains_its_keys(self, layout: Layout) -> None:
        store = MemoryStore()
        for key in possible_objects(layout, SEGMENT).values():
            store.put(key, b"")

        settled = layout.settled_in(store)

        assert possible_objects(settled, SEGMENT) == possible_objects(layout, SEGMENT)
        assert all(settled.explain(stored.key) for stored in store.list())

    def test_what_was_stored_together_contradicts_nothing(self, opened: Opened) -> None:
        assert list(opened(PARTS).contradictions()) == []

    def test_a_range_is_cut_as_a_slice_is(self, opened: Opened) -> None:
        reader = opened(PARTS)

        for start, end in ((0, 0), (0, 1), (6, 8), (7, 7), (3, None), (2, 1_000), (1_000, 2_000)):
            cut = {part: data[start:end] for part, data in PARTS.items()}
            assert {part: reader.read(part, start, end) for part in PARTS} == cut, (start, end)

    def test_a_pickled_layout_is_the_same(self, layout: Layout) -> None:
        copy: Layout = pickle.loads(pickle.dumps(layout))

        assert copy == layout
        assert possible_objects(copy, SEGMENT) == possible_objects(layout, SEGMENT)
