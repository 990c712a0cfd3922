"""The copy of Kafka's metadata in a segment's manifest, which the plugin writes and never reads back."""

from __future__ import annotations

import re

from tieredctl.errors import DecodeError
from tieredctl.ports.layout import Part, RecordedMetadata, SegmentIdentity
from tieredctl.ports.object_store import ObjectStore
from tieredctl_aiven.json_fields import GREATEST_INT, JsonFields
from tieredctl_aiven.manifest import LARGEST_MANIFEST, read_manifest

_GREATEST_LONG = (1 << 63) - 1
_NO_TIMESTAMP = -1
_EPOCH = re.compile(r"0|[1-9][0-9]{0,9}")
_TXN_IDX_EMPTY = "txnIdxEmpty"


def read_recorded_metadata(store: ObjectStore, key: str, segment: SegmentIdentity) -> RecordedMetadata:
    """What the manifest under a key records of a segment, without topic and topic id, which the key has.

    Raises TieredctlError as the store does; DecodeError for what is not a manifest, or is another segment's.
    """
    data = store.read(key, 0, LARGEST_MANIFEST + 1)
    manifest = read_manifest(data)
    fields = JsonFields.parse(data, "manifest").fields("remoteLogSegmentMetadata")
    if fields.fields("remoteLogSegmentId").string("id") != segment.segment_id:
        raise fields.error("remoteLogSegmentId", "is another segment's")
    start = fields.number("startOffset", greatest=_GREATEST_LONG)
    if start != segment.start_offset:
        raise fields.error("startOffset", f"is {start} under a key of {segment.start_offset}")
    end = fields.number("endOffset", least=start, greatest=_GREATEST_LONG)
    return RecordedMetadata(
        end_offset=end,
        max_timestamp_ms=fields.number("maxTimestampMs", least=_NO_TIMESTAMP, greatest=_GREATEST_LONG),
        segment_leader_epochs=_leader_epochs(fields.fields("segmentLeaderEpochs"), start, end),
        segment_size_in_bytes=manifest.chunks.file_size,
        txn_idx_empty=fields.flag(_TXN_IDX_EMPTY) if fields.has(_TXN_IDX_EMPTY) else None,
        stored_sizes={Part.LOG: manifest.chunks.stored_size, Part.INDEXES: manifest.indexes_size},
    )


def _leader_epochs(fields: JsonFields, start: int, end: int) -> tuple[tuple[int, int], ...]:
    """The epochs of the offsets `start` to `end` (inclusive): the first is cut to `start`, and each later one begins
    after the one before (LeaderEpochFileCache.epochEntriesInRange)."""
    for name in fields.values:
        if _EPOCH.fullmatch(name) is None or int(name) > GREATEST_INT:
            raise fields.error(name, "is not a leader epoch")
    epochs: list[tuple[int, int]] = []
    for epoch in sorted(map(int, fields.values)):
        least, greatest = (epochs[-1][1] + 1, end) if epochs else (start, start)
        epochs.append((epoch, fields.number(str(epoch), least, greatest)))
    if not epochs:
        raise DecodeError(f"{fields.where} has no epoch", 0)
    return tuple(epochs)
