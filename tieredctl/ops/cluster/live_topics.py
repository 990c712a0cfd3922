"""Which topics a cluster has: from the cluster itself, a KRaft snapshot, or a list of ids.

A deleted topic owns no objects, so "gone" needs proof. Whatever no source clearly answers is unknown.

Topics that the metadata has live segments of and a live cluster does not show: hidden is not absent.

A user who may not describe a topic does not see it in any list. Asked for it by id, brokers tell what does not exist
from what the user may not see.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition, uuid_bytes
from tieredctl.ops.cluster.offline_cluster import CLOCK_SKEW_MS, MetadataLogBeside, OfflineCluster, UnprovenTopics
from tieredctl.ops.documents import Document
from tieredctl.ports.metadata_source import METADATA_TOPIC, MetadataSource

_NO_TIMESTAMP = -1
_LARGEST_LIST_BYTES = 64 << 20
"""Enough for two million ids; reading a device would never end."""
_MOST_SHOWN = 60
"""Characters of a line that is not an id."""


class LiveTopics(Protocol):
    """What is known about which topics exist."""

    def is_live(self, topic_id: str) -> bool | None:
        """Whether a topic exists; None where unknown."""
        ...

    def describe(self) -> Document | None:
        """The source, for the `source` of a JSON document; None where there is none."""
        ...


class TopicLookup(Protocol):
    """A live cluster that can be asked for topics by id."""

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        """For each topic whether it exists now; None where the cluster gives no clear answer."""
        ...

    def describe(self) -> Document: ...


@dataclass(frozen=True, slots=True)
class AnsweredTopics:
    """A `TopicLookup` of what is known already."""

    live: LiveTopics

    def ask(self, topic_ids: Collection[str]) -> Mapping[str, bool | None]:
        return {topic_id: self.live.is_live(topic_id) for topic_id in topic_ids}

    def describe(self) -> Document:
        return self.live.describe() or {}


@dataclass(frozen=True, slots=True)
class TopicSources:
    """The source of which topics exist: at most one of these. Raises TieredctlError `topics-doubtful` for an empty
    list."""

    topic_ids: frozenset[str] | None = None
    """The ids of all topics."""
    snapshot: OfflineCluster | None = None
    """A KRaft snapshot, alone or with the log after it."""
    cluster: TopicLookup | None = None
    beside: MetadataLogBeside | None = None
    """The metadata log in the metadata's own log directories, which nobody named."""

    def __post_init__(self) -> None:
        if self.topic_ids is not None and not self.topic_ids:
            raise TieredctlError(ErrorCode.TOPICS_DOUBTFUL, "The list of topic ids is empty.")

    @property
    def silence(self) -> str | None:
        """That it is unknown which topics are live, and why, if the cluster was asked and did not answer."""
        reason = None if self.cluster is None else self.cluster.describe().get("unanswered")
        return None if reason is None else f"It is unknown which topics are live: {reason}"

    @property
    def lone_witness(self) -> str | None:
        """That the snapshot is the only witness of which topics are gone: no log from before its end confirms it."""
        beside = None if self.beside is None else self.beside.found
        snapshot = beside if isinstance(beside, OfflineCluster) else self.snapshot
        return None if snapshot is None else snapshot.lone_witness

    def findings(self) -> list[Finding]:
        """What makes the snapshot incomplete."""
        return [] if self.snapshot is None else list(self.snapshot.findings())


NO_TOPIC_SOURCES = TopicSources()


def live_topics(
    sources: TopicSources,
    first_events_ms: Mapping[str, int],
    metadata: MetadataSource,
    read_until_ms: int | None = None,
) -> LiveTopics:
    """What the sources know. A live cluster is asked now, which must be after the topics' names were read.

    `first_events_ms` has each topic id that the metadata names, with the time of its first event (ms), and
    `read_until_ms` is the time of its last record: without it, a metadata log beside it proves nothing. Raises
    TieredctlError for a snapshot of another cluster than the metadata's.
    """
    if sources.topic_ids is not None:
        return _ListedTopics(sources.topic_ids)
    if sources.snapshot is not None:
        return _snapshot_topics(sources.snapshot, first_events_ms, metadata.cluster_id)
    if sources.cluster is not None:
        return _ClusterTopics(sources.cluster, dict(sources.cluster.ask(first_events_ms)))
    if sources.beside is not None:
        return _beside(sources.beside, first_events_ms, metadata, read_until_ms)
    return _NoTopics()


