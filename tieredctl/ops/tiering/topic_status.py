"""`topic list` and `topic status`: what is tiered, how much is where, and how far tiering lags."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated

import numpy as np

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.model.clock import Clock, is_after, is_dated
from tieredctl.model.events import STORED_STATES, RemoteLogSegmentState
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding
from tieredctl.model.ids import TopicIdPartition
from tieredctl.model.result_row import Column, JsonOnly, Main, Quantity, ResultRow, camel_case
from tieredctl.model.size_sum import SizeSum, known_sum, total_size
from tieredctl.ops.cluster.broker_settings import SYSTEM_ENABLE
from tieredctl.ops.cluster.live_topics import TopicLookup, hidden_topics
from tieredctl.ops.cluster.offsets import PartitionOffsets, topic_offsets
from tieredctl.ops.cluster.topic_settings import (
    CopyLag,
    SettingUnknownError,
    TopicSettings,
    copy_lag,
    offset_by_time,
    readable_topic_configs,
    unreadable_settings,
)
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.documents import Document
from tieredctl.ops.metadata.event_stream import EventStream
from tieredctl.ops.metadata.state import replayed, stuck_among
from tieredctl.ops.tiering.partition_bytes import BYTES, not_reported, silent_brokers
from tieredctl.ports.cluster import (
    Cluster,
    ConfigValue,
    ListedOffset,
    PartitionDescription,
    TopicDescription,
    settings_of,
)
from tieredctl.rlmm.cache import KnownSegment

SETTINGS = (
    "remote.storage.enable",
    "remote.log.copy.disable",
    "remote.log.delete.on.disable",
    "retention.ms",
    "retention.bytes",
    "local.retention.ms",
    "local.retention.bytes",
    "remote.copy.lag.ms",
    "remote.copy.lag.bytes",
    "segment.ms",
    "segment.bytes",
    "cleanup.policy",
)
"""The settings that decide what is tiered, and how long it is kept where."""
_ENABLED, _COPY_DISABLED = "remote.storage.enable", "remote.log.copy.disable"
_UNSET = ConfigValue("false", "UNKNOWN")
"""Of a release that does not know a setting."""
_UNFINISHED = (RemoteLogSegmentState.COPY_SEGMENT_STARTED, RemoteLogSegmentState.DELETE_SEGMENT_STARTED)


@dataclass(slots=True)
class RemotePart:
    """What a partition has in remote storage, by its metadata. Times in ms since the epoch.

    Segments that are being deleted count as stored; copies that never finished do not, though brokers of releases
    before 3.8 counted them towards retention (KAFKA-17359).
    """

    segments: int = 0
    bytes: SizeSum = field(default_factory=SizeSum)
    newest_timestamp_ms: int | None = None
    """The greatest record timestamp in it."""
    unfinished: list[KnownSegment] = field(default_factory=list)
    """Copies and deletions that began and did not end."""


RemoteParts = Mapping[TopicIdPartition, RemotePart]


def remote_parts(stream: EventStream) -> RemoteParts:
    """What of each partition is in remote storage. Only unfinished segments become objects."""
    metadata = replayed(stream)
    count, stored = len(metadata.partitions), metadata.in_states(STORED_STATES)
    owners = metadata.rows.partitions[stored].astype(np.int64)
    segments, sizes = np.bincount(owners, minlength=count).tolist(), metadata.size_by(owners, stored, count)
    newest = np.full(count, np.iinfo(np.int64).min)
    np.maximum.at(newest, owners, metadata.max_timestamps(stored))
    parts = {
        metadata.partitions[number]: RemotePart(segments[number], sizes[number], int(newest[number]))
        for number in np.flatnonzero(segments).tolist()
    }
    for partition, segment in metadata.known(metadata.in_states(_UNFINISHED)):
        parts.setdefault(partition, RemotePart()).unfinished.append(segment)
    return parts


@dataclass(frozen=True, slots=True)
class ListedTopic(ResultRow):
    """A topic, in all: None is what is not known."""

    topic: str
    topic_ids: JsonOnly[list[str]]
    partitions: Annotated[int | None, Column(may_be_unknown=True)]
    tiering: Annotated[str, Column(after="topic")]
    remote_segments: Annotated[int, Column("SEGMENTS")]
    remote_bytes: Annotated[int | None, Column("REMOTE", Quantity.SIZE, may_be_unknown=True)]
    local_bytes: Annotated[int | None, Column("LOCAL", Quantity.SIZE, may_be_unknown=True)]
    unfinished: int


def topic_list(
    cluster: Cluster, parts: RemoteParts, *, every: bool = False, lookup: TopicLookup | None = None
) -> tuple[list[ListedTopic], list[Finding]]:
    """A row for each topic that is tiered, or may be, or has something in remote storage; for all topics with `every`.
    And findings for what the user may not see, which is None in the rows. `lookup` tells which topics of the metadata
    are hidden; None where the cluster shows all topics to everybody."""
    partitions = cluster.topic_partitions()
    names = sorted(partitions)
    looking = Looking()
    readable = readable_topic_configs(cluster, names)
    local = looking.where_allowed(BYTES, lambda: cluster.replica_bytes(names))
    existing = (name for name in names if name in readable.settings or name in readable.denied)
    of_topics, on_disks = defaultdict[str, dict[TopicIdPartition, RemotePart]](dict), Counter[str]()
    for partition, part in parts.items():
        of_topics[partition.topic][partition] = part
    for (topic, _), sizes in (local or {}).items():
        on_disks[topic] += sum(sizes.values())
    rows = (
        _listed(name, readable.settings.get(name), partitions[name], on_disks[name], of_topics.get(name, {}))
        for name in existing
    )
    shown = [row for row in rows if every or row.tiering != "off" or row.remote_segments]
    silent = (
        {} if local is None else {row.topic: silent_brokers(row.topic, partitions[row.topic], local) for row in shown}
    )
    shown = [replace(row, local_bytes=None) if local is None or silent[row.topic] else row for row in shown]
    looking.findings += not_reported(set[int]().union(*silent.values()))
    stored = {partition: part.segments for partition, part in parts.items()}
    hidden = [] if lookup is None else hidden_topics(partitions, stored, lookup)
    return shown, [*looking.findings, *hidden, *unreadable_settings(readable.denied)]


def _listed(
    name: str,
    settings: Mapping[str, ConfigValue] | None,
    partitions: Sequence[PartitionDescription],
    local_bytes: int,
    own: RemoteParts,
) -> ListedTopic:
    return ListedTopic(
        *(name, sorted({partition.topic_id for partition in own}), len(partitions) or None),
        "unknown" if settings is None else _tiering(settings),
        sum(part.segments for part in own.values()),
        total_size(part.bytes for part in own.values()).known,
        *(local_bytes, sum(len(part.unfinished) for part in own.values())),
    )


def _tiering(settings: Mapping[str, ConfigValue]) -> str:
    if settings.get(_ENABLED, ConfigValue("false", "")).value != "true":
        return "off"
    return "read-only" if settings.get(_COPY_DISABLED, ConfigValue("false", "")).value == "true" else "on"


@dataclass(frozen=True, slots=True)
class PartitionStatus(ResultRow):
    """A partition: its offsets, what of it is where, and how far tiering lags. None is what is not known."""

    topic: JsonOnly[str]
    partition: int
    leader: Annotated[int | None, Column(importance=0)]
    earliest: Annotated[int | None, Column(importance=0)]
    earliest_local: Annotated[int | None, Column(importance=0)]
    latest_tiered: int | None
    latest: int | None
    not_tiered: Main[int | None]
    remote_segments: Annotated[int, Column("SEGMENTS", wide=True, after="waiting_bytes")]
    remote_bytes: Annotated[int | None, Column("REMOTE", Quantity.SIZE, may_be_unknown=True, after="latest")]
    local_bytes: Annotated[int | None, Column("LOCAL", Quantity.SIZE, may_be_unknown=True, after="remote_bytes")]
    not_tiered_bytes: Annotated[int | None, Column(None, Quantity.SIZE, wide=True, may_be_unknown=True)]
    lag_ms: Annotated[int | None, Column("LAG", Quantity.AGE, importance=2)]
    unfinished: int
    oldest_unfinished_ms: JsonOnly[int | None]
    waiting_bytes: Annotated[int | None, Column(None, Quantity.SIZE, wide=True)]


@dataclass(frozen=True, slots=True)
class TopicStatus:
    """One topic: settings with where each comes from, a row for each partition, and what is stuck."""

    topic: TopicDescription
    settings: Mapping[str, ConfigValue]
    rows: Sequence[PartitionStatus]
    findings: Sequence[Finding]
    ability: TieringAbility
    lag: CopyLag | None = None

    def summary(self) -> Document:
        """The sums of all partitions."""
        counted = ("remote_segments", "remote_bytes", "local_bytes", "not_tiered", "not_tiered_bytes", "unfinished")
        return {
            "tiering": _tiering(self.settings),
            "brokersUnable": _listed_ids(self.ability.unable_brokers),
            "controllersUnable": _listed_ids(self.ability.unable_controllers),
            **known_totals(self.rows, *counted, "waiting_bytes"),
            "copyLag": None if self.lag is None else self.lag._asdict(),
            "settings": {
                name: {"value": self.settings[name].value, "source": self.settings[name].source}
                for name in SETTINGS
                if name in self.settings
            },
        }


def topic_status(cluster: Cluster, name: str, parts: RemoteParts, now_ms: int, older_than_ms: int) -> TopicStatus:
    """Raises TieredctlError as the cluster does."""
    offsets = topic_offsets(cluster, name)
    topic = offsets.topic
    looking = Looking()
    told = looking.where_allowed(BYTES, lambda: cluster.replica_bytes([name]))
    local = told or {}
    settings = settings_of(cluster, name)
    lag, knows_lag = _copy_lag(name, settings)
    young = cluster.list_offsets(topic, max(0, now_ms - lag.ms)) if lag is not None and lag.ms > 0 else {}
    rows, asked = [], offsets.rows()
    for row in asked:
        part = parts.get(TopicIdPartition(topic.topic_id, name, row.partition), RemotePart())
        sizes = local.get((name, row.partition), {})
        local_bytes = None if row.leader is None else sizes.get(row.leader)
        waiting = 0 if lag is None else _waiting_bytes(row, local_bytes, lag, young.get(row.partition))
        waiting = waiting if knows_lag else None
        rows.append(_status(row, part, local_bytes, waiting, now_ms))
    own = (part for partition, part in parts.items() if partition.topic_id == topic.topic_id)
    late = stuck_among([segment for part in own for segment in part.unfinished], Clock(now_ms, older_than_ms))
    if told is not None:
        leaders = [(one.leader, local.get((name, one.partition), {})) for one in topic.partitions]
        looking.findings += not_reported({one for one, sizes in leaders if one is not None and one not in sizes})
    findings = [*looking.findings, *_unanswered(asked), *late.unknown, *late.found]
    return TopicStatus(topic, settings, rows, findings, tiering_ability(cluster), lag)


def _unanswered(rows: Sequence[PartitionOffsets]) -> Iterator[Finding]:
    """The finding that leaders did not report where their logs begin and end."""
    errors = sorted({error for row in rows for error in row.unanswered.values()})
    if errors:
        numbers = ", ".join(str(row.partition) for row in rows if row.unanswered)
        message = f"The leaders of these partitions did not report them: {numbers} ({', '.join(errors)})."
        yield Finding(FindingCode.CHECK_NOT_MADE, f"offsets of topic {rows[0].topic}", message)


def _copy_lag(topic: str, settings: Mapping[str, ConfigValue]) -> tuple[CopyLag | None, bool]:
    """The topic's copy lag, and whether it is known."""
    try:
        return copy_lag(TopicSettings(topic, {name: one.value for name, one in settings.items()})), True
    except SettingUnknownError:
        return None, False


