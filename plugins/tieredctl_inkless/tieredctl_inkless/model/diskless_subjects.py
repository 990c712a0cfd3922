"""What findings about diskless topics are about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tieredctl.model.finding_subjects import ObjectSubject, PartitionSubject, Subject, offsets_of
from tieredctl.model.ids import TopicIdPartition
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


def read_diskless_subject(text: str, evidence: Mapping[str, Any]) -> Subject:
    """The subject of a finding that was written: an object, which the text names as the key does, or a partition."""
    if evidence.get("key") == text:
        return DisklessObjectSubject(text, evidence.get("position", -1))
    partition = TopicIdPartition(evidence["topicId"], evidence["topic"], evidence["partition"])
    return DisklessPartitionSubject(partition, offsets_of(evidence))
