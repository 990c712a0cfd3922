"""Where it is known which topics exist, as a value, and how to open it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.wiring.places import ClusterPlace, MetadataPlace

# A look-up in a log directory loads neither a client library nor numpy.
if TYPE_CHECKING:
    from tieredctl.ops.cluster.live_topics import TopicLookup, TopicSources


@dataclass(frozen=True, slots=True)
class TopicsPlace:
    """What knows which topics exist: a file of all their ids, a KRaft snapshot, or the live cluster. With none of
    them, no topic is known to be gone.

    Raises TieredctlError `usage` if both a file and a snapshot are given.
    """

    topic_ids: Path | None = None
    """One id per line."""
    snapshot: Path | None = None
    """A KRaft snapshot, or a node's `__cluster_metadata-0` with the log after it."""
    cluster: ClusterPlace | None = None
    log_dirs: tuple[Path, ...] = ()
    """Log directories whose metadata log may tell it, where nothing else does: as far as it proves anything."""

    def __post_init__(self) -> None:
        if self.topic_ids is not None and self.snapshot is not None:
            raise TieredctlError(ErrorCode.USAGE, "--live-topic-ids and --kraft-snapshot exclude each other.")

    @classmethod
    def beside(
        cls, metadata: MetadataPlace, topic_ids: Path | None = None, snapshot: Path | None = None
    ) -> TopicsPlace:
        """What is given; otherwise the cluster that the metadata belongs to, unless the metadata is of a point in the
        past.

        Raises TieredctlError `usage` if something is given although the cluster itself can be asked.
        """
        offline = [("--kraft-snapshot", snapshot is not None)]
        if metadata.as_of is None:
            offline.append(("--live-topic-ids", topic_ids is not None))
        for option, is_given in offline:
            if is_given and metadata.cluster is not None:
                hint = f"The cluster itself is asked which topics exist; omit {option}."
                raise TieredctlError(ErrorCode.USAGE, f"{option} is for a cluster that is down.", hint=hint)
        return cls(topic_ids, snapshot, metadata.cluster if metadata.as_of is None else None)

    def or_logs_of(self, metadata: MetadataPlace) -> TopicsPlace:
        """The place with the metadata log that lies in the metadata's own log directories, where nothing else is given;
        the metadata of a point in the past is older than that log."""
        is_given = (self.topic_ids, self.snapshot, self.cluster) != (None, None, None)
        return self if is_given or metadata.as_of is not None else replace(self, log_dirs=metadata.log_dirs)

    def lone_witness(self) -> str | None:
        """That a snapshot alone says which topics are gone, if so. Raises TieredctlError if it cannot be read."""
        from tieredctl.ops.cluster.live_topics import TopicSources
        from tieredctl.wiring.offline_cluster import OfflineClusterPlace, metadata_log_beside

        if self.snapshot is not None:
            return OfflineClusterPlace(self.snapshot).read().lone_witness
        return TopicSources(beside=metadata_log_beside(self.log_dirs)).lone_witness

    @contextmanager
    def lookup(self) -> Iterator[TopicLookup]:
        """The live cluster, which is connected to when it is first asked."""
        from tieredctl.kafka.topics_by_id import TopicsById

        assert self.cluster is not None
        with closing(TopicsById(self.cluster.bootstrap_server, self.cluster.command_config)) as cluster:
            yield cluster

    @contextmanager
    def open(self, now_ms: int) -> Iterator[TopicSources]:
        """Reads the file or the snapshot; or connects to the cluster, which is asked later. Raises TieredctlError if
        that fails."""
        from tieredctl.ops.cluster.live_topics import TopicSources, read_topic_ids
        from tieredctl.wiring.offline_cluster import OfflineClusterPlace, metadata_log_beside

        if self.topic_ids is not None:
            yield TopicSources(topic_ids=read_topic_ids(self.topic_ids))
        elif self.snapshot is not None:
            yield TopicSources(snapshot=OfflineClusterPlace(self.snapshot).read().by_the_clock(now_ms))
        elif self.cluster is not None:
            with self.lookup() as cluster:
                yield TopicSources(cluster=cluster)
        else:
            yield TopicSources(beside=metadata_log_beside(self.log_dirs, now_ms))
