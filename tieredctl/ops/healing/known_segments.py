"""Segments by one reading of the metadata: those whose objects are promised."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, field

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.formats.uuid_columns import NOT_FOUND, UuidLookup, first_of_each, uuids_of_texts
from tieredctl.formats.windows import Ints
from tieredctl.model.events import RemoteLogSegmentMetadata, RemoteLogSegmentState
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.metadata.completeness import demand_whole, demand_whole_since_it_begins
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.metadata.state import replayed, segments
from tieredctl.rlmm.cache import RemoteLogMetadataCache
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata

_NOT_PROMISED = (ErrorCode.UNKNOWN_SEGMENT, ErrorCode.USAGE)
_CHECK = "See what else is known of it with `tieredctl verify --segment-id …`."


@dataclass(frozen=True, slots=True)
class KnownSegmentOfPartition:
    """A segment in COPY_SEGMENT_FINISHED, and all that the metadata knows of its partition."""

    metadata: RemoteLogSegmentMetadata
    cache: RemoteLogMetadataCache


@dataclass(slots=True)
class SegmentsOnce:
    """The segments after one reading of the metadata, by which any number of them is asked for."""

    findings: Sequence[Finding]
    """About the metadata. A lost beginning forbids nothing here: the events of a segment that is known are all there,
    and its indexes are made of its own log."""
    _state: ReplayedMetadata
    _caches: dict[TopicIdPartition, RemoteLogMetadataCache] = field(default_factory=dict)
    _rows: tuple[Ints, UuidLookup] | None = None
    """The first row, by partition, of each id, and what finds it; None until one is asked for."""

    @classmethod
    def of(cls, stream: EventStream) -> SegmentsOnce:
        """Reads a stream to its end. Raises TieredctlError `metadata-incomplete` where some of it cannot be read."""
        state = replayed(stream)
        demand_whole_since_it_begins(stream.findings)
        return cls(stream.findings, state)

    def ids(self, selection: Selection) -> list[str]:
        """The segments in COPY_SEGMENT_FINISHED that are selected, in the order in which one's producers are needed for
        the next: by partition, then offset. Raises TieredctlError as `Selection.demand_known` does."""
        if not any(map(selection.has, self._state.partitions)):
            demand_whole(self.findings)
        selection.demand_known(self._state.partitions, "The metadata has no event of")
        rows = segments(self._state, selection, RemoteLogSegmentState.COPY_SEGMENT_FINISHED)
        return [segment.metadata.segment_id for _, segment in self._state.known(rows)]

    def in_order(self, segment_ids: Collection[str]) -> list[str]:
        """These segments, once each, in that order; then those that are not among the segments in it."""
        wanted = {*segment_ids}
        ordered = [one for one in self.ids(Selection()) if one in wanted]
        return [*ordered, *sorted(wanted - {*ordered})]

    def finished(self, segment_id: str) -> KnownSegmentOfPartition:
        """A segment whose objects are promised. Raises TieredctlError: `unknown-segment`; `metadata-incomplete` where
        it may be in what was lost, and where its log's size is unknown; `usage` where it is still copied, or being
        deleted."""
        row = next(self._state.known(self._row_of(segment_id)), None)
        if row is None:
            demand_whole(self.findings)
            message = f"The metadata has no segment {segment_id}, or it was deleted."
            raise TieredctlError(ErrorCode.UNKNOWN_SEGMENT, message)
        partition, segment = row
        if segment.metadata.state is not RemoteLogSegmentState.COPY_SEGMENT_FINISHED:
            message = f"Segment {segment_id} is in {segment.metadata.state.name}: its objects are not promised."
            hint = "Only indexes of segments in COPY_SEGMENT_FINISHED are rebuilt."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if segment.metadata.known_size is None:
            message = f"The metadata gives segment {segment_id} {segment.metadata.segment_size_in_bytes} bytes"
            why = "whether its log is whole is unknown, and nothing is rebuilt from it"
            raise TieredctlError(ErrorCode.METADATA_INCOMPLETE, f"{message}: {why}.", hint=_CHECK)
        if partition not in self._caches:
            self._caches = {partition: self._state.caches[partition]}
        return KnownSegmentOfPartition(segment.metadata, self._caches[partition])

    def _row_of(self, segment_id: str) -> Ints:
        """The row of the segment, as an array; without any where there is none."""
        if self._rows is None:
            rows = self._state.order
            places, lookup = first_of_each(self._state.rows.segment_ids.at(rows))
            self._rows = rows[places], lookup
        rows, lookup = self._rows
        found = lookup.rows_of(uuids_of_texts([segment_id])[0])
        named: Ints = rows[found[found != NOT_FOUND]]
        return named

    def why_not_promised(self, segment_id: str) -> TieredctlError | None:
        """What `finished` raises of a segment that was deleted, or is being deleted; None while its objects are
        promised. Raises TieredctlError where that is not known."""
        try:
            self.finished(segment_id)
        except TieredctlError as error:
            if error.code not in _NOT_PROMISED:
                raise
            return error
        return None
