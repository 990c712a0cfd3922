"""`topic disable`: KIP-950's two ways out of tiered storage, what each entails, and where neither exists.

`remote.log.copy.disable` keeps remote data readable until retention removes it. `remote.storage.enable=false` with
`remote.log.delete.on.disable=true` deletes all of it at once; without that, Kafka refuses it since 3.9. Before 3.9
Kafka accepts it (ConfigHandler logs a warning) and no longer reads or deletes what is in remote storage.

How much brokers may delete at once when a topic is no longer tiered, and how to empty remote storage without that.

From 3.9 (KIP-950) to 4.3.1, and when a tiered topic is deleted since 3.6, leaders delete remote segments in the thread
that applies cluster metadata (DynamicConfigPublisher, ReplicaManager.applyDelta; RemoteLogManager.stopPartitions): one
segment after the other, and until the last is deleted the broker applies no new leader, topic or setting. It first
writes events and waits for them: if the leader of their metadata partition dies meanwhile, waiting brokers cannot take
over.

Measured with one 4.3.1 broker on a busy machine, from the first event of a deletion to the last, in that thread (its
stack was looked at): 100 segments take 0.11 s in Kafka's LocalTieredStorage, which is 1 ms each, and 5.4 s in a store
that takes 50 ms to delete one, which is 54 ms each. So a broker adds next to nothing: the store's own time counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum

from tieredctl.model.counted import counted
from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.findings import Finding, Severity
from tieredctl.model.pasteable import pasteable
from tieredctl.model.quantities import size_text
from tieredctl.model.size_sum import SizeSum, total_size
from tieredctl.ops.cluster import topic_settings as names
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import AS_TOTAL, RETENTION_BYTES, RETENTION_MS, TopicSettings
from tieredctl.ops.doctor.gathering import oldest_release
from tieredctl.ops.doctor.looking import Looking
from tieredctl.ops.documents import Document
from tieredctl.ops.tiering.config_change import ConfigChange, config_change, is_tiered, refusals
from tieredctl.ops.tiering.enable import leaderless
from tieredctl.ops.tiering.partition_bytes import PartitionBytes, read_partition_offsets
from tieredctl.ops.tiering.remote_topic import RemoteTopic
from tieredctl.ports.cluster import Cluster, ConfigValue, TopicDescription, settings_of
from tieredctl.ports.metadata_source import METADATA_TOPIC

_FIRST_LINE = (3, 9)
_FREE = "free bytes on disks"
"""Their name in findings."""
_LIMITS = (
    (names.LOCAL_RETENTION_MS, names.RETENTION_MS),
    (names.LOCAL_RETENTION_BYTES, names.RETENTION_BYTES),
)


class Form(Enum):
    """What the user asks for."""

    STOP_COPYING = "stop-copying"
    """Copying stops; what is in remote storage stays until its retention ends."""
    DELETE = "delete"
    """Everything in remote storage is deleted; the log then begins where the leader's local log does."""


@dataclass(frozen=True, slots=True)
class PartitionLoss:
    """A partition's share. `offsets` are those (first, last) that are only in remote storage, None without any;
    `only_remote_bytes` is their size there."""

    bytes: PartitionBytes
    segments: int
    remote_bytes: SizeSum
    offsets: tuple[int, int] | None
    only_remote_bytes: SizeSum

    def document(self) -> Document:
        return {
            "partition": self.bytes.partition.partition,
            "leader": self.bytes.partition.leader,
            "remoteSegments": self.segments,
            "remoteBytes": self.remote_bytes.known,
            "offsetsOnlyRemote": None if self.offsets is None else list(self.offsets),
            "bytesOnlyRemote": self.only_remote_bytes.known,
        }


