"""Whether the log of a metadata partition lost events that a backup set has, and grew again: offsets alone do not tell.
Brokers that lost power, or elected a leader that had fallen behind, lose the end of a log."""

from __future__ import annotations

from collections.abc import Mapping
from io import BytesIO

from tieredctl.errors import TieredctlError
from tieredctl.formats.metadata_export import RECORD_COLUMNS
from tieredctl.ops.backup.manifests import EVENTS_FILE, Manifest
from tieredctl.ops.backup.sets import NOT_READABLE, ClusterSets
from tieredctl.ports.metadata_source import MetadataSource
from tieredctl.ports.object_store import WritableObjectStore

_Record = tuple[int, int, bytes | None]
"""Offset, time in ms, value."""


def has_regrown(source: MetadataSource, sets: ClusterSets[WritableObjectStore], before: Manifest) -> bool:
    """Whether another record is now at the offset of the last one that a set, or the last before it that has any, added
    of some metadata partition; False too where those are damaged, or nothing is at that offset any more. Raises
    TieredctlError as the store and the source do."""
    return any(_is_other(source, number, record) for number, record in _last_records(sets, before).items())


def _last_records(sets: ClusterSets[WritableObjectStore], before: Manifest) -> Mapping[int, _Record]:
    """By metadata partition, the last that was added."""
    import pyarrow.parquet as pq

    try:
        while before.number > before.base and not any(
            one.end_offset > one.start_offset for one in before.events.values()
        ):
            before = sets.read(before.number - 1).manifest
        data = sets.read_file(before, EVENTS_FILE)
    except TieredctlError as error:
        if error.code not in NOT_READABLE:
            raise
        return {}
    last: dict[int, _Record] = {}
    for batch in pq.ParquetFile(BytesIO(data)).iter_batches(columns=list(RECORD_COLUMNS)):
        numbers = batch.column(0).to_pylist()
        rows = {number: row for row, number in enumerate(numbers)}  # of each partition the last in this batch
        for number, row in rows.items():
            last[number] = tuple(batch.column(name)[row].as_py() for name in RECORD_COLUMNS[1:])
    return last


def _is_other(source: MetadataSource, number: int, record: _Record) -> bool:
    offset = record[0]
    for chunk in source.chunks(number, offset):
        for now in chunk.records():
            if now[0] >= offset:
                return now[0] == offset and now[:3] != record
    return False
