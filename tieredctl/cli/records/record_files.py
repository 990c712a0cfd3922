"""`--output-dir`: records as files in a folder, which a later run resumes."""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tieredctl.cli.output import Listing, OutputFormat, render
from tieredctl.cli.records.binary_output import WRITERS, Forward, RecordOutput
from tieredctl.cli.records.record_items import shown_items
from tieredctl.cli.records.shown_bytes import ShownBytes
from tieredctl.records.request import Moment, RecordPlace

if TYPE_CHECKING:
    import pyarrow as pa

    from tieredctl.ops.metadata.as_of import AsOf
    from tieredctl.records.part_folder import ByteSink
    from tieredctl.records.topic_reading import TopicReading


@dataclass(frozen=True, slots=True)
class RecordFiles:
    """What was asked for that decides what the files have, besides the reading's own."""

    folder: Path
    output: RecordOutput
    shown: ShownBytes
    schema: str | None
    """The schemas that decode Avro, as one text."""
    where: str
    grep: str | None
    as_of: AsOf | None
    with_local: bool

    def write(self, reading: TopicReading) -> int:
        """Writes what the folder lacks; gives how many files it has then. Raises TieredctlError as `write_parts` and
        `opened_part_folder` do."""
        from tieredctl.records.part_folder import opened_part_folder
        from tieredctl.records.partition_parts import write_parts

        with opened_part_folder(self.folder, self._selection(reading)) as folder:
            write_parts(reading, folder, self.output.value, WRITERS.get(self.output, self._write_text))
            return len(folder.parts)

    def _selection(self, reading: TopicReading) -> dict[str, Any]:
        request = reading.request
        return {
            "store": reading.store.url,
            "layout": reading.layout.name,
            "asOf": _point_as_json(self.as_of),
            "records": self.where,
            "topicId": reading.partitions[0].partition.topic_id,
            "from": _as_json(request.start),
            "to": _as_json(request.end),
            "isolation": request.isolation.value,
            "damage": request.on_damage.value,
            "maxRecords": reading.most,
            "grep": self.grep,
            "withLocal": self.with_local,
            "output": self.output.value,
            "key": self.shown.key,
            "value": self.shown.value,
            "schema": self.schema,
        }

    def _write_text(self, schema: pa.Schema, batches: Iterable[pa.RecordBatch], out: ByteSink) -> int:
        before = self.shown.undecoded
        items = shown_items(batches, self.shown)
        text = io.TextIOWrapper(io.BufferedWriter(Forward(out)), "utf-8", newline="\n")
        render(Listing("RemoteRecords", {}, items, (), {}, schema.names), OutputFormat(self.output.value), text)
        text.flush()
        return self.shown.undecoded - before


def _as_json(place: RecordPlace) -> object:
    return {"timestamp": place.timestamp_ms} if isinstance(place, Moment) else place


def _point_as_json(point: AsOf | None) -> object:
    if point is None or point.offsets is None:
        return None if point is None else {"timestamp": point.timestamp_ms}
    return {str(number): offset for number, offset in point.offsets.items()}