@dataclass(frozen=True, slots=True)
class DisablePlan:
    """What is to be set, the findings, most severe first, and what the change affects.

    `local_bytes_needed` and `free_bytes` are by broker: the space that local disks need for what is only remote now.
    """

    form: Form
    change: ConfigChange
    findings: Sequence[Finding] = ()
    partitions: Sequence[PartitionLoss] = ()
    local_bytes_needed: Mapping[int, SizeSum] | None = None
    free_bytes: Mapping[int, int] | None = None
    steps: Sequence[str] = ()
    """The manual way, where the release cannot do it or too much would be deleted at once."""

    @property
    def remote_size(self) -> SizeSum:
        """The size of the logs of all segments."""
        return total_size(one.remote_bytes for one in self.partitions)

    @property
    def only_remote_size(self) -> SizeSum:
        """How much of that is nowhere else."""
        return total_size(one.only_remote_bytes for one in self.partitions)

    @property
    def was_tiered(self) -> bool:
        """Whether the topic is tiered now."""
        return is_tiered(self.change.before)

    @property
    def is_refused(self) -> bool:
        """Whether something was found that must be fixed first."""
        return any(finding.severity >= Severity.ERROR for finding in self.findings)

    def summary(self) -> Document:
        """The summary of every output format, without the findings."""
        topic, needed, free = self.change.topic, self.local_bytes_needed or {}, self.free_bytes or {}
        return {
            "topic": topic.topic,
            "topicId": topic.topic_id,
            "form": self.form.value,
            **self.change.document(),
            "remoteSegments": sum(one.segments for one in self.partitions),
            "remoteBytes": self.remote_size.known,
            "bytesOnlyRemote": self.only_remote_size.known,
            "partitions": [one.document() for one in self.partitions],
            "brokers": [
                {"brokerId": broker, "localBytesNeeded": needed[broker].known, "freeBytes": free.get(broker)}
                for broker in sorted(needed)
            ],
            "steps": list(self.steps),
        }


def plan_disable(cluster: Cluster, remote: RemoteTopic, form: Form, *, at_once: bool = False) -> DisablePlan:
    """Plans to stop copying a topic, or to delete what it has in remote storage. Changes nothing.

    `at_once` allows deleting more than is safe at once.

    Raises TieredctlError as the cluster does, and where the metadata cannot be read in full.
    """
    topic = remote.topic
    before = settings_of(cluster, topic.topic)
    release = oldest_release(cluster)
    if not is_tiered(before):
        return DisablePlan(form, ConfigChange(topic, before, {}), list(_left_over(remote, release)))
    change = config_change(topic, before, _wanted(before, form))
    if change.is_empty:
        return DisablePlan(form, change)
    if release is not None and release.line < _FIRST_LINE:
        return DisablePlan(form, change, [_unsupported(topic, release)], steps=steps_before_3_9(topic))
    partitions = [_loss(one, remote) for one in read_partition_offsets(cluster, topic)]
    looking = Looking()
    needed = _local_bytes_needed(partitions)
    told = looking.where_allowed(_FREE, lambda: cluster.free_bytes([topic.topic]))
    free = told or {}
    findings = [*_effects(topic, form, partitions, needed, free), *remote.unknown_sizes(), *refusals(cluster, change)]
    if form is Form.STOP_COPYING and any(one != SizeSum() for one in needed.values()):
        findings += [*looking.findings, *(() if told is None else _unknown_free(needed, free))]
    steps: Sequence[str] = ()
    if form is Form.DELETE:
        findings += leaderless(cluster.topic(METADATA_TOPIC), Severity.ERROR)
        if too_much := deletes_too_much(topic, sum(one.segments for one in partitions), at_once=at_once):
            findings.append(too_much)
            settings = names.TopicSettings(topic.topic, {name: one.value for name, one in before.items()}, release)
            steps = () if at_once else steps_of_emptying(settings)
    ordered = sorted(findings, key=lambda one: -one.severity)
    return DisablePlan(form, change, ordered, partitions, needed, free, steps)


