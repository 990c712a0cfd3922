"""The options that say where things are and which of them are meant, by groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from tieredctl.cli.arguments import pairs
from tieredctl.cli.option_groups import OptionGroup
from tieredctl.cli.options import (
    AsOfPoint,
    BootstrapServer,
    CommandConfig,
    Export,
    KraftSnapshot,
    LayoutName,
    LayoutOptions,
    LiveTopicIds,
    LogDirs,
    MetadataSource,
    MetadataSourceOptions,
    Partitions,
    Results,
    SegmentIds,
    Since,
    TieredStore,
    TieredStoreOptions,
    TopicIds,
    Topics,
    Until,
)
from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.ops.metadata.as_of import AsOf
from tieredctl.ports.layout import AUTO
from tieredctl.wiring.places import ClusterPlace, MetadataPlace, PluginSource, StorePlace

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from tieredctl.ops.metadata.event_filter import EventFilter
    from tieredctl.ops.metadata.selection import Selection
    from tieredctl.wiring.offline_cluster import OfflineClusterPlace
    from tieredctl.wiring.topics_place import TopicsPlace


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResultOptions(OptionGroup):
    """What earlier runs left."""

    result: Results = None

    def paths(self) -> Sequence[Path]:
        """Files, and folders of them."""
        return self.result or ()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ClusterOptions(OptionGroup):
    """A live cluster."""

    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None

    def place(self, hint: str = "Give --bootstrap-server.") -> ClusterPlace:
        """The cluster that was named. Raises TieredctlError with the hint where none was."""
        if self.bootstrap_server is None:
            raise TieredctlError(ErrorCode.NO_SOURCE, "No cluster was given.", hint=hint)
        return ClusterPlace(self.bootstrap_server, self.command_config)

    def place_or_snapshot(self, kraft_snapshot: Path | None) -> ClusterPlace | OfflineClusterPlace:
        """The cluster that was named, or what is left of it when no broker answers. Raises TieredctlError where both
        were, or neither."""
        if kraft_snapshot is None:
            return self.place("Give --bootstrap-server, or --kraft-snapshot where no broker answers.")
        if self.bootstrap_server is not None:
            hint = "The cluster itself is asked; omit --kraft-snapshot."
            raise TieredctlError(ErrorCode.USAGE, "--kraft-snapshot is for a cluster that is down.", hint=hint)
        from tieredctl.wiring.offline_cluster import OfflineClusterPlace

        return OfflineClusterPlace(kraft_snapshot)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MetadataOptions(OptionGroup):
    """A source of metadata."""

    log_dir: LogDirs = None
    bootstrap_server: BootstrapServer = None
    command_config: CommandConfig = None
    export: Export = None
    metadata_source: MetadataSource = None
    metadata_source_option: MetadataSourceOptions = None

    @property
    def are_given(self) -> bool:
        """Whether any source was named."""
        return bool(self.log_dir or self.bootstrap_server or self.export or self.metadata_source)

    def cluster(self) -> ClusterOptions:
        """The live cluster among the sources."""
        return ClusterOptions(self.bootstrap_server, self.command_config)

    def place(self) -> MetadataPlace:
        """The one source that was named; without one, opening it raises. Raises TieredctlError for several."""
        return self._up_to(None)

    def _up_to(self, point: AsOf | None) -> MetadataPlace:
        if self.command_config is not None and self.bootstrap_server is None:
            raise TieredctlError(ErrorCode.USAGE, "--command-config is for --bootstrap-server.")
        cluster = None if self.bootstrap_server is None else ClusterPlace(self.bootstrap_server, self.command_config)
        options = pairs("--metadata-source-option", self.metadata_source_option)
        plugin = PluginSource.given(self.metadata_source, options)
        return MetadataPlace(tuple(self.log_dir or ()), cluster, self.export, point, plugin)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PastMetadataOptions(MetadataOptions):
    """A source of metadata, and the point up to which it is believed."""

    as_of: AsOfPoint = None

    def place(self) -> MetadataPlace:
        """The one source that was named, up to the point that was named."""
        return self._up_to(None if self.as_of is None else AsOf.given(self.as_of))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RemoteOptions(OptionGroup):
    """A remote store and its layout."""

    store: TieredStore = None
    store_option: TieredStoreOptions = None
    layout: LayoutName = AUTO
    layout_option: LayoutOptions = None

    def place(self) -> StorePlace:
        """The store and the layout that were named. Raises TieredctlError where no store was."""
        if self.store is None:
            raise TieredctlError(ErrorCode.NO_STORE, "No store was given.")
        settings = pairs("--store-option", self.store_option)
        return StorePlace(self.store, settings, self.layout, pairs("--layout-option", self.layout_option))

    def place_if_given(self) -> StorePlace | None:
        """The same; None where no store was named."""
        return None if self.store is None else self.place()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TopicListOptions(OptionGroup):
    """Which topics exist, where the cluster cannot be asked."""

    live_topic_ids: LiveTopicIds = None
    kraft_snapshot: KraftSnapshot = None

    @property
    def are_given(self) -> bool:
        """Whether any was named."""
        return self.live_topic_ids is not None or self.kraft_snapshot is not None

    def beside(self, metadata: MetadataPlace) -> TopicsPlace:
        """What was named; otherwise the cluster of the metadata. Raises TieredctlError as `TopicsPlace.beside` does."""
        from tieredctl.wiring.topics_place import TopicsPlace

        return TopicsPlace.beside(metadata, self.live_topic_ids, self.kraft_snapshot)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PartitionOptions(OptionGroup):
    """The partitions that are meant."""

    topic: Topics = None
    topic_id: TopicIds = None
    partition: Partitions = None

    def selection(self) -> Selection:
        """Raises TieredctlError as `Selection` does."""
        return self._of_segments(())

    def _of_segments(self, segment_ids: Sequence[str]) -> Selection:
        from tieredctl.ops.metadata.selection import Selection

        return Selection.given(self.topic, self.topic_id, self.partition, segment_ids)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class EventOptions(PartitionOptions):
    """The events that are meant."""

    since: Since = None
    until: Until = None

    def filter(self) -> EventFilter | None:
        """None where nothing is filtered. Raises TieredctlError as `EventFilter.given` does."""
        if not any((self.topic, self.topic_id, self.partition)) and self.since is None and self.until is None:
            return None
        from tieredctl.ops.metadata.event_filter import EventFilter

        return EventFilter.given(self.selection(), self.since, self.until)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SegmentOptions(PartitionOptions):
    """The segments that are meant."""

    segment_id: SegmentIds = None

    def selection(self) -> Selection:
        """Raises TieredctlError as `Selection` does."""
        return self._of_segments(self.segment_id or ())
