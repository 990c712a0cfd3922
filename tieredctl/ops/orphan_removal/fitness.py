"""Is this the store that a plan is for, and the plan small enough for it? Asked of the store, not of the plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.layouts.protocol import Layout
from tieredctl.ops.orphan_removal.foreign_folders import FolderCheck
from tieredctl.ops.orphan_removal.fresh_metadata import FreshMetadata
from tieredctl.ops.orphan_removal.limits import Limits, Overlap, demand_share
from tieredctl.ops.orphan_removal.plan_file import PlanFile
from tieredctl.ops.orphan_removal.removed_keys import keys_removed_since
from tieredctl.storage.protocol import ObjectStore, StoredObject, list_unreserved


@dataclass(frozen=True, slots=True)
class Fitness:
    """What speaks against a whole plan, whatever its objects are."""

    plan: PlanFile
    store: ObjectStore
    metadata: FreshMetadata
    limits: Limits
    installed_layouts: Sequence[Layout] = ()
    """As in Planning."""

    def demand(self) -> None:
        """Raises TieredctlError `plan-altered` where the totals are not those of the lines, `no-overlap`,
        `ambiguous-prefix`, `quarantine-scanned` or `plan-too-large`.

        The store is listed no further than it takes to be sure, so that another root inside is only found among the
        objects that are planned and those listed first.
        """
        folders, overlap = FolderCheck(self.store.url, self.installed_layouts), Overlap()
        planned, most = 0, self.limits.max_percent
        for objects in self.metadata.columns(StoredObject(one.key, one.size, 0, "") for one in self.plan.objects()):
            folders.look_at(objects)
            planned += len(objects.sizes)
        if planned != self.plan.totals.objects:
            message = f"{self.plan.path} has {planned} objects, and says that it has {self.plan.totals.objects}."
            raise TieredctlError(ErrorCode.PLAN_ALTERED, message)
        enough = int(planned * 100 / most) + 1 if most else None
        if planned or self.plan.totals.uploads:
            for objects in self.metadata.columns(list_unreserved(self.store)):
                folders.look_at(objects)
                overlap.look_at(objects)
                if overlap.is_sure and enough is not None and overlap.listed >= enough:
                    break
        folders.demand_none()
        overlap.demand(self.store.url, self.metadata.layout.name)
        whole = overlap.listed
        if planned * 100 > whole * most:
            whole += self._removed_meanwhile(None if enough is None else enough - whole)
        demand_share(planned, whole, most, self.store.url)

    def _removed_meanwhile(self, enough: int | None) -> int:
        """How many objects other plans removed since this one was made; counts no further than needed."""
        since_ms = self.limits.removed_since_ms
        if since_ms is None:
            return 0
        return sum(1 for _ in islice(keys_removed_since(self.store, since_ms), enough))