def _wanted(before: Mapping[str, ConfigValue], form: Form) -> dict[str, str | None]:
    if form is Form.DELETE:
        return {names.REMOTE_STORAGE_ENABLE: "false", names.DELETE_ON_DISABLE: "true", names.COPY_DISABLE: None}
    wanted: dict[str, str | None] = {names.COPY_DISABLE: "true"}
    for local, total in _LIMITS:
        # Kafka refuses any other. Set rather than unset: a broker may have a default of its own.
        if local in before and before[local].value not in (str(AS_TOTAL), before[total].value):
            wanted[local] = str(AS_TOTAL)
    return wanted


def _loss(one: PartitionBytes, remote: RemoteTopic) -> PartitionLoss:
    number = one.partition.partition
    segments = remote.segments(number)
    # Where the leader does not report its local log start, all of it may be only remote.
    local_start = 0 if segments.end_offset is None else segments.end_offset + 1
    local_start = local_start if one.earliest_local is None else one.earliest_local
    only_remote = remote.bytes_below(number, local_start)
    first = local_start if segments.start_offset is None else segments.start_offset
    offsets = (first, local_start - 1) if only_remote != SizeSum() and first < local_start else None
    return PartitionLoss(one, segments.count, segments.size, offsets, only_remote)


def _local_bytes_needed(partitions: Sequence[PartitionLoss]) -> dict[int, SizeSum]:
    """By broker: every replica would need the space of what is only remote now."""
    needed: dict[int, SizeSum] = {}
    for one in partitions:
        for broker in one.bytes.partition.replicas:
            needed[broker] = needed.get(broker, SizeSum()) + one.only_remote_bytes
    return needed


def _effects(
    topic: TopicDescription,
    form: Form,
    partitions: Sequence[PartitionLoss],
    needed: Mapping[int, SizeSum],
    free: Mapping[int, int],
) -> Iterator[Finding]:
    if form is Form.STOP_COPYING:
        yield from _fills_disks(topic, needed, free)
        return
    yield from leaderless(topic, Severity.ERROR)
    segments = sum(one.segments for one in partitions)
    if segments:
        size = total_size(one.remote_bytes for one in partitions)
        lost = total_size(one.only_remote_bytes for one in partitions)
        which = counted(segments, "segment")
        message = f"{which}, {size}, will be deleted from remote storage; {lost} is nowhere else"
        evidence: dict[str, object] = {
            "topic": topic.topic,
            "segments": segments,
            "bytes": size.known,
            "bytesOnlyRemote": lost.known,
            "partitions": [one.document() for one in partitions if one.segments],
        }
        yield Finding(FindingCode.TOPIC_DISABLE_DELETES, f"topic {topic.topic}", message, evidence)


def _fills_disks(topic: TopicDescription, needed: Mapping[int, SizeSum], free: Mapping[int, int]) -> Iterator[Finding]:
    for broker, more in needed.items():
        if broker in free and more.least > free[broker]:
            message = f"its disk may need {more} more for this topic, and has {size_text(free[broker])} free"
            evidence = {"topic": topic.topic, "brokerId": broker, "bytes": more.known, "freeBytes": free[broker]}
            yield Finding(FindingCode.TOPIC_DISABLE_FILLS_DISKS, f"broker {broker}", message, evidence)


def _unknown_free(needed: Mapping[int, SizeSum], free: Mapping[int, int]) -> Iterator[Finding]:
    """The finding that whether some disks can hold it is not known."""
    silent = [f"broker {broker}" for broker in sorted(needed) if broker not in free and needed[broker] != SizeSum()]
    if silent:
        message = f"Disks whose free bytes are unknown: those of {', '.join(silent)}, which may be down."
        yield Finding(FindingCode.CHECK_NOT_MADE, _FREE, message)


def _left_over(remote: RemoteTopic, release: Release | None) -> Iterator[Finding]:
    """The finding that a topic which is not tiered has remote segments: leaders are deleting them, failed, or never
    try."""
    segments, size = remote.segment_count, remote.size
    if not segments:
        return
    topic = remote.topic
    if release is not None and release.line < _FIRST_LINE:
        why = f"Kafka {release} neither reads nor deletes them until the topic is tiered again"
        command = pasteable("tieredctl topic enable {topic} …", {"topic": topic.topic})
    else:
        why = "leaders are still deleting them, or gave up"
        command = f"tieredctl partition remove {topic.topic_id} --even-if-live --segment-events-only …"
    yield from remote.unknown_sizes()
    evidence = {
        "topic": topic.topic,
        "topicId": topic.topic_id,
        "segments": segments,
        "bytes": size.known,
        "command": command,
    }
    message = f"{counted(segments, 'segment')}, {size}, left in remote storage: {why}"
    yield Finding(FindingCode.REMOTE_DATA_LEFT, f"topic {topic.topic}", message, evidence)


