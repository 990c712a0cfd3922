"""What findings about diskless topics are about."""

from __future__ import annotations

from dataclasses import dataclass

from tieredctl.model.finding_subjects import ObjectSubject, PartitionSubject
from tieredctl_inkless.model.diskless_finding_kinds import EXPLAIN, INSPECT


@dataclass(frozen=True, slots=True)
class DisklessObjectSubject(ObjectSubject):
    """An object that mixes partitions, or some bytes of it."""

    position: int = -1
    """The first of them; -1 where it is about the whole object."""

    @property
    def remedy(self) -> str:
        return INSPECT


@dataclass(frozen=True, slots=True)
class DisklessPartitionSubject(PartitionSubject):
    """A diskless partition, or some of its offsets."""

    @property
    def remedy(self) -> str:
        return EXPLAIN
