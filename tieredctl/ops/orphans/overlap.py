"""A store, or what tells what it has, without any object, or without any that the layout explains, is refused where the
metadata promises segments: it is of another place or layout, and what it lacks says nothing."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.verification.listed_objects import promised_elsewhere
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore, list_unreserved

_CLOCKS_DIFFER_MS = 3_600_000
_MOST_LOOKED_AT = 1_000
"""A page."""


def demand_any_object(
    store: ObjectStore, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics, listed_ms: int
) -> None:
    """Raises TieredctlError, where nothing was listed in a store at a time (in ms) and the metadata promises segments
    of topics that may be there: `no-overlap` where it still has nothing, and `unreadable` where it has what it had
    then. `topics_with_segments` are their ids."""
    if not _promises_any(layout, topics_with_segments, live_topics):
        return
    if next(iter(store.list()), None) is None:
        raise promised_elsewhere(store.url)
    for stored in islice(list_unreserved(store), _MOST_LOOKED_AT):
        if 0 < stored.last_modified_ms < listed_ms - _CLOCKS_DIFFER_MS:
            message = f"{store.url} listed no object, and then {stored.key!r}, which is older."
            raise TieredctlError(ErrorCode.UNREADABLE, message, hint="Run it again.")


def demand_any_told(url: str, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics) -> None:
    """The same where nothing of the store at `url` is in its inventory or in a list of its keys: nothing is known of
    its objects then."""
    if _promises_any(layout, topics_with_segments, live_topics):
        nothing = f"The inventory or list of keys has no object of {url}, but the metadata promises segments"
        hint = "Check --store and of which prefix and when the list was made, or let the store be listed."
        raise TieredctlError(ErrorCode.NO_OVERLAP, f"{nothing}: it is of another place, or too old.", hint=hint)


def demand_any_explained(
    url: str, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics
) -> None:
    """The same where objects of the store at `url` were listed, and the layout explains the key of none: all are
    unknown then, and that none is orphaned would be no answer."""
    if _promises_any(layout, topics_with_segments, live_topics):
        message = f"Layout {layout.name} explains none of the objects in {url}, but the metadata promises segments."
        raise TieredctlError(ErrorCode.NO_OVERLAP, message)


def _promises_any(layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics) -> bool:
    return layout.form_outside is None and any(live_topics.is_live(one) is not False for one in topics_with_segments)