def _beside(
    beside: MetadataLogBeside, first_events_ms: Mapping[str, int], metadata: MetadataSource, read_until_ms: int | None
) -> LiveTopics:
    unproven = beside.why_unproven(metadata, first_events_ms, read_until_ms)
    if unproven is not None or isinstance(beside.found, str):
        return UnprovenTopics(unproven or str(beside.found))
    return _snapshot_topics(beside.found, first_events_ms, metadata.cluster_id)


def demand_believable(sources: TopicSources, live: LiveTopics, topic_ids: Collection[str]) -> None:
    """Raises TieredctlError `topics-doubtful` where a list or a snapshot has none of these topics, which have segments
    by the metadata: all their objects would become orphans."""
    if sources.cluster is not None or sources.beside is not None:
        return  # the log beside the metadata has its topic, and some of these
    answers = {topic_id: live.is_live(topic_id) for topic_id in topic_ids}
    if False in answers.values() and True not in answers.values():
        message = f"{_named(sources)} has none of the topics with segments in the metadata, such as {min(answers)}."
        hint = "Is it from this cluster? If all tiered topics were deleted, give --bootstrap-server."
        raise TieredctlError(ErrorCode.TOPICS_DOUBTFUL, message, hint=hint)


def doubt_about(sources: TopicSources, metadata: MetadataSource) -> TieredctlError | None:
    """Why a list or a snapshot cannot have all topics: the metadata topic itself must be one of them. None if it is.

    Such a source is good enough for a look, but nothing may be removed by it.
    """
    topic_id = metadata.metadata_topic_id
    topic_ids = sources.topic_ids if sources.snapshot is None else sources.snapshot.topic_ids
    if topic_ids is None or topic_id is None or topic_id in topic_ids:
        return None
    message = f"{_named(sources)} lacks {topic_id}, the id of {METADATA_TOPIC}: it does not have all topics."
    return TieredctlError(ErrorCode.TOPICS_DOUBTFUL, message)


def demand_all_topics(sources: TopicSources, metadata: MetadataSource) -> None:
    """Raises the doubt of `doubt_about`, if there is one."""
    doubt = doubt_about(sources, metadata)
    if doubt is not None:
        raise doubt


def _named(sources: TopicSources) -> str:
    return "The list of topic ids" if sources.snapshot is None else str(sources.snapshot.path)


@dataclass(frozen=True, slots=True)
class RememberedTopics:
    """A topic that was once known to be gone stays gone when answers are missing: ids never come back."""

    live: LiveTopics
    gone: set[str]

    def is_live(self, topic_id: str) -> bool | None:
        answer = self.live.is_live(topic_id)
        if answer is False:
            self.gone.add(topic_id)
        return False if answer is None and topic_id in self.gone else answer

    def describe(self) -> Document | None:
        return self.live.describe()


@dataclass(frozen=True, slots=True)
class KnownTopics:
    """The topic ids in the metadata, and further live ones."""

    named: Container[str]
    live: LiveTopics

    def __contains__(self, topic_id: object) -> bool:
        return topic_id in self.named or (isinstance(topic_id, str) and self.live.is_live(topic_id) is True)


class _NoTopics:
    def is_live(self, topic_id: str) -> bool | None:  # noqa: ARG002 - the protocol's
        return None

    def describe(self) -> Document | None:
        return None


@dataclass(frozen=True, slots=True)
class _ListedTopics:
    topic_ids: frozenset[str]

    def is_live(self, topic_id: str) -> bool | None:
        return topic_id in self.topic_ids

    def describe(self) -> Document | None:
        return {"kind": "topic-ids", "topics": len(self.topic_ids)}


@dataclass(frozen=True, slots=True)
class _SnapshotTopics:
    """A topic that the snapshot does not have is gone if it existed before the snapshot was taken: ids never come
    back. Without proof of that, it may have been created later; where a clock was wrong, nothing proves it.

    The log after the snapshot makes it current. What that removes and may not be committed is unknown, and so is what
    is missing where some records were not understood.
    """

    snapshot: OfflineCluster
    first_events_ms: Mapping[str, int]

    def is_live(self, topic_id: str) -> bool | None:
        if topic_id in self.snapshot.topic_ids:
            return True
        if topic_id in self.snapshot.withdrawn_topic_ids or not self.snapshot.image.is_certain:
            return None
        first_ms = self.first_events_ms.get(topic_id, _NO_TIMESTAMP)
        return False if 0 < first_ms < self.snapshot.committed_ms - CLOCK_SKEW_MS else None

    def describe(self) -> Document | None:
        return self.snapshot.describe()


