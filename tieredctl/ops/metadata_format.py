"""`metadata format`: every event as a line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tieredctl.formats.kip_405_text import Kip405Style, kip_405_line
from tieredctl.formats.metadata_text import KafkaText, kafka_line
from tieredctl.kafka.source import RecordChunk
from tieredctl.model.events import EventRecord
from tieredctl.ops.event_stream import EventStream

COLUMNS_FROM = 4_096
"""Records in a chunk from which on lines are made as columns: below, importing Arrow costs more than it saves."""


def kafka_lines(stream: EventStream, text: KafkaText) -> Iterator[bytes | memoryview]:
    """What Kafka's RemoteLogMetadataFormatter prints, in pieces of whole lines."""
    for metadata_partition, chunk in stream.chunks():
        if len(chunk) >= COLUMNS_FROM:
            yield _column_lines(stream, metadata_partition, chunk, text)
        else:
            records = stream.decode(metadata_partition, chunk, range(len(chunk)))
            yield _text(records, lambda record: kafka_line(record, text))


def kip_405_lines(stream: EventStream, style: Kip405Style) -> Iterator[bytes]:
    """What the KIP's formatter would print, in pieces of whole lines."""
    for metadata_partition, chunk in stream.chunks():
        records = stream.decode(metadata_partition, chunk, range(len(chunk)))
        yield _text(records, lambda record: kip_405_line(record, style))


def _text(records: Iterator[EventRecord], line: Callable[[EventRecord], str]) -> bytes:
    return "".join(line(record) + "\n" for record in records).encode("utf-8")


def _column_lines(
    stream: EventStream, metadata_partition: int, chunk: RecordChunk, text: KafkaText
) -> bytes | memoryview:
    import numpy as np
    import pyarrow as pa

    from tieredctl.formats.metadata_columns import decode_columns
    from tieredctl.formats.metadata_text_columns import in_order
    from tieredctl.formats.metadata_text_columns import kafka_lines as group_lines

    offsets, starts, ends = (np.asarray(column, np.int64) for column in (chunk.offsets, chunk.starts, chunk.ends))
    groups, left = decode_columns(np.frombuffer(chunk.buffer, np.uint8), starts, ends)
    lines = [group_lines(metadata_partition, offsets, group, text) for group in groups]
    rows = [group.rows for group in groups]
    row_of_offset = {int(offsets[row]): row for row in left}
    others = list(stream.decode(metadata_partition, chunk, left.tolist()))
    if others:
        lines.append(pa.array([kafka_line(record, text) + "\n" for record in others], pa.string()))
        rows.append(np.array([row_of_offset[record.metadata_offset] for record in others]))
    return in_order(lines, rows) if lines else b""