def _unsupported(topic: TopicDescription, release: Release) -> Finding:
    message = f"Kafka {release} cannot turn tiering off; copy the topic to another one instead"
    return Finding(
        FindingCode.TOPIC_DISABLE_UNSUPPORTED,
        f"topic {topic.topic}",
        message,
        {"topic": topic.topic, "release": str(release)},
    )


def steps_before_3_9(topic: TopicDescription) -> list[str]:
    """The way without KIP-950: copy the topic, move its users, delete it."""
    name, copy = topic.topic, f"{topic.topic}.local"
    replicas = max((len(one.replicas) for one in topic.partitions), default=1)
    shape = f"--partitions {len(topic.partitions)} --replication-factor {replicas}"
    return [
        f"kafka-topics --bootstrap-server … --create --topic {copy} {shape}",
        f"Copy {name} to {copy} from the first offset on with a consumer and a producer, partition by partition.",
        f"Stop the producers of {name}; once {copy} has its last records, have them write to {copy}.",
        f"Move the consumers to {copy}. Its offsets differ: kafka-consumer-groups --reset-offsets --to-datetime …",
        f"kafka-topics --bootstrap-server … --delete --topic {name}",
        f"tieredctl partition remove {topic.topic_id} --bootstrap-server … --store … --apply",
    ]


MOST_SEGMENTS = 200
"""The most segments for one topic. If the store takes 0.1 s for the objects of each, brokers apply no cluster metadata
for 20 s."""


def deletes_too_much(topic: TopicDescription, segments: int, *, at_once: bool) -> Finding | None:
    """The finding that leaders would delete too many segments while they apply no metadata: an error, unless asked
    for."""
    if segments <= MOST_SEGMENTS:
        return None
    message = (
        f"leaders would delete {segments} segments one by one and apply no cluster metadata until they are done; "
        f"if a leader of the metadata topic fails meanwhile, the cluster stands still. More than {MOST_SEGMENTS} "
        f"segments need --at-once"
    )
    evidence = {"topic": topic.topic, "segments": segments, "mostSegments": MOST_SEGMENTS}
    severity = Severity.WARNING if at_once else None
    return Finding(FindingCode.TOPIC_DISABLE_AT_ONCE, f"topic {topic.topic}", message, evidence, severity)


def steps_of_emptying(settings: TopicSettings) -> list[str]:
    """How to let retention empty remote storage first, in brokers' background threads, and what to watch."""
    named, kept_ms, total_ms = {"topic": settings.topic}, settings.local_retention_ms, settings.number(RETENTION_MS)
    wanted = str(kept_ms) if kept_ms > 0 and not 0 <= total_ms <= kept_ms else "MS"
    estimate = pasteable(f"tieredctl estimate retention {{topic}} --retention-ms {wanted} …", named)
    status = pasteable("tieredctl topic status {topic} …", named)
    alter = pasteable("kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name {topic}", named)
    back = ",".join(f"{one}={settings.text(one)}" for one in (RETENTION_MS, RETENTION_BYTES))
    return [
        pasteable("tieredctl topic disable {topic} --stop-copying --apply …", named),
        f"See what the next step deletes, also on local disks: {estimate}",
        f"{alter} --add-config retention.ms={wanted}; in several steps if that deletes too much at once.",
        f"Wait until at most {MOST_SEGMENTS} segments are in remote storage: {status}",
        pasteable("tieredctl topic disable {topic} --delete --apply …", named),
        f"{alter} --add-config {back}",
    ]
