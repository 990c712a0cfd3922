"""An empty store has no orphan; but is it the store of this metadata?"""

from __future__ import annotations

from collections.abc import Iterable

from tieredctl.ops.cluster.live_topics import LiveTopics
from tieredctl.ops.verification.overlap import promised_elsewhere
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore


def demand_any_object(
    store: ObjectStore, layout: Layout, topics_with_segments: Iterable[str], live_topics: LiveTopics
) -> None:
    """Raises TieredctlError `no-overlap` where a store in which nothing was listed still has nothing, and the metadata
    promises segments of topics that may be there. `topics_with_segments` are their ids."""
    if layout.form_outside is not None or all(live_topics.is_live(one) is False for one in topics_with_segments):
        return
    if next(iter(store.list()), None) is None:
        raise promised_elsewhere(store.url)
