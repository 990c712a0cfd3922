"""What `diskless …` opens and reads, in the one safe order: the bucket is listed first, then the control plane is read.

So whatever had a row while it was listed has it in what is read, unless it was removed since.
"""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.diskless.control_plane import ControlPlaneTables
from tieredctl.ops.diskless.status import Uncommitted, uncommitted
from tieredctl.ops.documents import Document
from tieredctl.storage.protocol import list_unreserved
from tieredctl.wiring.control_plane import ControlPlanePlace
from tieredctl.wiring.places import StorePlace


@dataclass(frozen=True, slots=True)
class FoundStatus:
    """What `diskless status` shows."""

    source: Document
    tables: ControlPlaneTables
    bucket: Uncommitted | None


def control_plane_status(place: ControlPlanePlace, bucket: StorePlace | None) -> FoundStatus:
    """Raises TieredctlError as the places and what they open do."""
    control_plane = place.open()
    source: Document = dict(control_plane.describe())
    if bucket is None:
        return FoundStatus(source, control_plane.tables(), None)
    store = bucket.open_store()
    listed = list(list_unreserved(store))
    tables = control_plane.tables()
    return FoundStatus(source | {"store": store.url}, tables, uncommitted(listed, tables))
