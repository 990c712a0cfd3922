"""What every layout promises (tieredctl.ports.layout), tried on each that is installed with tieredctl."""

from __future__ import annotations

import pickle
from base64 import urlsafe_b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from tieredctl_aiven import AivenLayout
from tieredctl_aiven.keys import ENVIRONMENT_VARIABLE, PrivateKeys

from tests.faults.aiven_storage_manager import AivenStorageManager, private_key
from tieredctl.errors import TieredctlError
from tieredctl.layouts.registry import installed_layouts, layout_named
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.layout import ORIGINAL_PARTS, Layout, Part, SegmentIdentity, SegmentReader
from tieredctl.storage.memory import MemoryStore


@dataclass(frozen=True)
class LayoutCase:
    """A layout, and how its RemoteStorageManager stores a segment's parts."""

    layout: Layout
    copy_segment: Callable[[MemoryStore, SegmentIdentity, Mapping[Part, bytes]], None]


def copy_part_by_part(store: MemoryStore, segment: SegmentIdentity, parts: Mapping[Part, bytes]) -> None:
    layout = layout_named("local")
    keys = layout.promised_objects(segment) | layout.optional_objects(segment)
    for part, data in parts.items():
        store.put(keys[part], data)


def aiven(manager: AivenStorageManager, key_prefix: str = "") -> LayoutCase:
    layout = AivenLayout(key_prefix, keys=PrivateKeys((private_key(),)))
    return LayoutCase(layout, lambda store, segment, parts: manager.copy_segment(store, layout, segment, parts))


CASES = [
    LayoutCase(layout_named("local"), copy_part_by_part),
    aiven(AivenStorageManager()),
    aiven(AivenStorageManager(compression=True), "a/prefix/"),
    aiven(AivenStorageManager(encryption=True), "no-folder"),
    aiven(AivenStorageManager(compression=True, encryption=True)),
]

each_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.layout.name)
each_layout = pytest.mark.parametrize("layout", [case.layout for case in CASES], ids=lambda layout: layout.name)

topics = st.from_regex(r"[A-Za-z0-9._-]{1,249}", fullmatch=True)
ids = st.binary(min_size=16, max_size=16).map(lambda data: urlsafe_b64encode(data)[:22].decode("ascii"))
partitions = st.builds(TopicIdPartition, topic_id=ids, topic=topics, partition=st.integers(0, 2**31 - 1))


def metadata_of(partition: TopicIdPartition, segment_id: str, start_offset: int) -> RemoteLogSegmentMetadata:
    return RemoteLogSegmentMetadata(
        topic_id_partition=partition,
        segment_id=segment_id,
        start_offset=start_offset,
        end_offset=start_offset,
        author=1,
        max_timestamp_ms=0,
        event_timestamp_ms=0,
        segment_leader_epochs=((0, start_offset),),
        segment_size_in_bytes=1,
    )


segments = st.builds(metadata_of, partitions, ids, st.integers(0, 2**63 - 1))
SEGMENT = metadata_of(TopicIdPartition("ABEiM0RVZneImaq7zN3u_w", "a-1.b_2", 3), "AQIDBAUGBwgJCgsMDQ4PEA", 42)
PARTS = {part: part.value.encode() * 3 for part in ORIGINAL_PARTS} | {Part.TIME_INDEX: b""}


def objects_of(layout: Layout, segment: SegmentIdentity) -> dict[Part, str]:
    return layout.promised_objects(segment) | layout.optional_objects(segment)


def opened(case: LayoutCase, parts: Mapping[Part, bytes]) -> SegmentReader:
    store = MemoryStore()
    case.copy_segment(store, SEGMENT, parts)
    return case.layout.open_segment(store, SEGMENT)


@each_layout
def test_a_layout_is_found_by_its_name(layout: Layout) -> None:
    assert layout.name in installed_layouts()


@each_layout
def test_options_that_a_layout_does_not_have_are_refused(layout: Layout) -> None:
    with pytest.raises(TieredctlError, match="no-such-option") as raised:
        layout_named(layout.name, {"no-such-option": "1"})

    assert raised.value.kind.code == "usage"


