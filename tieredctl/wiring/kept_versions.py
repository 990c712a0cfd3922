"""What a store keeps of deleted objects, for estimates, which do without a store that does not answer."""

from __future__ import annotations

from tieredctl.errors import TieredctlError
from tieredctl.model.prices import StoragePrice
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ops.orphans.noncurrent import Noncurrent, noncurrent_among_first
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import ObjectStore
from tieredctl.wiring.places import StorePlace


def kept_versions_of(
    place: StorePlace, store: ObjectStore, layout: Layout, selection: Selection, price: StoragePrice
) -> Noncurrent | TieredctlError:
    """How much it is, up to a bound of what is listed, or why that is unknown."""
    try:
        return noncurrent_among_first(store, place.open_settings, layout, selection, price)
    except TieredctlError as error:
        return error
