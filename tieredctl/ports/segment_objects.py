"""What readers of whole segments need of a layout."""

from __future__ import annotations

from typing import Protocol

from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ports.layout import Part, SegmentReader
from tieredctl.ports.object_store import ObjectStore


class SegmentObjects(Protocol):
    """A layout, or what adds segments from elsewhere to one, such as those on a broker's disk."""

    @property
    def name(self) -> str: ...

    def promised_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]: ...

    def optional_objects(self, segment: RemoteLogSegmentMetadata, /) -> dict[Part, str]: ...

    def open_segment(self, store: ObjectStore, segment: RemoteLogSegmentMetadata, /) -> SegmentReader: ...
