"""`explain`: opens and reads in the one safe order, and looks again where what a record lacks may be movement."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from tieredctl.model.findings import Finding
from tieredctl.ops.documents import Document
from tieredctl.ops.explanation.explain import segment_objects
from tieredctl.ops.explanation.explanation import Explanation, Place
from tieredctl.ops.guards.second_look import look_twice
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.wiring.places import MetadataPlace, StorePlace


class Explained(NamedTuple):
    """A record's place, by what was seen last."""

    found: Explanation | None
    """None where no record is of the given time or later."""
    objects: Sequence[Document] | None
    """Its segment's; None without a store or a segment."""
    findings: Sequence[Finding]
    stream: EventStream
    """The metadata, open as long as this is."""


def _is_nowhere(reading: Explained) -> bool:
    """By a leader that was asked before the metadata: retention may have moved the log start since."""
    return reading.found is not None and reading.found.place is Place.LOST


@contextmanager
def explained(
    metadata: MetadataPlace, store: StorePlace | None, explain: Callable[[EventStream], Explanation | None]
) -> Iterator[Explained]:
    """What `explain` says by the metadata, and the objects of the segment that it names. A leader is asked before the
    metadata is read, and the store after it: what seems to be nowhere, and objects that seem to be missing, are looked
    for again from the beginning. Raises TieredctlError as the places and `explain` do."""
    remote = None if store is None else store.open()
    with ExitStack() as stack:

        def look() -> Explained:
            stream = stack.enter_context(metadata.open())
            explanation = explain(stream)
            segment = None if explanation is None or explanation.segment is None else explanation.segment.metadata
            objects = None if remote is None or segment is None else segment_objects(*remote, segment)
            items, findings = (None, ()) if objects is None else objects
            return Explained(explanation, items, findings, stream)

        if metadata.export is not None:  # nothing moves in it, and it may be a pipe
            yield look()
            return
        reading, findings = look_twice(look, lambda reading: reading.findings, besides=_is_nowhere)
        yield reading._replace(findings=findings)