def _listed_ids(nodes: Sequence[int] | None) -> list[int] | None:
    return None if nodes is None else list(nodes)


def _status(
    row: PartitionOffsets, part: RemotePart, local_bytes: int | None, waiting_bytes: int | None, now_ms: int
) -> PartitionStatus:
    started = [segment.entered_ms for segment in part.unfinished]
    are_dated = bool(started) and not any(is_after(moment, now_ms) for moment in started)
    return PartitionStatus(
        *(row.topic, row.partition, row.leader, row.earliest, row.earliest_local, row.latest_tiered, row.latest),
        *(row.not_tiered, part.segments, part.bytes.known, local_bytes, _not_tiered_bytes(row, local_bytes)),
        *(_lag_ms(row, part, now_ms), len(part.unfinished)),
        max(0, now_ms - min(started)) if are_dated else None,
        waiting_bytes,
    )


def known_totals(rows: Sequence[ResultRow], *attributes: str) -> Document:
    """The sums of some attributes, by their JSON names; None where one is not known."""
    return {camel_case(name): known_sum(getattr(row, name) for row in rows) for name in attributes}


def _not_tiered_bytes(row: PartitionOffsets, local_bytes: int | None) -> int | None:
    """The untiered offsets' share of the leader's bytes: an estimate, as records differ in size."""
    if row.not_tiered is None or local_bytes is None or row.earliest_local is None or row.latest is None:
        return None
    offsets = row.latest - row.earliest_local
    return local_bytes * row.not_tiered // offsets if offsets else 0


