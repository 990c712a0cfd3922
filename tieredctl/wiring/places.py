"""Where things are, as values: a cluster, its metadata, its remote store; and how to open them.

They are made from command-line options, from a job's arguments, or by hand. Making one opens nothing, and all of them
can be pickled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.named_cluster import demand_named_cluster
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ports.layout import AUTO

# A look-up in a log directory loads neither a client library nor numpy.
if TYPE_CHECKING:
    from tieredctl.kafka.consumer_groups import LiveClusterWithGroups
    from tieredctl.kafka.live_cluster import LiveCluster
    from tieredctl.kafka.live_tail import LiveTail
    from tieredctl.kafka.metadata_quorum import MetadataQuorum
    from tieredctl.ops.metadata.event_filter import EventFilter
    from tieredctl.ports.bucket_settings import BucketSettings
    from tieredctl.ports.layout import Layout
    from tieredctl.ports.metadata_source import EventPublisher, MetadataSource
    from tieredctl.ports.object_store import ObjectStore, WritableObjectStore

_Store = TypeVar("_Store", bound="ObjectStore")
_Store_co = TypeVar("_Store_co", bound="ObjectStore", covariant=True)

metadata_was_read: ContextVar[Callable[[EventStream], None] | None] = ContextVar("metadata_was_read", default=None)
"""Told of each stream of events when its reader has done with it."""


@dataclass(frozen=True, slots=True)
class ClusterPlace:
    """A live cluster. Each method raises TieredctlError if no broker answers, or one refuses."""

    bootstrap_server: str
    """HOST:PORT, or several separated by commas."""
    command_config: Path | None = None
    """A file of client properties, as Kafka's own tools take them."""

    @contextmanager
    def open(self) -> Iterator[LiveCluster]:
        """The cluster, open for requests."""
        from tieredctl.kafka.live_cluster import LiveCluster

        with closing(LiveCluster(self.bootstrap_server, self.command_config)) as cluster:
            demand_named_cluster(cluster.cluster_id)
            yield cluster

    @contextmanager
    def open_with_groups(self) -> Iterator[LiveClusterWithGroups]:
        """The cluster, also for requests about its consumer groups."""
        from tieredctl.kafka.consumer_groups import LiveClusterWithGroups

        with closing(LiveClusterWithGroups(self.bootstrap_server, self.command_config)) as cluster:
            demand_named_cluster(cluster.cluster_id)
            yield cluster

    @contextmanager
    def open_tail(self) -> Iterator[LiveTail]:
        """The cluster, also for what only its leaders have of topics."""
        from tieredctl.kafka.live_tail import LiveTail

        with closing(LiveTail(self.bootstrap_server, self.command_config)) as cluster:
            demand_named_cluster(cluster.cluster_id)
            yield cluster

    @contextmanager
    def open_metadata_producer(self) -> Iterator[EventPublisher]:
        """A producer of events in the cluster's metadata topic."""
        from tieredctl.kafka.metadata_producer import metadata_producer

        with closing(metadata_producer(self.bootstrap_server, self.command_config)) as producer:
            yield producer


@dataclass(frozen=True, slots=True)
class QuorumPlace:
    """The controllers of a cluster: those that are given, HOST:PORT with commas between them, or those that its brokers
    report."""

    controllers: str | None = None
    cluster: ClusterPlace | None = None
    command_config: Path | None = None

    @contextmanager
    def open(self, cluster_id: str | None = None) -> Iterator[MetadataQuorum]:
        """The quorum's leader, open for requests; of the cluster with this id, if one is given. Raises TieredctlError
        if it cannot be found."""
        from tieredctl.kafka.metadata_quorum import MetadataQuorum

        controllers = self.controllers or ",".join(self._reported())
        with closing(MetadataQuorum(controllers, self.command_config, cluster_id=cluster_id)) as quorum:
            yield quorum

    def _reported(self) -> Sequence[str]:
        if self.cluster is None:
            hint = "Give --bootstrap-controller or --bootstrap-server."
            raise TieredctlError(ErrorCode.NO_SOURCE, "No controller was given.", hint=hint)
        with self.cluster.open() as cluster:
            quorum = cluster.quorum()
        if not quorum.controllers:
            message = "The brokers do not report where controllers listen: Kafka does since 3.9."
            hint = "Give the controllers' own listeners with --bootstrap-controller."
            raise TieredctlError(ErrorCode.NO_SOURCE, message, hint=hint)
        leader_first = sorted(quorum.controllers, key=lambda node: node != quorum.leader)
        return [quorum.controllers[node] for node in leader_first]


