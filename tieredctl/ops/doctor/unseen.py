"""What a live cluster does not show of tiered data that its metadata, or the beginning of a log, speaks of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from tieredctl.model.events import STORED_STATES
from tieredctl.model.ids import TopicIdPartition
from tieredctl.ops.cluster.live_topics import HIDDEN, TopicLookup, hidden_topics
from tieredctl.ops.cluster.snapshot import ClusterSnapshot, PartitionFacts
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ports.cluster import Cluster, ListedOffset
from tieredctl.rlmm.replayed_metadata import ReplayedMetadata


def with_unseen(cluster: ClusterSnapshot, live: Cluster, topics: TopicLookup) -> ClusterSnapshot:
    """The snapshot, whose metadata was read, with the topics that the cluster hides, and the time of the first record
    where nothing explains that a log begins above 0. Neither costs anything where there are none."""
    looking = Looking(list(cluster.not_looked_at))
    stored = _live_segments(cluster.stores)
    looking.findings += looking.at(HIDDEN, lambda: hidden_topics(live.topic_names(), stored, topics)) or []
    partitions = _with_first_records(cluster.partitions, live, looking)
    return replace(cluster, partitions=partitions, not_looked_at=looking.findings)


def _live_segments(stores: Sequence[ReplayedMetadata]) -> Mapping[TopicIdPartition, int]:
    counts: Counter[TopicIdPartition] = Counter()
    for metadata in stores:
        of_partitions = Counter(metadata.rows.partitions[metadata.in_states(STORED_STATES)].tolist())
        counts.update({metadata.partitions[number]: count for number, count in of_partitions.items()})
    return counts


def _with_first_records(partitions: Sequence[PartitionFacts], live: Cluster, looking: Looking) -> list[PartitionFacts]:
    names = sorted({facts.partition.topic for facts in partitions if facts.is_start_unexplained})
    first_records = {
        name: looking.at(f"offsets of {name} by time", partial(_first_records, live, name)) or {} for name in names
    }

    def with_first_record(facts: PartitionFacts) -> PartitionFacts:
        first = first_records.get(facts.partition.topic, {}).get(facts.partition.partition)
        return facts if first is None or first.error else replace(facts, first_record_ms=first.timestamp_ms)

    return [with_first_record(facts) for facts in partitions]


def _first_records(live: Cluster, name: str) -> Mapping[int, ListedOffset]:
    return live.list_offsets(live.topic(name), 0)
