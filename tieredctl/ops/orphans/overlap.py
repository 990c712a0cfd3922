"""A store, or what tells what it has, without any object is refused where the metadata promises segments: it is of
another place, and what it lacks says nothing."""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.verification.listed_objects import promised_elsewhere
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore


def demand_any_object(
    store: ObjectStore, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics
) -> None:
    """Raises TieredctlError `no-overlap` where a store in which nothing was listed still has nothing, and the metadata
    promises segments of topics that may be there. `topics_with_segments` are their ids."""
    if _promises_any(layout, topics_with_segments, live_topics) and next(iter(store.list()), None) is None:
        raise promised_elsewhere(store.url)


def demand_any_told(url: str, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics) -> None:
    """The same where nothing of the store at `url` is in its inventory or in a list of its keys: nothing is known of
    its objects then."""
    if _promises_any(layout, topics_with_segments, live_topics):
        nothing = f"The inventory or list of keys has no object of {url}, but the metadata promises segments"
        hint = "Check --store and of which prefix and when the list was made, or let the store be listed."
        raise TieredctlError(ErrorCode.NO_OVERLAP, f"{nothing}: it is of another place, or too old.", hint=hint)


def _promises_any(layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics) -> bool:
    return layout.form_outside is None and any(live_topics.is_live(one) is not False for one in topics_with_segments)
