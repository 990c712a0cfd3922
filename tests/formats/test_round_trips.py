"""What is written is read again, whatever it is: files of a log directory and of the remote log metadata manager."""

from __future__ import annotations

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.conftest import examples
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
from tieredctl.formats.checkpoints import (
    CheckpointedOffset,
    EpochEntry,
    encode_leader_epoch_checkpoint,
    encode_offset_checkpoint,
    read_leader_epoch_checkpoint,
    read_offset_checkpoint,
)
from tieredctl.formats.clean_shutdown import CleanShutdown, encode_clean_shutdown, read_clean_shutdown
from tieredctl.formats.committed_offsets import (
    CommittedOffsets,
    CommittedOffsetsForm,
    encode_committed_offsets,
    read_committed_offsets,
)
from tieredctl.formats.flat_file import FlatFile, StoredDeleteState, encode_flat_file, read_flat_file
from tieredctl.formats.indexes import (
    AbortedTransaction,
    OffsetIndexEntry,
    TimeIndexEntry,
    encode_offset_index,
    encode_time_index,
    encode_transaction_index,
    read_offset_index,
    read_time_index,
    read_transaction_index,
)
from tieredctl.formats.java_properties import encode_properties, read_properties
from tieredctl.formats.message_json import message
from tieredctl.formats.meta_properties import MetaProperties, encode_meta_properties, read_meta_properties
from tieredctl.formats.partition_metadata import (
    PartitionMetadata,
    encode_partition_metadata,
    read_partition_metadata,
)
from tieredctl.formats.producer_snapshot import ProducerEntry, encode_producer_snapshot, read_producer_snapshot
from tieredctl.formats.quorum_state import QuorumState, encode_quorum_state, read_quorum_state
from tieredctl.formats.remote_log_snapshot import (
    RemoteLogSnapshot,
    encode_remote_log_snapshot,
    read_remote_log_snapshot,
)
from tieredctl.formats.schema import UNKNOWN_TAGS, Struct
from tieredctl.formats.varints import (
    read_unsigned_varint,
    read_varint,
    read_varlong,
    unsigned_varint,
    varint,
    varlong,
)
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

    assert read_offset_index(encode_offset_index(index) + bytes(8 * free)) == index


@given(st.dictionaries(POSITIVE_INT64, POSITIVE_INT32), st.integers(0, 3))
def test_time_index_with_a_preallocated_tail(entries: dict[int, int], free: int) -> None:
    index = [TimeIndexEntry(*entry) for entry in sorted(entries.items())]
    assume(free == 0 or index[:1] not in ([], [TimeIndexEntry(0, 0)]))

    assert read_time_index(encode_time_index(index) + bytes(12 * free)) == index


@given(st.lists(st.builds(AbortedTransaction, INT64, INT64, INT64, INT64), unique_by=lambda entry: entry.last_offset))
def test_transaction_index(entries: list[AbortedTransaction]) -> None:
    index = sorted(entries, key=lambda entry: entry.last_offset)

    assert read_transaction_index(encode_transaction_index(index)) == index


@given(st.lists(st.builds(EpochEntry, INT32, INT64)))
def test_leader_epoch_checkpoint(entries: list[EpochEntry]) -> None:
    assert read_leader_epoch_checkpoint(encode_leader_epoch_checkpoint(entries)) == entries


@given(st.lists(st.builds(CheckpointedOffset, TOPICS, INT32, INT64)))
def test_offset_checkpoint(entries: list[CheckpointedOffset]) -> None:
    assert read_offset_checkpoint(encode_offset_checkpoint(entries)) == entries


@given(st.sampled_from(CommittedOffsetsForm), st.dictionaries(INT32, INT64, min_size=1))
def test_committed_offsets(form: CommittedOffsetsForm, offsets: dict[int, int]) -> None:
    committed = CommittedOffsets(form, offsets)

    assert read_committed_offsets(encode_committed_offsets(committed)) == committed


@given(st.lists(st.builds(ProducerEntry, INT64, INT16, INT32, INT64, INT32, INT64, INT32, INT64)))
def test_producer_snapshot(entries: list[ProducerEntry]) -> None:
    assert read_producer_snapshot(encode_producer_snapshot(entries)) == entries


@given(POSITIVE_INT32, UUID_TEXTS.filter(lambda topic_id: topic_id != ZERO_UUID))
def test_partition_metadata(version: int, topic_id: str) -> None:
    metadata = PartitionMetadata(version, topic_id)

    assert read_partition_metadata(encode_partition_metadata(metadata)) == metadata


@given(st.dictionaries(TEXTS, TEXTS))
def test_java_properties(properties: dict[str, str]) -> None:
    assert read_properties(encode_properties(properties)) == properties


@given(
    st.builds(MetaProperties, st.just(1), TEXTS, POSITIVE_INT32, st.none() | UUID_TEXTS)
    | st.builds(MetaProperties, st.just(0), st.none() | TEXTS, st.none() | POSITIVE_INT32, st.none())
)
def test_meta_properties(meta: MetaProperties) -> None:
    assert read_meta_properties(encode_meta_properties(meta)) == meta


@given(st.data(), st.integers(0, 1))
def test_quorum_state(data: st.DataObject, version: int) -> None:
    values = data.draw(values_of(message("QuorumStateData").schema(version)))
    for part in (values, *(values.get("CurrentVoters") or ())):
        part.pop(UNKNOWN_TAGS, None)  # JSON has none
    state = QuorumState(version, values)

    assert read_quorum_state(encode_quorum_state(state)) == state


@given(POSITIVE_INT32, INT64)
def test_clean_shutdown(version: int, broker_epoch: int) -> None:
    shutdown = CleanShutdown(version, broker_epoch)

    assert read_clean_shutdown(encode_clean_shutdown(shutdown)) == shutdown


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


@given(
    st.builds(
        RemoteLogSnapshot,
        INT32,
        INT64,
        st.lists(stored_segments(RecordForm.KAFKA) | stored_segments(RecordForm.KAFKA_BEFORE_3_6), max_size=5),
    )
)
def test_remote_log_snapshot(snapshot: RemoteLogSnapshot) -> None:
    assert read_remote_log_snapshot(encode_remote_log_snapshot(snapshot)) == snapshot


@given(
    st.builds(
        FlatFile, TOPICS, UUID_TEXTS, INT64, st.lists(stored_segments(RecordForm.KIP_405) | DELETE_STATES, max_size=5)
    )
)
def test_flat_file(flat_file: FlatFile) -> None:
    assert read_flat_file(encode_flat_file(flat_file)) == flat_file
