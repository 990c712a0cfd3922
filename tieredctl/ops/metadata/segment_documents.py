"""Many segments as the JSON that commands show, by columns: what `segment_document` makes of one."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

from tieredctl.formats.windows import Ints
from tieredctl.model.events import RecordForm, RemoteLogSegmentState
from tieredctl.ops.documents import Document, epochs_document, partition_document
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_AT_ONCE = 1 << 12
_FORMS, _STATES = tuple(RecordForm), tuple(state.name for state in RemoteLogSegmentState)


def segment_documents(metadata: ReplayedMetadata, rows: Ints) -> Iterator[Document]:
    """A document for each of some rows, in their order."""
    partitions = list(map(partition_document, metadata.partitions))
    for first in range(0, len(rows), _AT_ONCE):
        yield from _documents(metadata, partitions, rows[first : first + _AT_ONCE])


def _documents(metadata: ReplayedMetadata, partitions: list[Document], rows: Ints) -> Iterator[Document]:
    segments, begun = metadata.rows.at(rows), metadata.events.contents.starts
    starts = segments.starts
    columns = zip(
        segments.partitions.tolist(),
        segments.segment_ids.texts().to_pylist(),
        begun.start_offsets.values[starts].tolist(),
        begun.end_offsets.values[starts].tolist(),
        begun.max_timestamps.values[starts].tolist(),
        begun.epochs_of(starts),
        begun.sizes.values[starts].tolist(),
        begun.txn_idx_empty.values[starts].tolist(),
        begun.forms.values[starts].tolist(),
        metadata.authors(rows).tolist(),
        metadata.event_timestamps(rows).tolist(),
        segments.states.tolist(),
        metadata.custom_metadata(rows),
        segments.metadata_partitions.tolist(),
        segments.metadata_offsets.tolist(),
        strict=True,
    )
    for number, segment_id, start, end, newest, epochs, size, empty, form, author, time, state, *rest in columns:
        custom, metadata_partition, metadata_offset = rest
        yield {
            **partitions[number],
            "segmentId": segment_id,
            "startOffset": start,
            "endOffset": end,
            "maxTimestampMs": newest,
            "segmentLeaderEpochs": epochs_document(epochs),
            "segmentSizeInBytes": size,
            "txnIdxEmpty": empty,
            "leaderEpoch" if _FORMS[form] is RecordForm.KIP_405 else "brokerId": author,
            "eventTimestampMs": time,
            "state": _STATES[state],
            "customMetadata": None if custom is None else b64encode(custom).decode("ascii"),
            "metadataPartition": metadata_partition,
            "metadataOffset": metadata_offset,
        }
