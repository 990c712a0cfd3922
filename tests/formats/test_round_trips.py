"""What is written is read again, whatever it is: files of a log directory and of the remote log metadata manager."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.formats import file_formats
from tests.formats.schema_values import (
    INT16,
    INT32,
    INT64,
    POSITIVE_INT32,
    POSITIVE_INT64,
    TEXTS,
    TOPICS,
    UUID_TEXTS,
    every_type,
    values_of,
    whole_numbers,
)
from tests.rigs.message_definitions import COPIES
from tieredctl.formats.checkpoints import CheckpointedOffset, EpochEntry
from tieredctl.formats.clean_shutdown import CleanShutdown
from tieredctl.formats.committed_offsets import CommittedOffsets, CommittedOffsetsForm
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState
from tieredctl.formats.indexes import AbortedTransaction, OffsetIndexEntry, TimeIndexEntry
from tieredctl.formats.message_json import message
from tieredctl.formats.meta_properties import MetaProperties
from tieredctl.formats.partition_metadata import PartitionMetadata
from tieredctl.formats.producer_snapshot import ProducerEntry
from tieredctl.formats.quorum_state import QuorumState
from tieredctl.formats.remote_log_snapshot import RemoteLogSnapshot
from tieredctl.formats.schema import UNKNOWN_TAGS, Struct
from tieredctl.formats.varints import read_unsigned_varint, read_varint, read_varlong, unsigned_varint, varint, varlong
from tieredctl.formats.wire import read_whole, writer
from tieredctl.model.events import (
    RecordForm,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentState,
    RemotePartitionDeleteState,
)
from tieredctl.model.ids import ZERO_UUID

SCHEMAS = {
    f"{schema.name} v{version}": schema
    for file in COPIES.glob("*.json")
    for version, schema in enumerate(map(message(file.stem).schema, range(message(file.stem).latest_version + 1)))
} | {"all types, flexible": every_type(flexible=True), "all types, not flexible": every_type(flexible=False)}


@pytest.mark.parametrize("schema", SCHEMAS.values(), ids=SCHEMAS.keys())
@settings(max_examples=examples(10))
@given(data=st.data())
def test_every_schema_of_kafkas_messages(schema: Struct, data: st.DataObject) -> None:
    values = data.draw(values_of(schema))

    assert read_whole(schema, writer(schema)(values)) == values


@given(whole_numbers(32, signed=False), INT32, INT64)
def test_varints(unsigned: int, signed: int, long: int) -> None:
    assert read_unsigned_varint(unsigned_varint(unsigned), 0, 5) == (unsigned, len(unsigned_varint(unsigned)))
    assert read_varint(varint(signed), 0, len(varint(signed)))[0] == signed
    assert read_varlong(varlong(long), 0, len(varlong(long)))[0] == long


@given(st.dictionaries(POSITIVE_INT32, POSITIVE_INT32), st.integers(0, 3))
def test_offset_index_with_a_preallocated_tail(entries: dict[int, int], free: int) -> None:
    index = [OffsetIndexEntry(*entry) for entry in sorted(entries.items())]
    assume(free == 0 or index[:1] not in ([], [OffsetIndexEntry(0, 0)]))

    assert file_formats.OFFSET_INDEX.read(file_formats.OFFSET_INDEX.encode(index) + bytes(8 * free)) == index


@given(st.dictionaries(POSITIVE_INT64, POSITIVE_INT32), st.integers(0, 3))
def test_time_index_with_a_preallocated_tail(entries: dict[int, int], free: int) -> None:
    index = [TimeIndexEntry(*entry) for entry in sorted(entries.items())]
    assume(free == 0 or index[:1] not in ([], [TimeIndexEntry(0, 0)]))

    assert file_formats.TIME_INDEX.read(file_formats.TIME_INDEX.encode(index) + bytes(12 * free)) == index


@given(st.data(), st.integers(0, 1))
def test_quorum_state(data: st.DataObject, version: int) -> None:
    values = data.draw(values_of(message("QuorumStateData").schema(version)))
    for part in (values, *(values.get("CurrentVoters") or ())):
        part.pop(UNKNOWN_TAGS, None)  # JSON has none
    state = QuorumState(version, values)

    assert file_formats.QUORUM_STATE.read(file_formats.QUORUM_STATE.encode(state)) == state


def stored_segments(form: RecordForm) -> st.SearchStrategy[RemoteLogSegmentMetadataSnapshot]:
    later = form is RecordForm.KAFKA
    return st.builds(
        lambda offsets, epochs, **fields: RemoteLogSegmentMetadataSnapshot(
            start_offset=min(offsets),
            end_offset=max(offsets),
            segment_leader_epochs=tuple(sorted(epochs.items())),
            form=form,
            **fields,
        ),
        offsets=st.tuples(POSITIVE_INT64, POSITIVE_INT64),
        epochs=st.dictionaries(INT32, INT64, min_size=1, max_size=4),
        segment_id=UUID_TEXTS,
        author=INT32,
        max_timestamp_ms=INT64,
        event_timestamp_ms=INT64,
        segment_size_in_bytes=INT32,
        custom_metadata=st.none() | st.binary(max_size=200) if later else st.none(),
        state=st.sampled_from(RemoteLogSegmentState),
        txn_idx_empty=st.booleans() if later else st.just(False),
    )


DELETE_STATES = st.builds(StoredDeleteState, INT32, INT64, st.sampled_from(RemotePartitionDeleteState))
BEFORE_AND_SINCE_3_6 = stored_segments(RecordForm.KAFKA) | stored_segments(RecordForm.KAFKA_BEFORE_3_6)
OF_KIP_405 = stored_segments(RecordForm.KIP_405) | DELETE_STATES
PRODUCERS = st.builds(ProducerEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)
ABORTED = st.builds(AbortedTransaction, INT64, INT64, INT64, INT64)
FILES: dict[file_formats.FileFormat, st.SearchStrategy[Any]] = {
    file_formats.TRANSACTION_INDEX: st.lists(ABORTED, unique_by=lambda entry: entry.last_offset).map(
        lambda entries: sorted(entries, key=lambda entry: entry.last_offset)
    ),
    file_formats.LEADER_EPOCHS: st.lists(st.builds(EpochEntry, INT32, INT64)),
    file_formats.OFFSET_CHECKPOINT: st.lists(st.builds(CheckpointedOffset, TOPICS, INT32, INT64)),
    file_formats.COMMITTED_OFFSETS: st.builds(
        CommittedOffsets, st.sampled_from(CommittedOffsetsForm), st.dictionaries(INT32, INT64, min_size=1)
    ),
    file_formats.PRODUCER_SNAPSHOT: st.lists(PRODUCERS),
    file_formats.PARTITION_METADATA: st.builds(
        PartitionMetadata, POSITIVE_INT32, UUID_TEXTS.filter(lambda topic_id: topic_id != ZERO_UUID)
    ),
    file_formats.PROPERTIES: st.dictionaries(TEXTS, TEXTS),
    file_formats.META_PROPERTIES: st.builds(MetaProperties, st.just(1), TEXTS, POSITIVE_INT32, st.none() | UUID_TEXTS)
    | st.builds(MetaProperties, st.just(0), st.none() | TEXTS, st.none() | POSITIVE_INT32, st.none()),
    file_formats.CLEAN_SHUTDOWN: st.builds(CleanShutdown, POSITIVE_INT32, INT64),
    file_formats.REMOTE_LOG_SNAPSHOT: st.builds(
        RemoteLogSnapshot, INT32, INT64, st.lists(BEFORE_AND_SINCE_3_6, max_size=5)
    ),
    file_formats.FLAT_FILE: st.builds(FlatFile, TOPICS, UUID_TEXTS, INT64, st.lists(OF_KIP_405, max_size=5)),
}


@pytest.mark.parametrize("form", FILES, ids=lambda form: form.encode.__name__)
@given(data=st.data())
def test_any_file(form: file_formats.FileFormat, data: st.DataObject) -> None:
    value = data.draw(FILES[form])

    assert form.read(form.encode(value)) == value