@each_layout
@given(segment=segments)
def test_every_object_of_a_segment_is_explained_as_its(layout: Layout, segment: RemoteLogSegmentMetadata) -> None:
    explained = {part: layout.explain(key) for part, key in objects_of(layout, segment).items()}

    for part, found in explained.items():
        assert found is not None
        assert found.part is part
        assert found.topic_id_partition == segment.topic_id_partition
        assert (found.segment_id, found.start_offset) == (segment.segment_id, segment.start_offset)


@each_layout
@given(segment=segments)
def test_every_object_has_a_key_of_its_own(layout: Layout, segment: RemoteLogSegmentMetadata) -> None:
    promised, optional = layout.promised_objects(segment), layout.optional_objects(segment)

    keys = [*promised.values(), *optional.values()]

    assert Part.LOG in promised
    assert len(set(keys)) == len(keys)


@each_layout
@given(segment=segments)
def test_a_key_leads_to_its_siblings_without_any_metadata(layout: Layout, segment: RemoteLogSegmentMetadata) -> None:
    explained = layout.explain(layout.promised_objects(segment)[Part.LOG])

    assert explained is not None
    assert objects_of(layout, explained) == objects_of(layout, segment)


@each_layout
@given(segment=segments, segment_id=ids, start_offset=st.integers(0, 2**63 - 1))
def test_the_segments_of_a_partition_have_the_same_parts(
    layout: Layout, segment: RemoteLogSegmentMetadata, segment_id: str, start_offset: int
) -> None:
    other = metadata_of(segment.topic_id_partition, segment_id, start_offset)

    assert list(layout.promised_objects(other)) == list(layout.promised_objects(segment))
    assert list(layout.optional_objects(other)) == list(layout.optional_objects(segment))
    assert layout.stored_size(other) is None


@each_layout
@given(parts=st.sets(st.sampled_from(list(Part))), size=st.integers(1, 2**40))
def test_whether_the_size_of_a_log_is_told_depends_on_parts_alone(layout: Layout, parts: set[Part], size: int) -> None:
    empty, filled = (layout.original_log_size(dict.fromkeys(parts, one)) for one in (0, size))

    assert (empty is None) == (filled is None)


@each_layout
@given(segment=segments, other=partitions)
def test_a_partition_prefix_has_all_keys_of_that_partition_and_no_others(
    layout: Layout, segment: RemoteLogSegmentMetadata, other: TopicIdPartition
) -> None:
    assume(other != segment.topic_id_partition)
    own, others = (layout.partition_prefix(partition) for partition in (segment.topic_id_partition, other))

    keys = objects_of(layout, segment).values()

    assert all(key.startswith(own) and not key.startswith(others) for key in keys)


@each_layout
@given(segment=segments, numbers=st.tuples(st.integers(0, 12), st.integers(0, 12)))
def test_partition_1_is_not_a_prefix_of_partition_10(
    layout: Layout, segment: RemoteLogSegmentMetadata, numbers: tuple[int, int]
) -> None:
    assume(numbers[0] != numbers[1])
    topic = segment.topic_id_partition
    one, other = (layout.partition_prefix(TopicIdPartition(topic.topic_id, topic.topic, n)) for n in numbers)

    assert not one.startswith(other)


@each_layout
@given(segment=segments, data=st.data())
def test_what_is_not_exactly_a_segments_key_is_not_explained(
    layout: Layout, segment: RemoteLogSegmentMetadata, data: st.DataObject
) -> None:
    """An object is never taken for one that Kafka knows when its key merely looks like it."""
    key = data.draw(st.sampled_from(sorted(objects_of(layout, segment).values())))
    start, removed = data.draw(st.integers(0, len(key))), data.draw(st.integers(0, 2))
    inserted = data.draw(st.text("a0A_-./\n\u0660", max_size=2))
    altered = key[:start] + inserted + key[start + removed :]

    explained = layout.explain(altered)

    assert explained is None or altered in objects_of(layout, explained).values()


