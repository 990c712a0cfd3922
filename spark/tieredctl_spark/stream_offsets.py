"""Offsets of streams: of each partition, the offset that is read next."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OFFSETS = "nextOffsets"


def offset_document(topic: Mapping[str, str | None], offsets: Mapping[int, int]) -> dict[str, Any]:
    """An offset as Spark keeps it in a checkpoint; `topic` is the field that says of which topic it is."""
    return {**topic, _OFFSETS: {str(number): offset for number, offset in sorted(offsets.items())}}


def next_offsets(document: Mapping[str, Any]) -> dict[int, int]:
    """The offsets of what `offset_document` made, by the number of the partition."""
    return {int(number): offset for number, offset in document[_OFFSETS].items()}


def admitted(begins: Mapping[int, int], ends: Mapping[int, int], most: int | None) -> dict[int, int]:
    """How far each partition may be read with so many records in all: an equal share for each, and what one
    does not need for the others."""
    backlogs = {number: max(ends.get(number, begin) - begin, 0) for number, begin in begins.items()}
    if most is None:
        return {number: begin + backlogs[number] for number, begin in begins.items()}
    waiting = sorted((number for number, backlog in backlogs.items() if backlog), key=backlogs.__getitem__)
    served = waiting[-most:]
    reached = dict(begins)
    for place, number in enumerate(served):
        taken = min(backlogs[number], most // (len(served) - place))
        reached[number] += taken
        most -= taken
    return reached
