"""Captured logs and snapshots, read here and printed as kafka-dump-log printed them: every line must be the same."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tieredctl.formats.compression import Codec
from tieredctl.formats.control_records import ControlRecord, decode_control_record
from tieredctl.formats.kafka_json import json_document
from tieredctl.formats.kraft_log import KraftRecord, decode_kraft_record
from tieredctl.formats.metadata_records import decode_event
from tieredctl.formats.metadata_text import KafkaText, event_text
from tieredctl.formats.record_batches import (
    NO_SEQUENCE,
    Attributes,
    BatchHeader,
    ControlType,
    Record,
    crc_matches,
    read_batch_header,
    read_records,
)

KAFKA_CAPTURES = ["kafka-4.3.1", "kafka-3.9.1"]
SINCE_4_0, SINCE_3_6 = KafkaText(), KafkaText(custom_metadata=True, txn_idx_empty=False)
METADATA_CAPTURES = {
    "kafka-4.3.1": SINCE_4_0,
    "kafka-3.9.1": SINCE_3_6,
    "aiven-plain-4.3.1": SINCE_4_0,
    "aiven-crash-4.3.1": SINCE_4_0,
    "aiven-zstd-encrypted-4.3.1": SINCE_4_0,
}
"""By capture, what its broker's toString shows."""
SNAPSHOT_CONTROLS = {ControlType.SNAPSHOT_HEADER: "SnapshotHeader", ControlType.SNAPSHOT_FOOTER: "SnapshotFooter"}


def batches(data: bytes) -> Iterator[tuple[int, BatchHeader]]:
    position = 0
    while position < len(data):
        header = read_batch_header(data, position, len(data))
        yield position, header
        position += header.size


def printed(flag: object) -> str:
    return "true" if flag else "false"


def time_of(header: BatchHeader, timestamp: int) -> str:
    kind = "LogAppendTime" if header.attributes & Attributes.LOG_APPEND_TIME else "CreateTime"
    return f"{kind}: {timestamp}"


def batch_line(data: bytes, position: int, header: BatchHeader) -> str:
    has_sequence = header.base_sequence != NO_SEQUENCE
    last_sequence = header.base_sequence + header.last_offset_delta if has_sequence else NO_SEQUENCE
    has_horizon = header.attributes & Attributes.DELETE_HORIZON
    horizon = f"OptionalLong[{header.base_timestamp}]" if has_horizon else "OptionalLong.empty"
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.records_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {last_sequence} producerId: {header.producer_id} "
        f"producerEpoch: {header.producer_epoch} partitionLeaderEpoch: {header.partition_leader_epoch} "
        f"isTransactional: {printed(header.is_transactional)} isControl: {printed(header.is_control)} "
        f"deleteHorizonMs: {horizon} position: {position} {time_of(header, header.max_timestamp)} size: {header.size} "
        f"magic: {header.magic} compresscodec: {header.codec.name.lower()} crc: {header.crc} "
        f"isvalid: {printed(crc_matches(data, position, header))}"
    )


def record_line(header: BatchHeader, record: Record) -> str:
    has_sequence = header.base_sequence != NO_SEQUENCE
    sequence = header.base_sequence + record.offset - header.base_offset if has_sequence else NO_SEQUENCE
    key_size, value_size = (-1 if part is None else len(part) for part in (record.key, record.value))
    keys = ",".join(each.key for each in record.headers)
    return (
        f"| offset: {record.offset} {time_of(header, record.timestamp)} keySize: {key_size} valueSize: {value_size} "
        f"sequence: {sequence} headerKeys: [{keys}]"
    )


def control_text(control: ControlRecord) -> str:
    kind = ControlType(control.type)
    assert control.schema is not None
    assert control.fields is not None
    if kind in SNAPSHOT_CONTROLS:
        return f" {SNAPSHOT_CONTROLS[kind]} {compact(json_document(control.schema, control.fields))}"
    return f" endTxnMarker: {kind.name} coordinatorEpoch: {control.fields['CoordinatorEpoch']}"


