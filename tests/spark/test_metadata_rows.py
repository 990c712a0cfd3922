"""What a task makes of the records that it reads loses no event, whoever replays it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from tieredctl_spark import metadata_shares
from tieredctl_spark.arrow.metadata_rows import ABOUT, DIVIDED, event_rows, event_table, state_rows
from tieredctl_spark.arrow.state_blocks import BLOCK, StateBlock
from tieredctl_spark.arrow.state_columns import EVENT_SCHEMA, replayed_states
from tieredctl_spark.metadata_facts import are_apart
from tieredctl_spark.metadata_shares import Share, planned_shares

from tests.event_histories import TEMPERS, HistoryInMemory, Temper, random_histories
from tests.metadata_logs import DELETING, PARTITION, copied, updated, write_events
from tests.replayed_states import event_row, states_of_rows, states_of_stream
from tieredctl.model.events import EventRecord
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_reading import event_chunk
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.wiring.places import MetadataPlace

TOLD = ["topicId", "topic", "partition", ABOUT]
CAPTURES = ("kafka-4.3.1", "kafka-3.9.1", "rlmm-3.4.1", "aiven-crash-4.3.1")


def events_in(rows: pa.Table) -> list[Document]:
    events = rows.filter(pc.is_valid(rows.column("apiKey"))).select(EVENT_SCHEMA.names).to_pylist()
    return sorted(events, key=place_of)


def place_of(row: Document) -> tuple[int, int]:
    return row["metadataPartition"], row["metadataOffset"]


def as_rows(records: list[EventRecord]) -> list[Document]:
    return sorted((dict.fromkeys(EVENT_SCHEMA.names) | event_row(one) for one in records), key=place_of)


@pytest.mark.parametrize("temper", TEMPERS, ids=str)
def test_a_row_says_what_the_event_does(temper: Temper) -> None:
    for history in random_histories("rows", temper, 1_000):
        stream = EventStream(HistoryInMemory(history))

        rows = pa.concat_tables(event_table(event_chunk(stream, *found)) for found in stream.chunks())

        assert events_in(rows) == as_rows(history)


@pytest.mark.parametrize("capture", CAPTURES)
def test_every_event_of_a_real_log_is_there_once_and_replayed_to_the_same_states(
    captures: Path, monkeypatch: pytest.MonkeyPatch, capture: str
) -> None:
    place = MetadataPlace((captures / capture / "data",))
    whole = pa.concat_tables(state_rows(place, planned_shares(place), 0))
    monkeypatch.setattr(metadata_shares, "MOST_OFFSETS", 10)

    divided = pa.concat_tables(rows for share in planned_shares(place) for rows in event_rows(place, [share]))

    with place.open() as stream:
        records = list(stream.records())
    assert events_in(divided) == as_rows(records)
    blocks = whole.column(BLOCK).combine_chunks().drop_null()
    segments = pa.concat_tables(StateBlock.unpacked(one).rows() for one in blocks)
    events = divided.filter(pc.is_valid(divided.column("apiKey"))).select(EVENT_SCHEMA.names)
    with place.open() as stream:
        local = states_of_stream(stream)
    assert states_of_rows(segments) == states_of_rows(StateBlock.of(replayed_states(events)).rows()) == local
    told = [rows.filter(pc.is_valid(rows.column(ABOUT))).column(ABOUT).to_pylist() for rows in (whole, divided)]
    assert {one["home"] for one in told[0]} == {0}
    assert {one["home"] for one in told[1]} == {DIVIDED}


def test_a_partition_whose_events_were_replayed_apart_is_told(tmp_path: Path) -> None:
    """As where the number of metadata partitions was changed."""
    write_events(tmp_path, *copied(1, 0, 9), metadata_partition=0)
    write_events(tmp_path, *copied(2, 0, 9, partition=replace(PARTITION, partition=1)), metadata_partition=1)
    write_events(tmp_path, updated(1, DELETING), metadata_partition=2)
    place = MetadataPlace((tmp_path,))
    _, *logs = planned_shares(place)

    def told(*tasks: list[Share]) -> pa.Table:
        rows = [one for home, shares in enumerate(tasks) for one in state_rows(place, shares, home)]
        return pa.concat_tables(rows).select(TOLD)

    first, second, third = logs
    assert are_apart(told([first, second], [third]))
    assert not are_apart(told([first, third], [second]))
    assert are_apart(pa.concat_tables([told([first]), *(rows.select(TOLD) for rows in event_rows(place, [third]))]))
