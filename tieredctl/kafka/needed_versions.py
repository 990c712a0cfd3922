"""Which requests tieredctl makes, and what a server that knows fewer of them cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import NamedTuple

from tieredctl.formats.kafka_settings import metadata_version_line

Ranges = Mapping[int, tuple[int, int]]
"""The first and the last version of each request by its key, as a server tells."""


class _Need(NamedTuple):
    module: str
    request: str
    version: int
    """The lowest that will do."""
    used_for: str


_BY_ALL = (
    _Need("metadata", "Metadata", 10, "topic ids"),
    _Need("consumer", "Fetch", 4, "reading topics"),
    _Need("consumer", "ListOffsets", 1, "offsets"),
    _Need("admin", "DescribeConfigs", 1, "settings"),
)
_BY_SOME = (
    _Need("consumer", "OffsetForLeaderEpoch", 2, "followers' fetches in `explain`"),
    _Need("consumer", "OffsetFetch", 8, "consumer groups in `doctor`"),
    _Need("admin", "DescribeLogDirs", 1, "bytes on disks"),
    _Need("admin", "DescribeQuorum", 0, "the metadata quorum"),
    _Need("admin", "IncrementalAlterConfigs", 0, "`topic enable`"),
    _Need("producer", "Produce", 3, "writing events"),
    _Need("producer", "InitProducerId", 0, "writing events"),
    _Need("consumer", "ListOffsets", 8, "earliest local offsets"),
    _Need("consumer", "ListOffsets", 9, "latest tiered offsets"),
    _Need("consumer", "ListOffsets", 11, "earliest offsets pending upload"),
)


def missing_for_all(ranges: Ranges) -> list[str]:
    """What no command can do without; empty where the server is new enough, and not too new."""
    return [*_missing(_BY_ALL, ranges)]


def missing_for_some(ranges: Ranges) -> list[str]:
    """What some commands ask for in vain."""
    return [*_missing(_BY_SOME, ranges)]


def release_in_words(ranges: Ranges, metadata_version: int | None) -> str:
    """A server's release, as far as it shows it: `Kafka 4.3` by its greatest metadata.version, else the oldest release
    that knows all of its requests."""
    line = None if metadata_version is None else metadata_version_line(metadata_version)
    if line is not None:
        return f"Kafka {line[0]}.{line[1]} by its metadata.version"
    if metadata_version is not None:
        return "a release of Kafka that this tieredctl does not know"
    from kafka.protocol.broker_version_data import infer_broker_version_from_api_versions

    oldest = infer_broker_version_from_api_versions(ranges)
    return f"Kafka {'.'.join(map(str, oldest))} or later by its requests"


def _missing(needs: tuple[_Need, ...], ranges: Ranges) -> Iterator[str]:
    for need in needs:
        request = getattr(import_module(f"kafka.protocol.{need.module}"), f"{need.request}Request")
        first, last = ranges.get(request.API_KEY, (0, -1))
        if max(first, need.version) > min(last, request.max_version):
            has = f"{first} to {last}" if last >= 0 else "none"
            needed = f"{need.version} to {request.max_version}"
            yield f"{need.request} {needed} for {need.used_for} (the server has {has})"
