"""The codes of what `doctor` finds: about settings, releases, the metadata topic, and what tiering has left undone."""

from __future__ import annotations

from tieredctl.model.finding_kind import FindingKind, Severity

_SET_TOPIC = (
    "kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name {topic} --add-config {name}={value}"
)
_UNSET_TOPIC = (
    "kafka-configs --bootstrap-server … --alter --entity-type topics --entity-name {topic} --delete-config {name}"
)
_SET_PROPERTY = "in server.properties: {name}={value}"
_STATUS = "tieredctl topic status {topic} …"
_TOPIC_OF_METADATA = "kafka-topics --bootstrap-server … --describe --topic __remote_log_metadata"
_DESCRIBE_GROUP = "kafka-consumer-groups --bootstrap-server … --describe --group {group}"

DOCTOR_FINDING_KINDS = (
    FindingKind(
        "check-not-made",
        Severity.WARNING,
        "something could not be looked at, and why: the answer is incomplete",
        "tieredctl doctor …",
        incomplete=True,
    ),
    FindingKind(
        "broker-metadata-standstill",
        Severity.ERROR,
        "brokers do not apply what the controllers decide: they cannot lead what a failed broker led",
        "{command}",
    ),
    FindingKind(
        "broker-config-tiering-off",
        Severity.WARNING,
        "tiered storage is off on this broker or controller: topics with it can't be made, or not be served here",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-value-invalid",
        Severity.ERROR,
        "a value that Kafka refuses: the broker does not start",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-name-unknown",
        Severity.WARNING,
        "a setting that brokers do not have, and pass over",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-manager-missing",
        Severity.ERROR,
        "tiered storage is on, but what it needs to work is not named",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-local-retention",
        Severity.ERROR,
        "the default for local retention is above that for all of it, which Kafka refuses",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-several-log-dirs",
        Severity.ERROR,
        "several log directories with tiered storage, which releases before 3.8 refuse",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-metadata-replication",
        Severity.WARNING,
        "the metadata topic would be made with fewer than three replicas",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-metadata-min-isr",
        Severity.WARNING,
        "the metadata topic would be made with a min ISR that loses events, or stops tiering, with one broker",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-metadata-retention",
        Severity.ERROR,
        "the metadata topic would be made with a retention that may end before the data's",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-metadata-partitions",
        Severity.ERROR,
        "the metadata topic has another number of partitions than the broker is told: it will not start, or not tier",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-copy-quota",
        Severity.INFO,
        "nothing limits what a broker copies: tiering a big topic may hurt producers",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-fetch-quota",
        Severity.INFO,
        "nothing limits what a broker fetches from remote storage",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-thread-pool",
        Severity.INFO,
        "a thread pool smaller than Kafka's default, or set by a name that has no effect any more",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-index-cache",
        Severity.WARNING,
        "the cache of remote indexes is too small for what all reader threads may need at once",
        _SET_PROPERTY,
    ),
    FindingKind(
        "broker-config-custom-metadata",
        Severity.ERROR,
        "custom metadata may be larger than the broker accepts: such a copy fails",
        _SET_PROPERTY,
    ),
    FindingKind("topic-config-value-invalid", Severity.ERROR, "a value that Kafka refuses", _UNSET_TOPIC),
    FindingKind(
        "topic-config-copy-lag",
        Severity.ERROR,
        "a copy lag above local retention, which Kafka refuses, or with which nothing is ever copied",
        _SET_TOPIC,
    ),
    FindingKind("topic-config-name-unknown", Severity.ERROR, "a setting that topics do not have", _SET_TOPIC),
    FindingKind(
        "topic-config-cleanup-policy",
        Severity.ERROR,
        "a compacted topic can't be tiered",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-local-retention",
        Severity.ERROR,
        "local retention is above total retention, which Kafka refuses",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-copy-disable",
        Severity.ERROR,
        "copying is disabled, but local retention is below total retention, which Kafka refuses",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-release",
        Severity.ERROR,
        "a setting that this release does not know",
        _UNSET_TOPIC,
    ),
    FindingKind(
        "topic-config-small-segments",
        Severity.WARNING,
        "segments are small: each is five objects or more, three requests or more, and two events to replay",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-segment-exceeds-local-retention",
        Severity.INFO,
        "one segment is larger than what local retention is to keep: more stays on the disk",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-kept-twice",
        Severity.WARNING,
        "local retention is total retention: all is kept, and paid for, locally and in remote storage",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-metadata-replication",
        Severity.WARNING,
        "the metadata topic has fewer than three replicas",
        "kafka-reassign-partitions --bootstrap-server … --execute --reassignment-json-file FILE",
    ),
    FindingKind(
        "topic-config-metadata-min-isr",
        Severity.WARNING,
        "the metadata topic's min ISR loses events, or stops tiering, with one broker",
        _SET_TOPIC,
    ),
    FindingKind(
        "topic-config-metadata-retention",
        Severity.ERROR,
        "the metadata topic's retention may end before the data's: remote data becomes unreachable",
        _SET_TOPIC,
    ),
    FindingKind(
        "metadata-topic-missing",
        Severity.ERROR,
        "topics are tiered, but there is no metadata topic",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        "metadata-topic-under-replicated",
        Severity.ERROR,
        "replicas of the metadata topic are not in sync, or it has no leader",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        "metadata-topic-bloated",
        Severity.WARNING,
        "most of the metadata topic is about segments that are gone, and a restart takes long for it",
        "tieredctl metadata stats …",
    ),
    FindingKind(
        "release-unknown",
        Severity.INFO,
        "which release runs can't be known: what depends on it was not judged",
        "tieredctl doctor --kafka-version VERSION …",
    ),
    FindingKind(
        "release-mixed",
        Severity.WARNING,
        "brokers are of different releases, or their metadata version is an older one's",
        "kafka-features --bootstrap-server … describe",
    ),
    FindingKind(
        "release-early-access",
        Severity.WARNING,
        "a release before 3.9, in which tiered storage was in early access",
        "tieredctl doctor upgrade {release} 3.9.1",
    ),
    FindingKind(
        "release-bug",
        Severity.WARNING,
        "a known fault of this release",
        "tieredctl doctor upgrade {release} {fixedIn}",
    ),
    FindingKind(
        "upgrade-step",
        Severity.WARNING,
        "something to do before an upgrade, or because of it",
        "{command}",
    ),
    FindingKind(
        "downgrade-step",
        Severity.WARNING,
        "something to do before a downgrade, or that is lost by it",
        "{command}",
    ),
    FindingKind(
        "retention-counts-unfinished",
        Severity.WARNING,
        "copies that never finished count towards retention.bytes: data goes too early",
        "tieredctl metadata stuck --topic {topic} …",
    ),
    FindingKind(
        "segments-overlap",
        Severity.WARNING,
        "finished segments that others overlap: retention passes over them, until the log start offset is above them",
        "kafka-delete-records --bootstrap-server … --offset-json-file FILE",
    ),
    FindingKind(
        "segments-below-log-start",
        Severity.WARNING,
        "segments that lie wholly below the log start offset are still there: the partition's cleanup does not work",
        "tieredctl metadata segments --topic {topic} --partition {partition} …",
    ),
    FindingKind(
        "tiering-behind",
        Severity.WARNING,
        "closed segments wait for their copy",
        _STATUS,
    ),
    FindingKind(
        "local-disk-not-reclaimed",
        Severity.WARNING,
        "segments that are in remote storage, and past local retention, are still on the leader's disk",
        _STATUS,
    ),
    FindingKind(
        "metadata-topic-compaction",
        Severity.INFO,
        "how far the metadata topic is from being compactable (KIP-1266)",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        "copy-lag-waits",
        Severity.INFO,
        "what waits on leaders' disks for remote.copy.lag, and is not in remote storage meanwhile",
        _STATUS,
    ),
    FindingKind(
        "kept-twice",
        Severity.INFO,
        "bytes that are in remote storage and on the leader's disk at once",
        _STATUS,
    ),
    FindingKind(
        "group-reads-remote",
        Severity.INFO,
        "a consumer group's committed offset is in remote storage only: wait for it before a broker is moved",
        _DESCRIBE_GROUP,
    ),
    FindingKind(
        "group-offset-below-log-start",
        Severity.WARNING,
        "a consumer group's committed offset is below the log start: it misses records, and is reset when it reads on",
        _DESCRIBE_GROUP,
    ),
    FindingKind(
        "follower-state-missing",
        Severity.ERROR,
        "an object is not in the store from which new followers build their state: they cannot begin to replicate",
        "tieredctl metadata history {segmentId} …",
        altered=True,
    ),
    FindingKind(
        "transaction-index-damaged",
        Severity.ERROR,
        "a transaction index cannot be used: consumers that read committed records get stuck there",
        "tieredctl remote read {segmentId} --part transaction-index --to FILE …",
        altered=True,
    ),
)
