"""A metadata log gives the same records, text and tables whether it is read one event at a time or as columns."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import examples
from tests.formats.test_event_and_batch_round_trips import partition_deletes, segments, snapshots, updates
from tests.metadata_logs import metadata_batches, started, write_log
from tieredctl.formats.compression import Codec
from tieredctl.formats.metadata_records import encode_event
from tieredctl.formats.metadata_text import KafkaText
from tieredctl.formats.record_batches import Attributes, Record, encode_batch
from tieredctl.formats.record_chunks import MetadataRecord
from tieredctl.kafka.log_directory import LogDirectories
from tieredctl.model.findings import Finding
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.format import kafka_lines
from tieredctl.ops.metadata.table import record_table

TEXTS = (KafkaText(), KafkaText(txn_idx_empty=False), KafkaText(custom_metadata=False, txn_idx_empty=False))
END_TRANSACTION_MARKER = Record(0, 0, struct.pack(">hh", 0, 1), struct.pack(">hi", 0, 0))


@contextmanager
def paths(columns_from: int) -> Iterator[None]:
    """Makes every reader take the columns from this number of bytes, or records, on."""
    with (
        patch("tieredctl.formats.log_blocks.COLUMNS_FROM", columns_from),
        patch("tieredctl.ops.metadata.format.COLUMNS_FROM", columns_from),
        patch("tieredctl.ops.metadata.table.COLUMNS_FROM", columns_from),
    ):
        yield


def damaged(value: bytes, seed: int) -> bytes:
    """A value with one byte altered, cut off or put in."""
    source = random.Random(seed)
    position = source.randrange(len(value))
    byte = bytes((source.choice([0, 1, 2, 0x7F, 0x80, 0xFF, source.randrange(256)]),))
    return value[:position] + source.choice([byte, b"", byte + value[position : position + 1]]) + value[position + 1 :]


EVENTS = segments() | updates() | partition_deletes() | snapshots()
VALUES = st.one_of(
    EVENTS.map(encode_event),
    EVENTS.map(encode_event),
    st.builds(damaged, EVENTS.map(encode_event), st.integers(0, 2**32)),
    st.binary(max_size=40),
    st.none(),
)


@st.composite
def logs(draw: st.DrawFn) -> list[bytes]:
    """Batches of one and more records, compressed and not, with gaps between them, control batches among them."""
    batches: list[bytes] = []
    offset = draw(st.integers(0, 2**40))
    for _ in range(draw(st.integers(1, 6))):
        offset += draw(st.sampled_from([0, 0, 1, 7]))
        if draw(st.integers(0, 9)) == 0:
            marker = END_TRANSACTION_MARKER._replace(offset=offset)
            batches.append(encode_batch([marker], attributes=Attributes.CONTROL | Attributes.TRANSACTIONAL))
            offset += 1
            continue
        timestamps = st.integers(0, 2**42)
        records = [
            Record(offset + index, draw(timestamps), None, value)
            for index, value in enumerate(draw(st.lists(VALUES, min_size=1, max_size=5)))
        ]
        attributes = draw(st.sampled_from([0, 0, Attributes.LOG_APPEND_TIME]))
        batches.append(encode_batch(records, codec=draw(st.sampled_from(Codec)), attributes=attributes))
        offset += len(records)
    return batches


@dataclass(frozen=True)
class Read:
    """All that a log gives."""

    records: list[MetadataRecord]
    texts: list[bytes]
    rows: list[dict[str, object]]
    findings: list[list[Finding]]


def read(log_dir: Path) -> Read:
    source = LogDirectories([log_dir])
    records = [record for chunk in source.chunks(0) for record in chunk.records()]
    texts, findings = [], []
    for text in TEXTS:
        stream = EventStream(source)
        texts.append(b"".join(kafka_lines(stream, text)))
        findings.append(sorted(stream.findings, key=lambda finding: finding.subject))
    stream = EventStream(source)
    rows = [row for partition, chunk in stream.chunks() for row in record_table(stream, partition, chunk).to_pylist()]
    return Read(records, texts, rows, [*findings, sorted(stream.findings, key=lambda finding: finding.subject)])


def assert_read_the_same(log_dir: Path) -> Read:
    """One event at a time and as columns."""
    with paths(1 << 60):
        expected = read(log_dir)
    with paths(0):
        found = read(log_dir)
    assert found == expected
    return found


@settings(max_examples=examples(150))
@given(logs())
def test_the_same_records_text_and_tables(batches: list[bytes]) -> None:
    with TemporaryDirectory() as folder:
        write_log(Path(folder), 0, batches)
        assert_read_the_same(Path(folder))


@pytest.mark.parametrize("codec", Codec, ids=lambda codec: codec.name)
def test_real_events_in_every_compression(captures: Path, tmp_path: Path, codec: Codec) -> None:
    source = LogDirectories([captures / "kafka-4.3.1" / "data"])
    values = [record.value for chunk in source.chunks(0) for record in chunk.records()]
    batches = metadata_batches(values, records_per_batch=7, codec=codec)
    plain = metadata_batches(values, first_offset=len(values), records_per_batch=3)
    write_log(tmp_path, 0, [*batches, *plain, *metadata_batches(values, first_offset=2 * len(values))])

    assert not assert_read_the_same(tmp_path).findings[0]


def altered(alter: Callable[[bytes], bytes]) -> bytes:
    return alter(encode_event(started(1, 0, 9, custom_metadata=b"custom")))


AT_THE_EDGE: dict[str, bytes | None] = {
    "length of six bytes": altered(lambda v: v[:3] + b"\x82\x80\x80\x80\x80\x00" + v[4:]),
    "length of two bytes where one would do": altered(lambda v: v[:3] + b"\x82\x00" + v[4:]),
    "frame version of two bytes": altered(lambda v: b"\x81\x00" + v[1:]),
    "length beyond 32 bits": altered(lambda v: v[:3] + b"\x82\x80\x80\x80\x10" + v[4:]),
    "known tagged field with its default": altered(lambda v: v[:-1] + b"\x01\x00\x01\x00"),
    "boolean that is neither": altered(lambda v: v[:-1] + b"\x01\x00\x01\x02"),
    "tag of two bytes": altered(lambda v: v[:-1] + b"\x01\x80\x00\x01\x01"),
    "unknown tagged field": altered(lambda v: v[:-1] + b"\x01\x05\x00"),
    "name that is not text": altered(lambda v: v[:4] + b"\xff" + v[5:]),
    "name that is null": altered(lambda v: v[:3] + b"\x00" + v[5:]),
    "name that is empty": altered(lambda v: v[:3] + b"\x01" + v[5:]),
    "a byte too many": altered(lambda v: v + b"\x00"),
    "a byte too few": altered(lambda v: v[:-1]),
    "unknown state": altered(lambda v: v[:-2] + b"\x04\x00"),
    "no bytes": b"",
    "tombstone": None,
}


@pytest.mark.parametrize("value", AT_THE_EDGE.values(), ids=AT_THE_EDGE)
def test_values_at_the_edge_of_the_format(tmp_path: Path, value: bytes | None) -> None:
    write_log(tmp_path, 0, metadata_batches([started(2, 0, 5), value, started(3, 6, 9)]))

    assert_read_the_same(tmp_path)
