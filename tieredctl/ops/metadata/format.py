"""`metadata format`: every event as a line of text."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.kip_405_text import Kip405Property, Kip405Style, kip_405_line
from tieredctl.formats.metadata_text import KafkaText, kafka_line
from tieredctl.formats.record_chunks import RecordChunk
from tieredctl.ops.metadata.event_stream import EventStream

COLUMNS_FROM = 4_096
"""Records in a chunk from which on lines are made as columns: below, importing Arrow costs more than it saves."""


def kafka_text(kafka_version: str) -> KafkaText:
    """The text of a release, such as 3.7 or 4.3.1. Raises TieredctlError unless it is a release with such a text."""
    parts = kafka_version.split(".")
    if len(parts) < 2 or not all(part.isascii() and part.isdigit() for part in parts):
        hint = "Write it as 3.9 or 4.3.1."
        raise TieredctlError(ErrorCode.USAGE, f"{kafka_version!r} is not a Kafka version.", hint=hint)
    release = (int(parts[0]), int(parts[1]))
    if release < (3, 0):
        raise TieredctlError(ErrorCode.USAGE, f"Kafka {kafka_version} has no tiered storage; 3.0 was the first.")
    return KafkaText(custom_metadata=release >= (3, 6), txn_idx_empty=release >= (4, 0))


def kip_405_style(properties: Sequence[str]) -> Kip405Style:
    """The style with those properties on that are given as NAME=true. Raises TieredctlError for unknown ones."""
    named = {kind.value: kind for kind in Kip405Property}
    on = set()
    for text in properties:
        name, _, value = text.partition("=")
        if name not in named or value not in ("true", "false"):
            hint = f"Properties are {', '.join(named)}; each is =true or =false."
            raise TieredctlError(ErrorCode.USAGE, f"{text!r} is not a property of the formatter.", hint=hint)
        if value == "true":
            on.add(named[name])
    return Kip405Style(frozenset(on))


def kafka_lines(
    stream: EventStream, text: KafkaText, escape: Callable[[str], str] | None = None
) -> Iterator[bytes | memoryview]:
    """What Kafka's RemoteLogMetadataFormatter prints, in pieces of whole lines; for a terminal each line is escaped."""
    for metadata_partition, chunk in stream.chunks():
        if len(chunk) >= COLUMNS_FROM and escape is None:
            yield _column_lines(stream, metadata_partition, chunk, text)
        else:
            records = stream.decode(metadata_partition, chunk, range(len(chunk)))
            yield _text((kafka_line(record, text) for record in records), escape)


def kip_405_lines(
    stream: EventStream, style: Kip405Style, escape: Callable[[str], str] | None = None
) -> Iterator[bytes]:
    """What the KIP's formatter would print, in pieces of whole lines; for a terminal each line is escaped."""
    for metadata_partition, chunk in stream.chunks():
        records = stream.decode(metadata_partition, chunk, range(len(chunk)))
        yield _text((kip_405_line(record, style) for record in records), escape)


def _text(lines: Iterator[str], escape: Callable[[str], str] | None) -> bytes:
    return "".join(line + "\n" for line in (lines if escape is None else map(escape, lines))).encode("utf-8")


def _column_lines(
    stream: EventStream, metadata_partition: int, chunk: RecordChunk, text: KafkaText
) -> bytes | memoryview:
    import numpy as np

    from tieredctl.formats.arrow_columns import text_array
    from tieredctl.formats.metadata_text_columns import in_order
    from tieredctl.formats.metadata_text_columns import kafka_lines as group_lines

    offsets, starts, ends = (np.asarray(column, np.int64) for column in (chunk.offsets, chunk.starts, chunk.ends))
    groups, left = stream.decode_columns(metadata_partition, np.frombuffer(chunk.buffer, np.uint8), starts, ends)
    lines = [group_lines(metadata_partition, offsets, group, text) for group in groups]
    rows = [group.rows for group in groups]
    row_of_offset = {int(offsets[row]): row for row in left}
    others = list(stream.decode(metadata_partition, chunk, left.tolist()))
    if others:
        lines.append(text_array([kafka_line(record, text) + "\n" for record in others]))
        rows.append(np.array([row_of_offset[record.metadata_offset] for record in others]))
    return in_order(lines, rows) if lines else b""
