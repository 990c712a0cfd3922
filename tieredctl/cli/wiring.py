"""Joins the operations, which know protocols, to the concrete sources, stores and layouts that the options name."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.cli.arguments import as_of, pairs
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.kafka.source import MetadataSource
from tieredctl.ops.metadata.event_stream import EventStream

if TYPE_CHECKING:
    from tieredctl.kafka.consumer_groups import LiveClusterWithGroups
    from tieredctl.kafka.live_cluster import LiveCluster
    from tieredctl.layouts.protocol import Layout
    from tieredctl.ops.cluster.live_topics import TopicSources
    from tieredctl.storage.protocol import ObjectStore


def open_source(
    log_dir: Sequence[Path] | None,
    bootstrap_server: str | None = None,
    command_config: Path | None = None,
    export: Path | None = None,
) -> MetadataSource:
    """The one source that was named. Raises TieredctlError where none was, or several."""
    named = [bool(log_dir), bootstrap_server is not None, export is not None]
    if sum(named) > 1:
        raise TieredctlError(ErrorCode.USAGE, "--log-dir, --bootstrap-server and --export exclude each other.")
    if command_config is not None and bootstrap_server is None:
        raise TieredctlError(ErrorCode.USAGE, "--command-config is for --bootstrap-server.")
    if log_dir:
        from tieredctl.kafka.log_directory import LogDirectories

        return LogDirectories(log_dir)
    if bootstrap_server is not None:
        from tieredctl.kafka.live_topic import LiveTopic

        return LiveTopic(bootstrap_server, command_config)
    if export is not None:
        from tieredctl.kafka.export_file import ExportFile

        return ExportFile(export)
    raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to read metadata from.")


def demand_topic_based_metadata(
    log_dir: Sequence[Path] | None, bootstrap_server: str | None, command_config: Path | None
) -> None:
    """Raises TieredctlError where the cluster says, or a server.properties beside its log directories, that it does not
    keep its remote log metadata in the topic. To be called once the metadata could be opened."""
    from tieredctl.ops.cluster.broker_settings import METADATA_CLASS
    from tieredctl.ops.cluster.metadata_manager import demand_topic_based, managers_of

    if log_dir:
        from tieredctl.kafka.server_properties import stated_settings

        demand_topic_based(stated_settings(log_dir, METADATA_CLASS))
    if bootstrap_server is not None:
        with closing(open_cluster(bootstrap_server, command_config)) as cluster:
            demand_topic_based(managers_of(cluster))


def open_stream(
    log_dir: Sequence[Path] | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    export: Path | None,
    as_of_point: str | None,
    metadata_partition: int | None = None,
) -> EventStream:
    """The events of the source that was named, up to the point that was named."""
    point = as_of(as_of_point)
    source = open_source(log_dir, bootstrap_server, command_config, export)
    if metadata_partition is not None and metadata_partition not in source.metadata_partitions():
        known = ", ".join(map(str, source.metadata_partitions()))
        raise TieredctlError(
            ErrorCode.USAGE, f"There is no metadata partition {metadata_partition} here; there are {known}."
        )
    return EventStream(source, metadata_partition=metadata_partition, as_of=point)


def open_remote(
    store: str | None, store_option: Sequence[str] | None, layout: str, layout_option: Sequence[str] | None
) -> tuple[ObjectStore, Layout]:
    """The store and the layout that were named; `auto` looks at the store's keys."""
    from tieredctl.layouts.registry import layout_in
    from tieredctl.storage.registry import open_store

    if store is None:
        raise TieredctlError(ErrorCode.NO_STORE, "There is no store to look at.")
    opened = open_store(store, pairs("--store-option", store_option))
    return opened, layout_in(opened, layout, pairs("--layout-option", layout_option))


def open_cluster(bootstrap_server: str | None, command_config: Path | None) -> LiveCluster:
    """The live cluster that was named, to be closed. Raises TieredctlError where none was."""
    if bootstrap_server is None:
        raise TieredctlError(ErrorCode.NO_SOURCE, "There is no cluster to ask.", hint="Give --bootstrap-server.")
    from tieredctl.kafka.live_cluster import LiveCluster

    return LiveCluster(bootstrap_server, command_config)


def open_cluster_with_groups(bootstrap_server: str | None, command_config: Path | None) -> LiveClusterWithGroups:
    """The same, to be asked about its consumer groups besides."""
    if bootstrap_server is None:
        raise TieredctlError(ErrorCode.NO_SOURCE, "There is no cluster to ask.", hint="Give --bootstrap-server.")
    from tieredctl.kafka.consumer_groups import LiveClusterWithGroups

    return LiveClusterWithGroups(bootstrap_server, command_config)


@contextmanager
def topic_sources(
    live_topic_ids: Path | None,
    kraft_snapshot: Path | None,
    bootstrap_server: str | None,
    command_config: Path | None,
    as_of_point: str | None = None,
) -> Iterator[TopicSources]:
    """Where it is said which topics there are: in the file that was named, else in the live cluster.

    A cluster of today is not asked about a point in the past.
    """
    from tieredctl.ops.cluster.live_topics import TopicSources, read_topic_ids
    from tieredctl.ops.cluster.topic_snapshot import read_topic_snapshot

    if kraft_snapshot is not None and live_topic_ids is not None:
        raise TieredctlError(ErrorCode.USAGE, "--live-topic-ids and --kraft-snapshot exclude each other.")
    offline = [("--kraft-snapshot", kraft_snapshot is not None)]
    if as_of_point is None:
        offline.append(("--live-topic-ids", live_topic_ids is not None))
    for option, is_given in offline:
        if is_given and bootstrap_server is not None:
            hint = f"The cluster itself is asked which topics there are; leave {option} out."
            raise TieredctlError(ErrorCode.USAGE, f"{option} is for a cluster that is down.", hint=hint)
    if live_topic_ids is not None:
        yield TopicSources(topic_ids=read_topic_ids(live_topic_ids))
    elif kraft_snapshot is not None:
        yield TopicSources(snapshot=read_topic_snapshot(kraft_snapshot))
    elif bootstrap_server is not None and as_of_point is None:
        from tieredctl.kafka.topics_by_id import TopicsById

        with closing(TopicsById(bootstrap_server, command_config)) as cluster:
            yield TopicSources(cluster=cluster)
    else:
        yield TopicSources()
