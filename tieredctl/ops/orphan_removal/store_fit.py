"""Whether a store and the metadata of remote storage belong together, and hold no other root."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from tieredctl.ops.orphan_removal.foreign_folders import FolderCheck
from tieredctl.ops.orphan_removal.limits import StoreOverlap
from tieredctl.ops.orphans.object_columns import ObjectColumns
from tieredctl.ports.object_store import StoredObject


class StoreFit:
    """A `Fit`: another root inside is noticed among all objects, and the overlap only among the store's own."""

    def __init__(
        self,
        layout_name: str,
        folders: FolderCheck,
        columns: Callable[[Iterable[StoredObject]], Iterator[ObjectColumns]],
        subject: str,
    ) -> None:
        self._layout_name, self._subject = layout_name, subject
        self._folders, self._columns = folders, columns
        self._overlap = StoreOverlap()

    @property
    def listed(self) -> int:
        return self._overlap.listed

    @property
    def is_sure(self) -> bool:
        return self._overlap.is_sure

    def look_at_planned(self, objects: Iterable[StoredObject]) -> int:
        count = 0
        for columns in self._columns(objects):
            self._folders.look_at(columns)
            count += len(columns.sizes)
        return count

    def look_at(self, objects: Sequence[StoredObject]) -> None:
        for columns in self._columns(objects):
            self._folders.look_at(columns)
            self._overlap.look_at(columns)

    def demand(self) -> None:
        self._folders.demand_none()
        self._overlap.demand(self._subject, self._layout_name)
