"""Is this the store of the metadata's cluster? One that has nothing of it is another store, or is read with the wrong
prefix or layout; what it lacks is not lost."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.remote.inventory import Inventory
from tieredctl.ops.verification.options import RemovedSegments
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import CONCERN_EVERY_OBJECT, ObjectStore

_ASKED_BY_NAME = 16
"""How many segments' objects are asked for before a store is called another cluster's: a listing may be older than
they are, and custom metadata may put them under keys that explain nothing."""


@dataclass(slots=True)
class Overlap:
    """How many objects were listed: all, those that the layout explains, and those of topics in the metadata."""

    store: ObjectStore
    layout: Layout
    listed: int = 0
    explained: int = 0
    of_known_topics: int = 0

    def demand(
        self,
        promised: Iterable[RemoteLogSegmentMetadata],
        known_topic_ids: Container[str],
        selection: Selection,
        removed: RemovedSegments,
    ) -> None:
        """Raises TieredctlError `no-overlap` where segments are promised and the store has nothing of their cluster.

        An empty store may have been emptied, or the URL may be mistyped: the error names both.
        """
        if self.of_known_topics or self.layout.form_outside is not None:
            return
        asked = list(islice(promised, _ASKED_BY_NAME))
        if not asked or any(self._has(segment) or self._had(segment, removed) for segment in asked):
            return
        if selection != Selection() and self._looks_right(known_topic_ids):
            return
        raise self._error()

    def _has(self, segment: RemoteLogSegmentMetadata) -> bool:
        try:
            return any(self.store.head(key) for key in self.layout.promised_objects(segment).values())
        except TieredctlError as error:
            if error.code in CONCERN_EVERY_OBJECT:
                raise
            return True  # that it is unknown is reported for each object

    def _had(self, segment: RemoteLogSegmentMetadata, removed: RemovedSegments) -> bool:
        """Whether tieredctl removed one of its objects from here: then this is the store."""
        return removed.plan_of_any(self.layout.promised_objects(segment).values()) is not None

    def _looks_right(self, known_topic_ids: Container[str]) -> bool:
        """Whether the rest of the store, outside the selection, has anything of the metadata's topics."""
        self.listed = self.explained = 0
        for listed in Inventory(self.store, self.layout, Selection()).objects():
            self.listed += 1
            if listed.explained:
                self.explained += 1
                if listed.explained.topic_id in known_topic_ids:
                    return True
            elif self.layout.other_form(listed.stored.key) is not None:
                return True
        return False

    def _error(self) -> TieredctlError:
        url = self.store.url
        if not self.listed:
            return promised_elsewhere(url)
        if not self.explained:
            message = f"No object in {url} has layout {self.layout.name}, and none of the promised ones is there."
        else:
            message = f"{url} has no objects of the topics in the metadata: they belong to different clusters."
        return TieredctlError(ErrorCode.NO_OVERLAP, message)


def promised_elsewhere(url: str) -> TieredctlError:
    """What is to be said of an empty store."""
    message = (
        f"{url} is empty, but the metadata promises segments: it is another bucket or prefix, or everything in it "
    )
    return TieredctlError(ErrorCode.NO_OVERLAP, f"{message}was deleted.")
