"""What is written is read again, whatever it is: metadata events in all three forms, and record batches."""

from __future__ import annotations

import string
from itertools import accumulate
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tieredctl.formats.compression import Codec, compress, decompress
from tieredctl.formats.metadata_records import decode_event, encode_event, is_kip_405
from tieredctl.formats.record_batches import (
    Attributes,
    Record,
    RecordHeader,
    crc_matches,
    encode_batch,
    read_batch_header,
    read_records,
)
from tieredctl.model.events import (
    MetadataEvent,
    RecordForm,
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataSnapshot,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
    RemotePartitionDeleteMetadata,
    RemotePartitionDeleteState,
    TaggedField,
)
from tieredctl.model.ids import TopicIdPartition, uuid_text

INT32, INT64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
UUID_TEXTS = st.binary(min_size=16, max_size=16).map(uuid_text)
TOPIC_NAMES = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=249)
PARTITIONS = st.builds(TopicIdPartition, UUID_TEXTS, TOPIC_NAMES, INT32)
KAFKA_FORMS = [RecordForm.KAFKA, RecordForm.KAFKA_BEFORE_3_6]


@st.composite
def tagged_fields(draw: st.DrawFn, paths: list[str], *, first_tag: int = 0) -> tuple[TaggedField, ...]:
    """Fields that no schema knows, in any of the structs that `paths` names, in the order in which they are read."""
    found = []
    for path in paths:
        tags = st.integers(first_tag if path == "" else 0, 2**32 - 1)
        fields = draw(st.dictionaries(tags, st.binary(max_size=8), max_size=2))
        found += [TaggedField(path, tag, data) for tag, data in sorted(fields.items())]
    return tuple(found)


@st.composite
def segment_fields(draw: st.DrawFn, form: RecordForm) -> dict[str, Any]:
    """What a segment's record and a snapshot's have in common."""
    later = form is RecordForm.KAFKA
    offsets = draw(st.tuples(st.integers(0, 2**63 - 1), st.integers(0, 2**63 - 1)))
    epochs = draw(st.dictionaries(INT32, INT64, min_size=1, max_size=200))
    return {
        "segment_id": draw(UUID_TEXTS),
        "start_offset": min(offsets),
        "end_offset": max(offsets),
        "author": draw(INT32),
        "max_timestamp_ms": draw(INT64),
        "event_timestamp_ms": draw(INT64),
        "segment_leader_epochs": tuple(sorted(epochs.items())),
        "segment_size_in_bytes": draw(INT32),
        "custom_metadata": draw(st.none() | st.binary(max_size=300)) if later else None,
        "state": draw(st.sampled_from(RemoteLogSegmentState)),
        "txn_idx_empty": draw(st.booleans()) if later else False,
        "form": form,
    }


@st.composite
def segments(draw: st.DrawFn) -> RemoteLogSegmentMetadata:
    form = draw(st.sampled_from(RecordForm))
    fields = draw(segment_fields(form))
    if form is not RecordForm.KIP_405:
        epochs = [f"SegmentLeaderEpochs[{index}]" for index in range(len(fields["segment_leader_epochs"]))]
        paths = ["RemoteLogSegmentId", "RemoteLogSegmentId.TopicIdPartition", *epochs[:2]]
        # Before 3.6 the message itself had no tagged field; since 4.0 tag 0 is TxnIndexEmpty.
        paths[:0] = [""] if form is RecordForm.KAFKA else []
        fields["tagged_fields"] = draw(tagged_fields(paths, first_tag=1))
    return RemoteLogSegmentMetadata(topic_id_partition=draw(PARTITIONS), **fields)


@st.composite
def snapshots(draw: st.DrawFn) -> RemoteLogSegmentMetadataSnapshot:
    form = draw(st.sampled_from(KAFKA_FORMS))
    paths = ["", "SegmentLeaderEpochs[0]"] if form is RecordForm.KAFKA else ["SegmentLeaderEpochs[0]"]
    return RemoteLogSegmentMetadataSnapshot(
        **draw(segment_fields(form)), tagged_fields=draw(tagged_fields(paths, first_tag=1))
    )