@each_layout
@given(key=st.text())
def test_no_key_is_too_odd_to_be_looked_at(layout: Layout, key: str) -> None:
    explained = layout.explain(key)

    assert explained is None or key in objects_of(layout, explained).values()


@each_case
def test_parts_are_those_that_the_broker_wrote_with_their_sizes(case: LayoutCase) -> None:
    assert opened(case, PARTS).parts() == {part: len(data) for part, data in PARTS.items()}


@each_case
def test_parts_have_the_bytes_that_the_broker_wrote(case: LayoutCase) -> None:
    reader = opened(case, PARTS)

    assert {part: reader.read(part) for part in PARTS} == PARTS


@each_case
def test_parts_that_are_reported_as_verbatim_are_objects_of_their_own_with_those_bytes(case: LayoutCase) -> None:
    store = MemoryStore()
    case.copy_segment(store, SEGMENT, PARTS)
    keys = objects_of(case.layout, SEGMENT)

    stored = {part: store.read(keys[part]) for part in case.layout.verbatim_parts}

    assert stored == {part: PARTS[part] for part in case.layout.verbatim_parts}


@each_case
@pytest.mark.parametrize("chunk_size", [1, 5, 1 << 20])
def test_streams_have_the_bytes_that_the_broker_wrote(case: LayoutCase, chunk_size: int) -> None:
    reader = opened(case, PARTS)

    assert {part: b"".join(reader.stream(part, chunk_size)) for part in PARTS} == PARTS


@each_case
def test_a_segment_without_transaction_index_lacks_that_part_alone(case: LayoutCase) -> None:
    reader = opened(case, {part: data for part, data in PARTS.items() if part is not Part.TRANSACTION_INDEX})

    assert set(reader.parts()) == set(ORIGINAL_PARTS) - {Part.TRANSACTION_INDEX}
    with pytest.raises(TieredctlError) as raised:
        reader.read(Part.TRANSACTION_INDEX)
    assert raised.value.kind.code == "object-missing"


@each_case
@pytest.mark.parametrize("part", [Part.MANIFEST, Part.INDEXES])
def test_what_no_broker_wrote_is_not_a_part(case: LayoutCase, part: Part) -> None:
    with pytest.raises(TieredctlError) as raised:
        list(opened(case, PARTS).stream(part))

    assert raised.value.kind.code == "object-missing"


@each_layout
def test_opening_a_segment_reads_nothing(layout: Layout) -> None:
    layout.open_segment(MemoryStore(), SEGMENT)


@each_layout
def test_a_segment_that_is_not_there_cannot_be_read(layout: Layout) -> None:
    with pytest.raises(TieredctlError) as raised:
        layout.open_segment(MemoryStore(), SEGMENT).read(Part.LOG)

    assert raised.value.kind.code == "object-missing"


@each_layout
def test_a_layout_that_is_settled_in_a_store_explains_its_keys(layout: Layout) -> None:
    store = MemoryStore()
    for key in objects_of(layout, SEGMENT).values():
        store.put(key, b"")

    settled = layout.settled_in(store)

    assert objects_of(settled, SEGMENT) == objects_of(layout, SEGMENT)
    assert all(settled.explain(stored.key) for stored in store.list())


@each_case
def test_what_was_stored_together_contradicts_nothing(case: LayoutCase) -> None:
    assert list(opened(case, PARTS).contradictions()) == []


@each_case
@pytest.mark.parametrize(("start", "end"), [(0, 0), (0, 1), (6, 8), (7, 7), (3, None), (2, 1_000), (1_000, 2_000)])
def test_a_range_is_cut_as_a_slice_is(case: LayoutCase, start: int, end: int | None) -> None:
    reader = opened(case, PARTS)

    assert {part: reader.read(part, start, end) for part in PARTS} == {p: data[start:end] for p, data in PARTS.items()}


@each_layout
def test_a_pickled_layout_is_the_same(layout: Layout, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, private_key())

    copy: Layout = pickle.loads(pickle.dumps(layout))

    assert copy == layout
    assert objects_of(copy, SEGMENT) == objects_of(layout, SEGMENT)