@dataclass(frozen=True, slots=True)
class PluginSource:
    """Where another remote log metadata manager than Kafka's keeps the metadata, for the plugin that reads it."""

    name: str
    """The plugin's, by its entry point."""
    location: str
    """As the plugin takes it."""
    options: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def given(cls, text: str | None, options: Mapping[str, str]) -> PluginSource | None:
        """The source of NAME:LOCATION; None of nothing. Raises TieredctlError `usage` for any other text, and for
        options of nothing."""
        if text is None:
            if options:
                raise TieredctlError(ErrorCode.USAGE, "--metadata-source-option is for --metadata-source.")
            return None
        name, _, location = text.partition(":")
        if not name or not location:
            raise TieredctlError(ErrorCode.USAGE, f"--metadata-source {text!r} is not NAME:LOCATION.")
        return cls(name, location, options)


@dataclass(frozen=True, slots=True)
class MetadataPlace:
    """Where `__remote_log_metadata` is read: in brokers' log directories, on a live cluster, in an export of it, or
    where a plugin finds the like.

    Raises TieredctlError `usage` if several are given; if none is, opening it raises.
    """

    log_dirs: tuple[Path, ...] = ()
    cluster: ClusterPlace | None = None
    export: Path | None = None
    """What `metadata export` wrote."""
    as_of: AsOf | None = None
    """The point up to which events count; None for all."""
    plugin: PluginSource | None = None

    def __post_init__(self) -> None:
        if self._sources_given > 1:
            message = "--log-dir, --bootstrap-server, --export and --metadata-source exclude each other."
            raise TieredctlError(ErrorCode.USAGE, message)

    @property
    def is_given(self) -> bool:
        """Whether there is a place to read it."""
        return self._sources_given > 0

    @property
    def _sources_given(self) -> int:
        others = (self.cluster, self.export, self.plugin)
        return bool(self.log_dirs) + sum(place is not None for place in others)

    def open_source(self) -> MetadataSource:
        """The records, up to the present end; must be closed. Raises TieredctlError if they cannot be read, and
        `another-cluster` if they are of another cluster than the one that was named."""
        source = self._opened_source()
        try:
            demand_named_cluster(source.cluster_id)
        except TieredctlError:
            source.close()
            raise
        return source

    def _opened_source(self) -> MetadataSource:
        if self.log_dirs:
            from tieredctl.kafka.log_directory import LogDirectories

            return LogDirectories(self.log_dirs)
        if self.cluster is not None:
            return self._open_live(self.cluster)
        if self.export is not None:
            from tieredctl.kafka.export_file import ExportFile

            return ExportFile(self.export)
        if self.plugin is not None:
            from tieredctl.kafka.registry import open_metadata_source

            return open_metadata_source(self.plugin.name, self.plugin.location, self.plugin.options)
        raise TieredctlError(ErrorCode.NO_SOURCE, "There is nothing to read metadata from.")

    def _open_live(self, cluster: ClusterPlace) -> MetadataSource:
        from tieredctl.kafka.live_topic import LiveTopic

        try:
            return LiveTopic(cluster.bootstrap_server, cluster.command_config)
        except TieredctlError as error:
            if error.code is ErrorCode.NO_METADATA_TOPIC:
                self.demand_topic_based()  # another manager may have kept nothing there yet
                self._demand_metadata_here(cluster)
            raise

    @staticmethod
    def _demand_metadata_here(place: ClusterPlace) -> None:
        from tieredctl.ops.cluster.platforms import demand_metadata_here

        with place.open() as cluster:
            demand_metadata_here(cluster)

    @contextmanager
    def open(self, metadata_partition: int | None = None, only: EventFilter | None = None) -> Iterator[EventStream]:
        """The events up to the present end, and no later than `as_of`; or only some of them.

        Raises TieredctlError as `open_source` does, and `usage` for a metadata partition that is not here.
        """
        with closing(self.open_source()) as source:
            if metadata_partition is not None and metadata_partition not in source.metadata_partitions():
                numbers = ", ".join(map(str, source.metadata_partitions()))
                message = f"There is no metadata partition {metadata_partition} here; found {numbers}."
                raise TieredctlError(ErrorCode.USAGE, message)
            stream = EventStream(source, metadata_partition=metadata_partition, as_of=self.as_of, only=only)
            yield stream
            if notice := metadata_was_read.get():
                notice(stream)

    def demand_topic_based(self) -> None:
        """Raises TieredctlError if the cluster, or a server.properties next to its log directories, shows that it does
        not keep its remote log metadata in the topic; what a plugin reads is not of the topic. To be called once the
        metadata could be opened."""
        from tieredctl.ops.cluster.broker_settings import METADATA_CLASS, demand_topic_based, managers_of

        if self.log_dirs:
            from tieredctl.kafka.server_properties import stated_settings

            demand_topic_based(stated_settings(self.log_dirs, METADATA_CLASS))
        if self.cluster is not None:
            with self.cluster.open() as cluster:
                demand_topic_based(managers_of(cluster))

    def demand_usable(self) -> None:
        """Refuses metadata that cannot be read, or is not kept in the topic, before anything that takes long. Raises
        TieredctlError as `open` and `demand_topic_based` do."""
        with self.open():
            pass
        self.demand_topic_based()

    def topic_id_today(self, topic: str) -> str | None:
        """The id of the live cluster's topic of that name. None if it has none, and if no cluster can be asked: a
        cluster is not asked about a point in the past."""
        if self.cluster is None or self.as_of is not None:
            return None
        with self.cluster.open() as cluster:
            try:
                return cluster.topic(topic).topic_id
            except TieredctlError as error:
                if error.code is not ErrorCode.UNKNOWN_TOPIC:
                    raise
                return None