def _snapshot_topics(
    snapshot: OfflineCluster, first_events_ms: Mapping[str, int], cluster_id: str | None
) -> LiveTopics:
    """A snapshot is from this cluster if the cluster ids match; without them, if it has one of the topics: no two
    clusters share one."""
    if None not in (snapshot.cluster_id, cluster_id):
        if snapshot.cluster_id != cluster_id:
            message = f"{snapshot.path} is from cluster {snapshot.cluster_id}, but the metadata is from {cluster_id}."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give a snapshot of the metadata's cluster.")
    elif snapshot.topic_ids.isdisjoint(first_events_ms):
        return _SnapshotTopics(snapshot, {})
    return _SnapshotTopics(snapshot, first_events_ms)


@dataclass(frozen=True, slots=True)
class _ClusterTopics:
    """Asks about each topic once."""

    cluster: TopicLookup
    answers: dict[str, bool | None] = field(default_factory=dict)

    def is_live(self, topic_id: str) -> bool | None:
        if topic_id not in self.answers:
            self.answers.update(self.cluster.ask([topic_id]))
        return self.answers[topic_id]

    def describe(self) -> Document | None:
        return self.cluster.describe()


def read_topic_ids(file: Path) -> frozenset[str]:
    """The ids in a text file, one per line. Raises TieredctlError for anything that is not an id: with half a list, the
    objects of the other half would become orphans."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST_LIST_BYTES + 1)
        if len(data) > _LARGEST_LIST_BYTES:
            raise TieredctlError(
                ErrorCode.UNREADABLE, f"{file} cannot be read: it is too large for a list of topic ids.", hint=""
            )
        lines = data.decode("utf-8").splitlines()
    except UnicodeDecodeError:
        raise TieredctlError(ErrorCode.USAGE, f"{file} is not a list of topic ids: it is not a text file.") from None
    except OSError as error:
        raise TieredctlError(ErrorCode.UNREADABLE, f"{file} cannot be read: {error.strerror}.") from None
    return frozenset(_topic_ids(file, lines))


def _topic_ids(file: Path, lines: Iterable[str]) -> Iterable[str]:
    for topic_id in filter(None, map(str.strip, lines)):
        try:
            uuid_bytes(topic_id)
        except ValueError:
            shown = repr(topic_id[:_MOST_SHOWN])
            raise TieredctlError(ErrorCode.USAGE, f"{file} has {shown}, which is not a topic id.") from None
        yield topic_id


HIDDEN = "topics that the cluster does not show"
"""Their name in findings."""
_NAMED = 5


def hidden_topics(
    shown: Collection[str], live_segments: Mapping[TopicIdPartition, int], lookup: TopicLookup
) -> list[Finding]:
    """The finding about topics that are not known to be gone and not among the names that the cluster has `shown`; none
    where there are none. `live_segments` are how many the metadata has, by partition; the cluster is asked only about
    topics that it did not show."""
    segments: dict[str, int] = {}
    names: dict[str, str] = {}
    for partition, number in live_segments.items():
        if number and partition.topic not in shown:
            segments[partition.topic_id] = segments.get(partition.topic_id, 0) + number
            names[partition.topic_id] = partition.topic
    answers = lookup.ask(segments) if segments else {}
    hidden = [topic_id for topic_id in sorted(segments) if answers.get(topic_id) is not False]
    if not hidden:
        return []
    listed = ", ".join(f"{names[one]} ({one})" for one in hidden[:_NAMED])
    more = f" and {len(hidden) - _NAMED} more" if len(hidden) > _NAMED else ""
    total = sum(segments[one] for one in hidden)
    why = lookup.describe().get("unanswered")
    reason = f"the cluster gave no answer: {why}" if why else "the user needs the operation Describe on them"
    message = (
        f"the metadata has {counted(total, 'live segment')} of {listed}{more}, of which nothing is known: {reason}"
    )
    evidence: dict[str, object] = {"topicIds": hidden, "segments": total}
    return [Finding(FindingCode.CHECK_NOT_MADE, HIDDEN, message, evidence)]