def compact(document: object) -> str:
    return json.dumps(document, separators=(",", ":"))


def kraft_payload(record: KraftRecord) -> str:
    assert record.schema is not None
    assert record.fields is not None
    name = re.sub("(?<!^)(?=[A-Z])", "_", record.schema.name).upper()
    return compact({"type": name, "version": record.version, "data": json_document(record.schema, record.fields)})


def dump(data: bytes, text: KafkaText | None = None, *, of_cluster_metadata: bool = False) -> Iterator[str]:
    for position, header in batches(data):
        yield batch_line(data, position, header)
        for record in read_records(data, position, header):
            line = record_line(header, record)
            if header.is_control:
                line += control_text(decode_control_record(record))
            elif text is not None:
                line += f" payload: {event_text(decode_event(record.value or b''), text)}"
            elif of_cluster_metadata:
                line += f" payload: {kraft_payload(decode_kraft_record(record.value or b''))}"
            yield line


def dumped(oracle: Path) -> list[str]:
    """Lines of a dump, without the two that name the file and its first offset."""
    return oracle.read_text("utf-8").splitlines()[2:]


@pytest.mark.parametrize("capture", KAFKA_CAPTURES)
def test_remote_segments(captures: Path, capture: str) -> None:
    oracles = sorted((captures / capture / "oracle/segments").glob("*/*.log.txt"))

    assert len(oracles) >= 10
    for oracle in oracles:
        log = captures / capture / "remote/kafka-tiered-storage" / oracle.parent.name / oracle.stem
        assert list(dump(log.read_bytes())) == dumped(oracle)


def test_segments_before_the_aiven_plugin_encrypted_them(captures: Path) -> None:
    capture = captures / "aiven-zstd-encrypted-4.3.1"
    oracles = sorted((capture / "oracle/dump/segments/tiered").rglob("*.log.txt"))

    assert len(oracles) == 5
    for oracle in oracles:
        key = oracle.relative_to(capture / "oracle/dump/segments/tiered")
        (log,) = (capture / "plaintext" / key.parent / key.name.removesuffix(".log.txt")).glob("*.log")
        assert list(dump(log.read_bytes())) == dumped(oracle)


@pytest.mark.parametrize(("capture", "text"), METADATA_CAPTURES.items())
def test_remote_log_metadata(captures: Path, capture: str, text: KafkaText) -> None:
    oracles = sorted((captures / capture / "oracle/dump").glob("__remote_log_metadata-*.txt"))

    assert len(oracles) == 4
    for oracle in oracles:
        (log,) = (captures / capture / "data" / oracle.stem).glob("*.log")
        assert list(dump(log.read_bytes(), text)) == dumped(oracle)


@pytest.mark.parametrize("capture", KAFKA_CAPTURES)
def test_kraft_snapshots(captures: Path, capture: str) -> None:
    (oracle,) = (captures / capture / "oracle/snapshots").glob("*.checkpoint.txt")
    snapshot = captures / capture / "data/__cluster_metadata-0" / oracle.stem

    assert list(dump(snapshot.read_bytes(), of_cluster_metadata=True)) == dumped(oracle)


@pytest.mark.parametrize("capture", KAFKA_CAPTURES)
def test_every_record_of_every_remote_segment_is_read_in_all_five_codecs(captures: Path, capture: str) -> None:
    codecs = set()
    for log in (captures / capture / "remote/kafka-tiered-storage").glob("*/*.log"):
        data = log.read_bytes()
        for position, header in batches(data):
            records = list(read_records(data, position, header))
            assert crc_matches(data, position, header)
            assert len(records) == header.records_count
            assert records[-1].offset == header.last_offset
            assert max(record.timestamp for record in records) == header.max_timestamp
            codecs.add(header.codec)

    assert codecs == set(Codec)
