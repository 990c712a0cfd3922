"""The partitions of `__remote_log_metadata` that are here and that are missing, and whose events may lie in those.

A log directory of one broker of several holds some of them. How many there are is known from the source itself where it
knows; else by where events were found: a user partition's events all lie in the metadata partition that its hash and
their number give. What may lie in a metadata partition that is not here is not known: it is not missing, not an
orphan, and not sound.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from math import gcd, isqrt

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ports.metadata_source import METADATA_TOPIC
from tieredctl.rlmm.partitioner import partition_hash

MISSING = FindingCode.METADATA_PARTITION_MISSING
"""The code of the finding that says so."""

READ_ALL = "Read all of them: every broker's log directory, one --log-dir each, or a live cluster."

_MOST_PARTITIONS = 1 << 20
"""More than any cluster has: such a count is not believed."""
_SPELLED_OUT = 10


@dataclass(frozen=True)
class MetadataCoverage:
    """What is known about a source's metadata partitions."""

    here: Sequence[int]
    """Ascending."""
    counts: Sequence[int] | None
    """How many partitions the topic may have, ascending; empty where no count explains where all events are, None
    where nothing tells."""

    @property
    def missing(self) -> list[int]:
        """The metadata partitions that are surely not here."""
        least = self.counts[0] if self.counts else max(self.here, default=-1) + 1
        return sorted(set(range(least)).difference(self.here))

    @property
    def is_certain(self) -> bool:
        """Whether these are surely all."""
        return self.counts is not None and len(self.counts) == 1 and not self.missing

    @property
    def is_broken(self) -> bool:
        """Whether some are surely missing, known by number or not."""
        return bool(self.missing) or (self.counts is not None and not self.counts)

    def may_be_elsewhere(self, topic_id: str, partition: int) -> bool:
        """Whether a user partition without events here may have some in a metadata partition that is not here."""
        if self.is_certain:
            return False
        if not self.counts:
            return True
        hashed, here = partition_hash(topic_id, partition), set(self.here)
        return any(hashed % count not in here for count in self.counts)

    def finding(self) -> Finding | None:
        """The first finding about metadata that is surely incomplete."""
        if not self.is_broken:
            return None
        missing, numbers = self.missing, numbers_text(self.here)
        if missing:
            message = f"{_named(missing)} missing here (found {numbers}): what {_they(missing)} is unknown"
        else:
            message = f"no partition count explains where all events are (found {numbers})"
        evidence = {"metadataPartitions": list(self.here), "missingMetadataPartitions": missing}
        return Finding(MISSING, METADATA_TOPIC, message, evidence)

    def demand_all(self, why: str) -> None:
        """Raises TieredctlError `metadata-incomplete` where what was not found may lie in what is missing."""
        if self.is_broken:
            raise TieredctlError(
                ErrorCode.METADATA_INCOMPLETE, f"{why.removesuffix('.')}, but {self._short}.", hint=READ_ALL
            )

    @property
    def _short(self) -> str:
        if not self.missing:
            return "metadata partitions are missing here"
        return f"{_named(self.missing)} missing here (found {numbers_text(self.here)})"


@dataclass(slots=True)
class MetadataPlaces:
    """In which metadata partition each user partition has its events, as far as they were read."""

    seen: set[tuple[TopicIdPartition, int]] = field(default_factory=set)
    divided: int = 0
    """Every partition count that explains where all events are divides this; 0: any count does."""

    def note(self, metadata_partition: int, partitions: Iterable[TopicIdPartition]) -> None:
        """User partitions that have events in a metadata partition."""
        for partition in partitions:
            place = (partition, metadata_partition)
            if place not in self.seen:
                self.seen.add(place)
                hashed = partition_hash(partition.topic_id, partition.partition)
                self.divided = gcd(self.divided, hashed - metadata_partition)

    def coverage(self, here: Sequence[int], stated: int | None) -> MetadataCoverage:
        """The coverage of a source that has these metadata partitions, and may know how many there are."""
        fewest = max(here, default=-1) + 1
        if stated is not None and fewest <= stated <= _MOST_PARTITIONS:
            return MetadataCoverage(here, (stated,))
        if not self.divided:
            return MetadataCoverage(here, None)
        return MetadataCoverage(here, [one for one in _divisors(self.divided) if fewest <= one <= _MOST_PARTITIONS])


def numbers_text(numbers: Sequence[int]) -> str:
    """Ascending numbers: `1, 2, 3`; many of them as `0-16, 18, 20-49`."""
    if len(numbers) <= _SPELLED_OUT:
        return ", ".join(map(str, numbers))
    starts = [numbers[0], *(after for before, after in pairwise(numbers) if after != before + 1)]
    ends = [*(before for before, after in pairwise(numbers) if after != before + 1), numbers[-1]]
    runs = zip(starts, ends, strict=True)
    return ", ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def _named(missing: Sequence[int]) -> str:
    plural, verb = ("", "is") if len(missing) == 1 else ("s", "are")
    return f"metadata partition{plural} {numbers_text(missing)} {verb}"


def _they(missing: Sequence[int]) -> str:
    return "it holds" if len(missing) == 1 else "they hold"


def _divisors(number: int) -> list[int]:
    number = abs(number)
    small = [one for one in range(1, isqrt(number) + 1) if number % one == 0]
    return sorted({*small, *(number // one for one in small)})
