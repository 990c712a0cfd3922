"""Segments' states in blocks, as Spark's tasks give them to each other, are the states that were put in."""

from __future__ import annotations

import random

import pyarrow as pa
import pytest
from tieredctl_spark.arrow import state_blocks
from tieredctl_spark.arrow.state_blocks import BLOCK, HASH, StateBlock
from tieredctl_spark.arrow.state_columns import COPIED_FIELDS, PARTITION_FIELDS, STATE_SCHEMA

from tests.event_histories import TEMPERS, HistoryInMemory, Temper, random_histories
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_reading import read_events
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.orphans.segment_states import SegmentStates, states_in_partitions
from tieredctl.rlmm.segment_events import SegmentEvents


def rows_one_by_one(states: SegmentStates) -> list[Document]:
    """By STATE_SCHEMA, those of a partition together."""
    copied, ids = states.copied, states.ids.to_pylist()
    found = []
    for number, owner in enumerate(states.owners.tolist()):
        partition, removal = states.partitions[owner], states.partition_deletes.get(owner)
        found.append(
            {
                "topic": partition.topic,
                "topicId": partition.topic_id,
                "partition": partition.partition,
                "segmentId": ids[number],
                "state": int(states.states[number]),
                "startOffset": int(states.start_offsets[number]),
                "metadataPartition": int(states.metadata_partitions[number]),
                "metadataOffset": int(states.metadata_offsets[number]),
                "superseded": bool(states.superseded[number]),
                "removal": None if removal is None else int(removal),
                "copiedFrom": int(copied.firsts[owner]),
                "copiedTo": int(copied.lasts[owner]),
                "copiedMs": int(copied.begun_ms[owner]),
            }
        )
    order = sorted(range(len(found)), key=lambda number: states.owners[number])
    return [found[number] for number in order]


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_whatever_is_packed_is_unpacked_and_chosen_from(temper: Temper, monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(f"blocks {temper}")
    for history in random_histories("blocks", temper, 1_000):
        events = SegmentEvents()
        read_events(EventStream(HistoryInMemory(history)), events)
        states = states_in_partitions(events)
        monkeypatch.setattr(state_blocks, "_SEGMENTS_IN_BLOCK", source.randint(1, 50))
        expected = rows_one_by_one(states)

        packed = StateBlock.of(states).packed().column(BLOCK).combine_chunks()
        blocks = [StateBlock.unpacked(one) for one in packed]

        assert [row for block in blocks for row in block.rows().to_pylist()] == expected
        some = set(source.sample(states.partitions, source.randint(0, len(states.partitions))))
        of_some = [block.where(block.are_of(some)) for block in blocks]
        names = {(one.topic, one.topic_id, one.partition) for one in some}
        wanted = [row for row in expected if tuple(row[name] for name in PARTITION_FIELDS) in names]
        assert [row for block in of_some for row in block.rows().to_pylist()] == wanted
        said = [*PARTITION_FIELDS, *COPIED_FIELDS]
        once = {tuple(row.values()) for block in of_some for row in block.partition_rows(said).to_pylist()}
        assert once == {tuple(row[name] for name in said) for row in wanted}


def test_a_chosen_column_is_that_of_all_and_hashes_are_those_of_ids() -> None:
    (history,) = random_histories("columns", TEMPERS[0], 1)
    events = SegmentEvents()
    read_events(EventStream(HistoryInMemory(history)), events)
    block = StateBlock.of(states_in_partitions(events))

    for name in STATE_SCHEMA.names:
        assert block.rows([name]).column(name) == block.rows().column(name)
    hashes = dict(zip(block.rows(["segmentId"]).column(0).to_pylist(), block.hashes.tolist(), strict=True))
    assert block.rows([HASH, "segmentId"]).to_pylist() == [
        {HASH: hashes[one], "segmentId": one} for one in block.rows(["segmentId"]).column(0).to_pylist()
    ]
    assert len(set(hashes.values())) == len(hashes) > 1


def test_no_segments_are_no_blocks() -> None:
    states = states_in_partitions(SegmentEvents())

    assert len(StateBlock.of(states).packed()) == 0
    assert StateBlock.of(states).rows() == pa.Table.from_pylist([], STATE_SCHEMA)
    assert StateBlock.of(states).partitions == []
