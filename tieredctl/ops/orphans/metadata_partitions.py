"""Are the metadata partitions that can be read all that the topic has?

A user partition's events lie in the metadata partition that its hash and their number give. So that those that were
read tell of what number they are, wherever nobody else tells it, as in copies of some brokers' log directories.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import gcd

import numpy as np

from tieredctl.kafka.source import METADATA_TOPIC
from tieredctl.model.findings import Finding
from tieredctl.ops.orphans.segment_states import SegmentStates
from tieredctl.rlmm.partitioner import metadata_partition

_ALL_HASHES = 1 << 31
"""As many partitions as there are hashes: a hash is its own partition."""


class PartitionsHere(Enum):
    """What is known of whether all metadata partitions are here."""

    ALL = auto()
    PERHAPS_ALL = auto()
    """There may be others, in which partitions have their events that have none here."""
    NOT_ALL = auto()


def partitions_here(segments: SegmentStates, numbers: Sequence[int]) -> PartitionsHere:
    """By the numbers of those that were read, ascending, and by where the segments' events were found in them."""
    count = len(numbers)
    if list(numbers) != list(range(count)):
        return PartitionsHere.NOT_ALL
    # Every number of partitions that would put all events where they are divides this.
    divided = 0
    places = np.unique(np.stack([segments.owners, segments.metadata_partitions], axis=1), axis=0)
    for owner, place in places.tolist():
        partition = segments.partitions[owner]
        divided = gcd(divided, metadata_partition(partition.topic_id, partition.partition, _ALL_HASHES) - place)
    if divided % count:
        return PartitionsHere.NOT_ALL
    return PartitionsHere.ALL if divided == count else PartitionsHere.PERHAPS_ALL


def partitions_missing(numbers: Sequence[int]) -> Finding:
    """What is said where some are not here."""
    here = ", ".join(map(str, numbers))
    message = f"the topic has more partitions than are here ({here}): what the others say is unknown"
    return Finding("unreadable", METADATA_TOPIC, message, {"metadataPartitions": list(numbers)})
