"""Platforms that speak Kafka's protocol, and keep what they tier elsewhere than in `__remote_log_metadata`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_UUID = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_ID = "[A-Za-z0-9_-]{22}"


@dataclass(frozen=True, slots=True)
class Platform:
    """A platform, where its metadata is, and what is seen of it: of its servers, of its topics, in its bucket."""

    name: str
    metadata: str
    """Continues `which keeps …`."""
    host: str | None = None
    """A pattern for the end of its servers' names."""
    cluster_id: str | None = None
    """What its cluster ids begin with."""
    topic: str | None = None
    """An internal topic of its own."""
    setting: str | None = None
    """What names of its brokers' own settings begin with."""
    key: str | None = None
    """A pattern for the keys of its objects."""


CONFLUENT = Platform(
    "Confluent's Kafka",
    "metadata of its Tiered Storage in a format of its own, in _confluent-tier-state",
    host=r"\.confluent\.cloud",
    topic="_confluent-tier-state",
    setting="confluent.tier.",
    # kafka.tier.store.TierObjectStoreUtils.keyPath
    key=rf"0/{_ID}/{_ID}/\d+/\d{{20}}_\d+_v\d+\.[a-z-]+",
)
REDPANDA = Platform(
    "Redpanda",
    "manifests of its own in the bucket",
    cluster_id="redpanda.",
    # cloud_storage/topic_path_utils.h, remote_path_provider.h: by hash until 24.1, by the cluster's UUID since 24.2
    key=rf"(?:[0-9a-f]{{8}}/|{_UUID}/)?meta/[^/]+/.*(?:manifest\.(?:json|bin)(?:\..*)?|_lifecycle\.bin)"
    rf"|(?:[0-9a-f]{{8}}|{_UUID})/[^/]+/[^/]+/\d+_\d+/\d+-\d+-(?:\d+-\d+-)?v\d+\.log.*",
)
AUTOMQ = Platform(
    "AutoMQ",
    "what is in its bucket in the metadata quorum, by records of its own",
    setting="elasticstream.",
    # org.apache.kafka.metadata.stream.ObjectUtils.genKey
    key=rf"[0-9a-f]{{8,16}}/_kafka_{_ID}/(?:node-)?\d+",
)
WARPSTREAM = Platform(
    "WarpStream", "what is in its bucket in a service of its own", host=r"\.warpstream\.com", key="warpstream/.*"
)
MSK = Platform(
    "Amazon MSK",
    "what it tiers, and the metadata of it, in a service of its own",
    host=r"\.kafka(?:-serverless)?\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?",
)
PLATFORMS = (CONFLUENT, REDPANDA, AUTOMQ, WARPSTREAM, MSK)


def platform_by(
    *,
    hosts: Iterable[str] = (),
    cluster_id: str | None = None,
    topics: Iterable[str] = (),
    settings: Iterable[str] = (),
) -> Platform | None:
    """The platform of a cluster; None where nothing of this is a platform's own."""
    known_hosts, known_topics, known_settings = list(hosts), set(topics), list(settings)
    for one in PLATFORMS:
        if (
            (one.host and any(re.search(f"{one.host}$", host) for host in known_hosts))
            or (one.cluster_id and (cluster_id or "").startswith(one.cluster_id))
            or one.topic in known_topics
            or (one.setting and any(name.startswith(one.setting) for name in known_settings))
        ):
            return one
    return None


def platform_by_keys(keys: Iterable[str]) -> tuple[Platform, str] | None:
    """The platform of a bucket, and the key that shows it; None where no key is a platform's own."""
    for key in keys:
        for one in PLATFORMS:
            if one.key and re.fullmatch(one.key, key):
                return one, key
    return None