def _waiting_bytes(
    row: PartitionOffsets, local_bytes: int | None, lag: CopyLag, young: ListedOffset | None
) -> int | None:
    """How many untiered bytes wait for the copy lag; None where unknown."""
    start, latest, tiered = row.earliest_local, row.latest, row.latest_tiered
    if "latestTiered" in row.errors or start is None or latest is None or local_bytes is None:
        return None
    if lag.ms > 0 and (young is None or young.error is not None):
        return None
    if latest == start:
        return 0
    first = start if tiered is None else max(start, tiered + 1)
    begins = first if young is None else max(first, offset_by_time(young, latest))
    pending, behind = (local_bytes * (latest - min(latest, offset)) // (latest - start) for offset in (first, begins))
    return lag.waiting(pending, behind)


def _lag_ms(row: PartitionOffsets, part: RemotePart, now_ms: int) -> int | None:
    """How long ago the newest tiered record was written; 0 where all of it is tiered. None where that is not known, as
    where records have no timestamps."""
    newest_ms = part.newest_timestamp_ms
    if row.not_tiered is None or newest_ms is None:
        return None
    if not row.not_tiered:
        return 0
    return max(0, now_ms - newest_ms) if is_dated(newest_ms, now_ms) else None


@dataclass(frozen=True, slots=True)
class TieringAbility:
    """Ids of the nodes without `remote.log.storage.system.enable`; None where the nodes' settings are unknown."""

    unable_brokers: Sequence[int] | None
    unable_controllers: Sequence[int] | None
    """None also where controllers are nodes of their own: brokers do not report their settings."""


def tiering_ability(cluster: Cluster) -> TieringAbility:
    """Raises TieredctlError where no broker answers. What the user may not ask stays unknown."""
    try:
        configs = cluster.broker_configs()
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED:
            raise
        return TieringAbility(None, None)
    unable = sorted(node for node, settings in configs.items() if settings.get(SYSTEM_ENABLE, _UNSET).value != "true")
    voters = _voters(cluster)
    if voters is None or not configs.keys() >= set(voters):
        return TieringAbility(unable, None)
    return TieringAbility(unable, [voter for voter in voters if voter in unable])


def _voters(cluster: Cluster) -> Sequence[int] | None:
    try:
        return [voter.node_id for voter in cluster.quorum().voters]
    except TieredctlError as error:
        if error.code is not ErrorCode.BROKER_REFUSED:
            raise
        return None
