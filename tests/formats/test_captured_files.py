"""Every file of a known kind that real clusters left behind is read, and written back byte for byte."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.formats import file_formats
from tieredctl.formats.kraft_log import decode_kraft_record, encode_kraft_record
from tieredctl.formats.kraft_snapshot import read_kraft_snapshot
from tieredctl.formats.metadata_records import decode_event, encode_event
from tieredctl.formats.record_batches import read_batch_header, read_records
from tieredctl.model.events import RecordForm

BYTE_FOR_BYTE: dict[str, tuple[str, int, Callable[[bytes], Any], Callable[[Any], bytes]]] = {
    "offset index": ("*.index", 700, *file_formats.OFFSET_INDEX),
    "time index": ("*.timeindex", 700, *file_formats.TIME_INDEX),
    "transaction index": ("*.txnindex", 300, *file_formats.TRANSACTION_INDEX),
    "producer snapshot": ("*.snapshot", 500, *file_formats.PRODUCER_SNAPSHOT),
    "leader-epoch checkpoint": (
        "leader-epoch-checkpoint",
        50,
        *file_formats.LEADER_EPOCHS,
    ),
    "remote leader-epoch checkpoint": (
        "*.leader_epoch_checkpoint",
        100,
        *file_formats.LEADER_EPOCHS,
    ),
    "offset checkpoint": ("*-offset-checkpoint", 15, *file_formats.OFFSET_CHECKPOINT),
    "partition.metadata": ("partition.metadata", 70, *file_formats.PARTITION_METADATA),
    "committed offsets": ("_rlmm_committed_offsets", 1, *file_formats.COMMITTED_OFFSETS),
    "quorum-state": ("quorum-state", 5, *file_formats.QUORUM_STATE),
    "clean shutdown": (".kafka_cleanshutdown", 3, *file_formats.CLEAN_SHUTDOWN),
}


@pytest.mark.parametrize(("pattern", "at_least", "read", "encode"), BYTE_FOR_BYTE.values(), ids=BYTE_FOR_BYTE.keys())
def test_byte_for_byte(
    captures: Path, pattern: str, at_least: int, read: Callable[[bytes], Any], encode: Callable[[Any], bytes]
) -> None:
    files = list(captures.rglob(pattern))

    assert len(files) >= at_least
    for file in files:
        data = file.read_bytes()
        written = encode(read(data))
        preallocated = bytes(len(data) - len(written))  # of indexes whose broker was killed
        assert written + preallocated == data, file


def test_meta_properties(captures: Path) -> None:
    files = list(captures.rglob("meta.properties"))

    assert len(files) == 5
    for file in files:
        meta = file_formats.META_PROPERTIES.read(file.read_bytes())
        assert (meta.version, meta.node_id) == (1, 1)
        assert file_formats.META_PROPERTIES.read(file_formats.META_PROPERTIES.encode(meta)) == meta


@pytest.mark.parametrize(
    ("capture", "forms"),
    [
        ("rlmm-3.4.1", {RecordForm.KAFKA_BEFORE_3_6, RecordForm.KAFKA}),  # 3.6 changed nothing in a partition's removal
        ("kafka-3.9.1", {RecordForm.KAFKA}),
        ("kafka-4.3.1", {RecordForm.KAFKA}),
    ],
)
def test_remote_log_metadata_events(captures: Path, capture: str, forms: set[RecordForm]) -> None:
    found = set()
    for log in (captures / capture / "data").glob("__remote_log_metadata-*/*.log"):
        data = log.read_bytes()
        position = 0
        while position < len(data):
            header = read_batch_header(data, position, len(data))
            for record in read_records(data, position, header):
                assert record.value is not None
                event = decode_event(record.value)
                assert encode_event(event) == record.value
                found.add(event.form)
            position += header.size

    assert found == forms


def test_remote_log_snapshots_hold_the_states_that_their_manager_answered(captures: Path) -> None:
    capture = captures / "rlmm-3.4.1"
    answers = {
        f"{answer['topic']}-{answer['partition']}": answer
        for answer in map(json.loads, (capture / "answers.jsonl").read_text("utf-8").splitlines())
    }
    filled = 0
    for file in (capture / "store").glob("*/remote_log_snapshot"):
        data = file.read_bytes()
        snapshot = file_formats.REMOTE_LOG_SNAPSHOT.read(data)
        if snapshot is None:
            assert file.parent.name.startswith("retired-")
            continue
        answer = answers[file.parent.name]
        assert snapshot.metadata_partition == answer["metadataPartition"]
        states = {segment.segment_id: segment.state.name for segment in snapshot.segments}
        assert states.items() <= {(segment_id, state) for segment_id, state in answer["segments"]}
        assert {segment.form for segment in snapshot.segments} == {RecordForm.KAFKA_BEFORE_3_6}
        assert file_formats.REMOTE_LOG_SNAPSHOT.encode(snapshot) == data
        filled += 1

    assert filled == 6


def test_kraft_snapshots_and_their_records(captures: Path) -> None:
    files = list(captures.rglob("*.checkpoint"))

    assert len(files) >= 25
    for file in files:
        data = file.read_bytes()
        assert len(list(read_kraft_snapshot([data], len(data)))) >= 3
        for value in data_values(data):
            record = decode_kraft_record(value)
            assert record.fields is not None
            assert encode_kraft_record(record.api_key, record.version, record.fields) == value


def data_values(snapshot: bytes) -> list[bytes]:
    values = []
    position = 0
    while position < len(snapshot):
        header = read_batch_header(snapshot, position, len(snapshot))
        if not header.is_control:
            values += [record.value or b"" for record in read_records(snapshot, position, header)]
        position += header.size
    return values
