"""KRaft snapshots made for a test, and what a log has."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from tieredctl.formats.control_records import encode_control_record
from tieredctl.formats.kraft_log import (
    KraftLogRecord,
    KraftRecordType,
    batch_records,
    encode_kraft_record,
    sound_batches,
)
from tieredctl.formats.log_scan import Damage
from tieredctl.formats.record_batches import Attributes, ControlType, Record, encode_batch
from tieredctl.model.ids import uuid_bytes


def topic_record(topic_id: str, name: str = "t") -> bytes:
    return encode_kraft_record(KraftRecordType.TOPIC, 0, {"Name": name, "TopicId": uuid_bytes(topic_id)})


def remove_topic_record(topic_id: str) -> bytes:
    return encode_kraft_record(KraftRecordType.REMOVE_TOPIC, 0, {"TopicId": uuid_bytes(topic_id)})


def snapshot_bytes(as_of_ms: int, *values: bytes, batch_records: int = 1 << 20) -> bytes:
    """A snapshot with these records, so many in each batch, of which the last was written at `as_of_ms`."""
    records = [Record(1 + number, as_of_ms, None, value) for number, value in enumerate(values)]
    batches = (records[start : start + batch_records] for start in range(0, len(records), batch_records))
    body = b"".join(encode_batch(batch, partition_leader_epoch=1) for batch in batches)
    return (
        _control_batch(0, as_of_ms, ControlType.SNAPSHOT_HEADER, LastContainedLogTimestamp=as_of_ms)
        + body
        + _control_batch(1 + len(records), as_of_ms, ControlType.SNAPSHOT_FOOTER)
    )


def write_snapshot(log_dir: Path, as_of_ms: int, *values: bytes) -> Path:
    """The snapshot in the place where a broker has it."""
    folder = log_dir / "__cluster_metadata-0"
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{len(values):020}-0000000001.checkpoint"
    file.write_bytes(snapshot_bytes(as_of_ms, *values))
    return file


def read_kraft_log(
    chunks: Iterable[bytes], size: int, base_offset: int | None = None
) -> Iterator[KraftLogRecord | Damage]:
    """The records of a log file of `size` bytes that arrives in pieces, and the stretches of it that are not sound."""
    for part in sound_batches(chunks, size, base_offset):
        if isinstance(part, Damage):
            yield part
        else:
            yield from batch_records(*part)


def _control_batch(offset: int, timestamp: int, kind: ControlType, **fields: int) -> bytes:
    record = encode_control_record(kind, {"Version": 0, **fields}, offset=offset, timestamp=timestamp)
    return encode_batch([record], partition_leader_epoch=1, attributes=Attributes.CONTROL)
