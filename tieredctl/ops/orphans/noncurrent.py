"""What a store keeps and bills for but does not list: noncurrent versions and delete markers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.prices import StoragePrice
from tieredctl.model.quantities import size_text
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.selection import Selection
from tieredctl.ports.bucket_settings import BucketSettings
from tieredctl.ports.layout import Layout
from tieredctl.ports.object_store import KeptVersion, ObjectStore, Versioning

MOST_ENTRIES = 100_000
"""The most entries of the listing of versions, which has current ones too."""
_NOT_TOLD = (ErrorCode.STORE_FORBIDDEN, ErrorCode.UNREADABLE)


@dataclass(frozen=True, slots=True)
class Noncurrent:
    """How much it is; None where the store does not report it."""

    versioning: Versioning
    versions: int | None = None
    bytes: int | None = None
    delete_markers: int | None = None
    price: StoragePrice | None = None
    class_bytes: Mapping[str, int] = field(default_factory=dict)
    """The bytes by storage class."""
    is_cut: bool = False
    """Whether the listing of versions was only looked at up to a bound: then it is at least so much."""

    def document(self) -> Document:
        """The document for a summary."""
        cost = {}
        if self.price is not None and self.bytes is not None:
            cost = {"monthlyCost": self.price.monthly_cost_of(self.class_bytes)}
        counts = {"versions": self.versions, "bytes": self.bytes, "deleteMarkers": self.delete_markers}
        return {"versioning": self.versioning.value, **counts, **cost}

    def sentence(self) -> str | None:
        """What people should know; None where there is nothing."""
        if self.versioning is Versioning.UNKNOWN:
            return "The store does not report whether it keeps versions of deleted objects: they are not counted."
        if self.versions is None:
            return "Versioning is on, but versions may not be listed: what is kept of deleted objects is not counted."
        if not self.versions and not self.delete_markers:
            return None
        return (
            f"Not listed, but billed: {counted(self.versions, 'noncurrent version')} ({size_text(self.bytes or 0)}) "
            f"and {counted(self.delete_markers or 0, 'delete marker')}."
        )


def noncurrent_among_first(
    store: ObjectStore,
    settings: Callable[[], BucketSettings],
    layout: Layout,
    selection: Selection,
    price: StoragePrice | None,
) -> Noncurrent:
    """As `noncurrent`, by the first entries of the listing of versions. Raises TieredctlError where the store does not
    answer at all."""
    is_cut = False

    def among_first() -> Iterable[KeptVersion]:
        nonlocal is_cut
        kept, is_cut = settings().kept_versions(MOST_ENTRIES)
        return kept

    return replace(noncurrent(store, layout, selection, price, among_first), is_cut=is_cut)


def noncurrent(
    store: ObjectStore,
    layout: Layout,
    selection: Selection,
    price: StoragePrice | None,
    listed: Callable[[], Iterable[KeptVersion]] | None = None,
) -> Noncurrent:
    """Counts what the store keeps of the selected objects, or of all if nothing is selected: all that it lists, or what
    was `listed` of that."""
    is_counted = _selected(layout, selection)
    versioning, versions, markers, class_bytes = Versioning.UNKNOWN, 0, 0, Counter[str]()
    try:
        versioning = store.retention().versioning
        if versioning is Versioning.OFF:
            return Noncurrent(versioning, 0, 0, 0, price)
        for kept in (listed or store.kept_versions)() if versioning is not Versioning.UNKNOWN else ():
            if is_counted(kept):
                versions += not kept.is_delete_marker
                markers += kept.is_delete_marker
                class_bytes[kept.storage_class or ""] += kept.size
    except TieredctlError as error:
        if error.code not in _NOT_TOLD:
            raise
        return Noncurrent(versioning)
    if versioning is Versioning.UNKNOWN:
        return Noncurrent(versioning)
    return Noncurrent(versioning, versions, class_bytes.total(), markers, price, class_bytes)


def _selected(layout: Layout, selection: Selection) -> Callable[[KeptVersion], bool]:
    def is_selected(kept: KeptVersion) -> bool:
        explained = layout.explain(kept.key)
        return explained is not None and selection.has_segment(explained.topic_id_partition, explained.segment_id)

    return (lambda _kept: True) if selection == Selection() else is_selected
