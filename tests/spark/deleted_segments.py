"""Segments of a cluster that brokers deleted: whose objects, put back, are orphans."""

from __future__ import annotations

from tieredctl.model.events import (
    RemoteLogSegmentMetadata,
    RemoteLogSegmentMetadataUpdate,
    RemoteLogSegmentState,
)
from tieredctl.wiring.places import MetadataPlace


def deleted_segments(place: MetadataPlace) -> list[RemoteLogSegmentMetadata]:
    """Their first events, in the order in which they are read."""
    with place.open() as stream:
        events = [record.event for record in stream.records()]
    gone = {
        one.segment_id
        for one in events
        if isinstance(one, RemoteLogSegmentMetadataUpdate)
        and one.state is RemoteLogSegmentState.DELETE_SEGMENT_FINISHED
    }
    return [one for one in events if isinstance(one, RemoteLogSegmentMetadata) and one.segment_id in gone]
