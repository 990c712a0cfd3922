"""Many segments as the JSON that commands show, by columns: what `segment_document` makes of one."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator

import numpy as np

from tieredctl.formats.document_columns import (
    Choices,
    Chosen,
    DocumentColumns,
    Ids,
    KnownNumbers,
    Listed,
    Numbers,
    PlainTexts,
)
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RecordForm, RemoteLogSegmentState
from tieredctl.ops.documents import Document
from tieredctl.rlmm.event_contents import Rows, StartedCopies
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_AT_ONCE = 1 << 12
_AUTHORS = Choices(["leaderEpoch" if form is RecordForm.KIP_405 else "brokerId" for form in RecordForm])
_STATES = Choices([state.name for state in RemoteLogSegmentState])
_FLAGS = Choices([False, True])


class SegmentDocuments:
    """A document for each of some rows, in their order."""

    def __init__(self, metadata: ReplayedMetadata, rows: Ints) -> None:
        partitions = metadata.partitions
        self._metadata = metadata
        self._rows = rows
        self._topics = Choices([one.topic for one in partitions])
        self._topic_ids = Choices([one.topic_id for one in partitions])
        self._numbers = np.array([one.partition for one in partitions], np.int32)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Document]:
        for some in self._blocks():
            yield from some.documents()

    def json_lines(self) -> Iterator[str]:
        """What `json.dumps` makes of each, a line each, in pieces of whole lines."""
        for some in self._blocks():
            yield from some.json_lines()

    def _blocks(self) -> Iterator[DocumentColumns]:
        for first in range(0, len(self._rows), _AT_ONCE):
            yield self._documents(self._rows[first : first + _AT_ONCE])

    def _documents(self, rows: Ints) -> DocumentColumns:
        metadata, segments = self._metadata, self._metadata.rows.at(rows)
        begun, starts = metadata.events.contents.starts, segments.starts
        customs = metadata.custom_metadata(rows)
        return DocumentColumns(
            len(rows),
            [
                ("topic", Chosen(segments.partitions, self._topics)),
                ("topicId", Chosen(segments.partitions, self._topic_ids)),
                ("partition", Numbers(self._numbers[segments.partitions])),
                ("segmentId", Ids(segments.segment_ids)),
                ("startOffset", Numbers(begun.start_offsets.values[starts])),
                ("endOffset", Numbers(begun.end_offsets.values[starts])),
                ("maxTimestampMs", Numbers(begun.max_timestamps.values[starts])),
                ("segmentLeaderEpochs", _epochs(begun, starts)),
                ("segmentSizeInBytes", KnownNumbers(begun.sizes.values[starts])),
                ("txnIdxEmpty", Chosen(begun.txn_idx_empty.values[starts], _FLAGS)),
                (Chosen(begun.forms.values[starts], _AUTHORS), Numbers(metadata.authors(rows))),
                ("eventTimestampMs", Numbers(metadata.event_timestamps(rows))),
                ("state", Chosen(segments.states, _STATES)),
                ("customMetadata", PlainTexts([None if one is None else b64encode(one).decode() for one in customs])),
                ("metadataPartition", Numbers(segments.metadata_partitions)),
                ("metadataOffset", Numbers(segments.metadata_offsets)),
            ],
        )


def _epochs(begun: StartedCopies, starts: Rows) -> Listed:
    epochs = begun.epochs_of(starts)
    numbers, offsets = epochs.elements["LeaderEpoch"], epochs.elements["Offset"]
    elements = DocumentColumns(len(numbers), [("leaderEpoch", Numbers(numbers)), ("offset", Numbers(offsets))])
    return Listed(epochs.bounds, elements)