class Remote(NamedTuple, Generic[_Store_co]):
    """An open store, and how its keys map to segments."""

    store: _Store_co
    layout: Layout


@dataclass(frozen=True, slots=True)
class StorePlace:
    """A remote store. Its methods raise TieredctlError as those of the same names in `storage.registry` do, and those
    that return a layout also as `layout_in` does."""

    url: str
    """Such as file:DIR, s3://BUCKET/PREFIX, gs://BUCKET/PREFIX."""
    options: Mapping[str, str] = field(default_factory=dict)
    layout: str = AUTO
    """How keys map to segments: a layout's name, or AUTO to look at the store's keys."""
    layout_options: Mapping[str, str] = field(default_factory=dict)

    def open(self) -> Remote[ObjectStore]:
        """The store, read-only."""
        return self._settled(self.open_store())

    def open_writable(self) -> Remote[WritableObjectStore]:
        """The store, for changing it."""
        return self._settled(self.open_writable_store())

    def open_to(self, *, apply: bool) -> tuple[Remote[ObjectStore], Remote[WritableObjectStore] | None]:
        """The store to make a plan by; and for applying it the same one, writable."""
        writable = self.open_writable() if apply else None
        return writable or self.open(), writable

    def layout_in(self, store: ObjectStore) -> Layout:
        """The layout of the store, which was opened already."""
        from tieredctl.layouts.registry import layout_in

        return layout_in(store, self.layout, self.layout_options)

    def open_store(self) -> ObjectStore:
        """The store, read-only, without a layout."""
        from tieredctl.storage.registry import open_store

        return open_store(self.url, self.options)

    def open_settings(self) -> BucketSettings:
        """What asks for the settings of the store's bucket."""
        from tieredctl.storage.registry import open_settings

        return open_settings(self.url, self.options)

    def is_proven(self) -> bool:
        """Whether the store is the cloud's own, and not a compatible server; makes no request."""
        from tieredctl.storage.registry import is_proven

        return is_proven(self.url, self.options)

    def demand_known(self) -> None:
        """Raises TieredctlError for a URL whose scheme no store has; opens nothing."""
        from tieredctl.ports.store_kinds import store_kind

        store_kind(self.url)

    def from_everywhere(self) -> str:
        """The store's URL, which means the same from every folder."""
        from tieredctl.ports.store_kinds import from_everywhere

        return from_everywhere(self.url)

    def open_writable_store(self) -> WritableObjectStore:
        """The store, for changing it, without a layout."""
        from tieredctl.storage.registry import open_writable_store

        return open_writable_store(self.url, self.options)

    def _settled(self, store: _Store) -> Remote[_Store]:
        return Remote(store, self.layout_in(store))