@st.composite
def updates(draw: st.DrawFn) -> RemoteLogSegmentMetadataUpdate:
    form = draw(st.sampled_from(RecordForm))
    paths = ["RemoteLogSegmentId", "RemoteLogSegmentId.TopicIdPartition"]
    paths[:0] = [""] if form is RecordForm.KAFKA else []
    return RemoteLogSegmentMetadataUpdate(
        topic_id_partition=draw(PARTITIONS),
        segment_id=draw(UUID_TEXTS),
        author=draw(INT32),
        event_timestamp_ms=draw(INT64),
        state=draw(st.sampled_from(RemoteLogSegmentState)),
        custom_metadata=draw(st.none() | st.binary(max_size=300)) if form is RecordForm.KAFKA else None,
        form=form,
        tagged_fields=() if form is RecordForm.KIP_405 else draw(tagged_fields(paths)),
    )


@st.composite
def partition_deletes(draw: st.DrawFn) -> RemotePartitionDeleteMetadata:
    form = draw(st.sampled_from([RecordForm.KAFKA, RecordForm.KIP_405]))
    return RemotePartitionDeleteMetadata(
        topic_id_partition=draw(PARTITIONS),
        author=draw(INT32),
        event_timestamp_ms=draw(INT64),
        state=draw(st.sampled_from(RemotePartitionDeleteState)),
        form=form,
        tagged_fields=() if form is RecordForm.KIP_405 else draw(tagged_fields(["", "TopicIdPartition"])),
    )


@given(segments() | updates() | partition_deletes() | snapshots())
def test_metadata_events_with_tagged_fields_in_every_struct(event: MetadataEvent) -> None:
    value = encode_event(event)

    assert is_kip_405(value) is (event.form is RecordForm.KIP_405)
    assert decode_event(value) == event
    assert decode_event(memoryview(value)) == event


NULLABLE_BYTES = st.none() | st.binary(max_size=60)
RECORD_HEADERS = st.lists(
    st.builds(RecordHeader, st.text(st.characters(exclude_categories=["Cs"]), max_size=10), NULLABLE_BYTES), max_size=3
)


@st.composite
def record_lists(draw: st.DrawFn) -> list[Record]:
    """Records of one batch: offsets ascend, with holes as compaction leaves them."""
    steps = draw(st.lists(st.integers(1, 1000), min_size=1, max_size=12))
    base = draw(st.integers(0, 2**62))
    times = st.integers(0, 2**62)
    return [
        Record(offset, draw(times), draw(NULLABLE_BYTES), draw(NULLABLE_BYTES), tuple(draw(RECORD_HEADERS)))
        for offset in accumulate(steps, initial=base)
    ]


@given(
    record_lists(),
    st.sampled_from(Codec),
    INT32,
    st.integers(0, 1000),
    st.sampled_from([0, Attributes.TRANSACTIONAL, Attributes.CONTROL, Attributes.DELETE_HORIZON]),
)
def test_record_batches(records: list[Record], codec: Codec, epoch: int, before: int, attributes: int) -> None:
    base_offset = max(0, records[0].offset - before)

    data = encode_batch(
        records, base_offset=base_offset, partition_leader_epoch=epoch, codec=codec, attributes=attributes
    )

    header = read_batch_header(data, 0, len(data))
    assert header.size == len(data)
    assert (header.base_offset, header.last_offset) == (base_offset, records[-1].offset)
    assert (header.partition_leader_epoch, header.codec) == (epoch, codec)
    assert crc_matches(data, 0, header)
    assert list(read_records(data, 0, header)) == records


@given(st.sampled_from(Codec), st.lists(st.binary(max_size=400), max_size=4), st.integers(0, 300))
def test_compressed_sections(codec: Codec, parts: list[bytes], repeated: int) -> None:
    section = b"".join(part * repeated for part in parts)

    assert decompress(codec, compress(codec, section)) == section
