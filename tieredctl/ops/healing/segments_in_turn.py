"""Writes objects of one segment after another, and looks at the end whether the metadata still promises these."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Protocol, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.events import RemoteLogSegmentMetadata
from tieredctl.ops.change import Outcome, stopped_twice
from tieredctl.ops.healing.object_writing import FreshSegments
from tieredctl.process.interruption import cleanup_section

OF_ONE_SEGMENT = (ErrorCode.WORLD_CHANGED, ErrorCode.UNKNOWN_SEGMENT, ErrorCode.USAGE)
"""Errors after which the next segment may be written all the same."""


class PlannedSegment(Protocol):
    """The plan for one."""

    @property
    def metadata(self) -> RemoteLogSegmentMetadata:
        """The segment's metadata as of then."""
        ...


class WrittenSegment(Protocol):
    """What became of a plan so far."""

    @property
    def plan(self) -> PlannedSegment:
        """That plan."""
        ...

    @property
    def tried(self) -> Sequence[str]:
        """The keys of what was written, or may have been."""
        ...


_Written = TypeVar("_Written", bound=WrittenSegment)


def write_in_turn(
    segments: Sequence[_Written],
    write: Callable[[_Written], None],
    tell: Callable[[_Written], None],
    fresh: FreshSegments,
    outcome: Outcome,
) -> Collection[str]:
    """Calls `write` with each, then `tell`. A segment that changed meanwhile is left alone. Whatever stops it, else the
    first such change, is in the outcome. Returns the ids of those written to that the metadata of now still promises.

    Raises KeyboardInterrupt after an interruption, or TieredctlError `interrupted` with what the closing look found.
    """
    try:
        _write_each(segments, write, tell, outcome)
        promised, outcome.stopped = _closing_look(fresh, _tried(segments), outcome.stopped)
    except KeyboardInterrupt:
        with cleanup_section():
            _, found = _closing_look(fresh, _tried(segments), None)
        if found is not None:
            raise TieredctlError(ErrorCode.INTERRUPTED, f"Interrupted. {found.message}", hint=found.hint) from None
        raise
    return promised


def _write_each(
    segments: Sequence[_Written],
    write: Callable[[_Written], None],
    tell: Callable[[_Written], None],
    outcome: Outcome,
) -> None:
    for segment in segments:
        try:
            write(segment)
        except TieredctlError as error:
            if error.code not in OF_ONE_SEGMENT:
                outcome.stopped = error  # rather than an earlier change, after which it went on
                return
            outcome.stopped = outcome.stopped or error
        tell(segment)


def _tried(segments: Sequence[WrittenSegment]) -> dict[str, Sequence[str]]:
    return {one.plan.metadata.segment_id: one.tried for one in segments if one.tried}


def _closing_look(
    fresh: FreshSegments, written: Mapping[str, Sequence[str]], stopped: TieredctlError | None
) -> tuple[Collection[str], TieredctlError | None]:
    """Of segments, by id with the keys that were or may have been written for them, those that the metadata of now
    still promises, and what stopped the run: `world-changed`, too, where it does not promise one, or what it raises
    where it cannot be read."""
    if not written:
        return (), stopped
    try:
        unpromised = fresh.unpromised(written)
    except TieredctlError as error:
        return (), stopped_twice(stopped, error)
    if not unpromised:
        return written.keys(), stopped
    hint = "`tieredctl orphans` finds what no broker deletes any more."
    changed = TieredctlError(ErrorCode.WORLD_CHANGED, " ".join(unpromised.values()), hint=hint)
    return written.keys() - unpromised.keys(), stopped_twice(stopped, changed)
