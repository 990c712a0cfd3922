"""Records as Kafka's own classes read them, and as consumers of either isolation level would get them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from tests.rigs.java_program import run_java_program
from tests.rigs.maven import KafkaJars


class KafkaRecord(NamedTuple):
    """What a record of a log is, control records and all."""

    offset: int
    timestamp: int
    timestamp_type: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    leader_epoch: int
    producer_id: int
    producer_epoch: int
    sequence: int
    is_transactional: bool
    is_control: bool

    def as_row(self) -> tuple[Any, ...]:
        """As `rows_of` has it."""
        numbers = (self.leader_epoch, self.producer_id, self.producer_epoch, self.sequence)
        known = (None if number < 0 else number for number in numbers)
        return (*self[:6], *known, self.is_transactional)


def read_by_kafka(jars: KafkaJars, logs: Sequence[Path], folder: Path) -> list[list[KafkaRecord]]:
    """The records of each log."""
    out = folder / "records.txt"
    run_java_program(jars, "RecordsOracle", "print", str(out), *map(str, logs))
    found: list[list[KafkaRecord]] = [[] for _ in logs]
    with out.open(encoding="ascii") as lines:
        for line in lines:
            number, *fields = line.split()
            found[int(number)].append(_record(fields))
    return found


def _record(fields: Sequence[str]) -> KafkaRecord:
    offset, timestamp, kind, key, value, headers, epoch, producer, producer_epoch, sequence, *flags = fields
    pairs = [pair.split("=") for pair in headers[1:-1].split(";") if pair]
    return KafkaRecord(
        *(int(offset), int(timestamp), kind, _bytes(key), _bytes(value)),
        tuple((bytes.fromhex(key[1:]).decode(), _bytes(value)) for key, value in pairs),
        *(int(epoch), int(producer), int(producer_epoch), int(sequence)),
        *(flag == "true" for flag in flags),
    )


def _bytes(text: str) -> bytes | None:
    return None if text == "-" else bytes.fromhex(text[1:])


_ABORT = b"\x00\x00\x00\x00"


def uncommitted(records: Iterable[KafkaRecord]) -> list[KafkaRecord]:
    """What a consumer with read_uncommitted gets."""
    return [one for one in records if not one.is_control]


def committed(records: Sequence[KafkaRecord]) -> list[KafkaRecord]:
    """What a consumer with read_committed gets, by the markers alone."""
    endings: dict[int, list[tuple[int, bool]]] = {}
    for one in records:
        if one.is_control:
            endings.setdefault(one.producer_id, []).append((one.offset, one.key == _ABORT))
    kept: list[KafkaRecord] = []
    for one in uncommitted(records):
        if one.is_transactional:
            later = [is_abort for offset, is_abort in endings.get(one.producer_id, ()) if offset > one.offset]
            if not later:
                return kept  # the last stable offset
            if later[0]:
                continue
        kept.append(one)
    return kept


_COLUMNS = (
    *("offset", "timestamp", "timestampType", "key", "value", "headers"),
    *("leaderEpoch", "producerId", "producerEpoch", "sequence", "isTransactional"),
)


def rows_of(batches: Iterable[pa.RecordBatch]) -> list[tuple[Any, ...]]:
    """Records that tieredctl read, as `KafkaRecord.as_row` has them."""
    return list(_rows(batches))


def _rows(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[Any, ...]]:
    for batch in batches:
        batch.validate(full=True)
        columns: list[list[Any]] = [batch.column(name).to_pylist() for name in _COLUMNS]
        columns[5] = [tuple((one["key"], one["value"]) for one in headers) for headers in columns[5]]
        yield from zip(*columns, strict=True)
