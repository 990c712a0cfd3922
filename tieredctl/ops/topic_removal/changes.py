"""What became otherwise since a plan was shown: a removal deletes what was shown and confirmed, or nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.topic_removal.topic_removal_plan import PartitionPlan

_NAMED = 5
_HINT = "Run the command again, and look at the plan that it shows then."


def changes_to_shown(shown: PartitionPlan, now: PartitionPlan) -> Iterator[str]:
    """What was shown to be removed, and is no longer as it was shown.

    What disappeared from the store is no change: it is gone, as it was to be.
    """
    partition = shown.state.partition
    doomed = {segment.segment_id: segment for segment in shown.segments}
    for segment in now.state.segments:
        known = doomed.get(segment.segment_id, segment)
        if known.state is not segment.state:
            yield f"segment {segment.segment_id} of {partition} went from {known.state.name} to {segment.state.name}"
        elif known != segment:
            yield f"segment {segment.segment_id} of {partition} got other metadata"
    if shown.state.delete_state is not now.state.delete_state:
        yield f"the removal of {partition} was carried on by somebody else"
    objects = {stored.key: stored for stored in shown.doomed()}
    for stored in now.doomed():
        if objects.get(stored.key, stored) != stored:
            yield f"object {stored.key} was written again"


def appeared_since(shown: PartitionPlan, now: PartitionPlan) -> Iterator[str]:
    """What was not shown, and is there now."""
    partition = shown.state.partition
    known = {segment.segment_id for segment in shown.state.segments}
    new = [segment for segment in now.state.segments if segment.segment_id not in known]
    yield from (f"segment {segment.segment_id} of {partition} appeared, in {segment.state.name}" for segment in new)
    keys = {stored.key for stored in shown.doomed()}
    yield from (f"object {stored.key} appeared" for stored in now.doomed() if stored.key not in keys)
    event = now.state.last_broker_event
    if event is not None and event != shown.state.last_broker_event:
        yield f"broker {event.broker_id} wrote an event of {partition}"


def demand_no_changes(changes: Sequence[str]) -> None:
    """Raises TieredctlError `world-changed` that names them."""
    if changes:
        raise TieredctlError(ErrorCode.WORLD_CHANGED, f"Since the plan was shown, {named(changes)}.", hint=_HINT)


def named(changes: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    more = len(changes) - _NAMED
    return "; ".join(changes[:_NAMED]) + (f"; and {more} more" if more > 0 else "")
