"""What a live cluster's topics need of their bucket."""

from __future__ import annotations

from collections.abc import Mapping

from tieredctl.ops.cluster.broker_settings import STORAGE_PREFIX
from tieredctl.ops.cluster.topic_settings import RETENTION_MS, SettingUnknownError, TopicSettings
from tieredctl.ops.doctor.bucket_view import DAY_MS, TieredTopics
from tieredctl.ops.doctor.gathering import tiered_topics
from tieredctl.ops.doctor.looking import TOPIC_SETTINGS, Looking
from tieredctl.ports.cluster import Cluster

_CHUNK_SIZE, _CHUNK_CACHE = "chunk.size", "fetch.chunk.cache.class"
"""Settings of Aiven's remote storage manager, after their prefix."""


def topics_of_bucket(cluster: Cluster, looking: Looking) -> TieredTopics | None:
    """The topics that may have segments in the bucket: all tiered ones, for it is not known which. None where their
    settings may not be seen, which is noted."""
    topics = looking.at(TOPIC_SETTINGS, lambda: tiered_topics(cluster, None, looking))
    if topics is None:
        return None
    partitions = looking.at("partitions", cluster.topic_partitions) or {}
    longest, days = _longest(topics)
    count = sum(len(partitions.get(name, ())) for name in topics)
    # A topic whose settings are hidden may retain its segments for longer.
    return TieredTopics(
        len(topics), count, longest, None if looking.findings else days, _has_chunk_cache(cluster, looking)
    )


def _longest(topics: Mapping[str, TopicSettings]) -> tuple[str, float | None]:
    """The topic that retains the longest, and for how many days; None where that of one is not known."""
    try:
        retained = {name: settings.number(RETENTION_MS) for name, settings in topics.items()}
    except SettingUnknownError:
        return "", None
    days = {name: float("inf") if ms < 0 else ms / DAY_MS for name, ms in retained.items()}
    longest = max(days, key=lambda name: days[name], default="")
    return longest, days.get(longest)


def _has_chunk_cache(cluster: Cluster, looking: Looking) -> bool | None:
    """Whether brokers keep the chunks that they fetch; None where that is unknown, or they fetch none. Their values are
    hidden, but not their names."""
    brokers = looking.at("broker settings", cluster.broker_configs) or {}
    for settings in brokers.values():
        prefix = settings[STORAGE_PREFIX].value if STORAGE_PREFIX in settings else None
        if (prefix or "") + _CHUNK_SIZE in settings:
            return (prefix or "") + _CHUNK_CACHE in settings
    return None
