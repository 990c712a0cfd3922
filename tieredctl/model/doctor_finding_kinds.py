"""The codes of what `doctor` finds: about settings, releases, the metadata topic, and what tiering has left undone."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
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
        FindingCode.CHECK_NOT_MADE,
        Severity.WARNING,
        "something could not be looked at, and why: the answer is incomplete",
        "tieredctl doctor …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.BROKER_METADATA_STANDSTILL,
        Severity.ERROR,
        "brokers do not apply what the controllers decide: they cannot lead what a failed broker led",
        "{command}",
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_TIERING_OFF,
        Severity.WARNING,
        "tiered storage is off on this broker or controller: topics with it can't be made, or not be served here",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_VALUE_INVALID,
        Severity.ERROR,
        "a value that Kafka refuses: the broker does not start",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_NAME_UNKNOWN,
        Severity.WARNING,
        "a setting that brokers do not have, and pass over",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_MANAGER_MISSING,
        Severity.ERROR,
        "tiered storage is on, but what it needs to work is not named",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_LOCAL_RETENTION,
        Severity.ERROR,
        "the default for local retention is above that for all of it, which Kafka refuses",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_SEVERAL_LOG_DIRS,
        Severity.ERROR,
        "several log directories with tiered storage, which releases before 3.8 refuse",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_REPLICATION,
        Severity.WARNING,
        "the metadata topic would be made with fewer than three replicas",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_MIN_ISR,
        Severity.WARNING,
        "the metadata topic would be made with a min ISR that loses events, or stops tiering, with one broker",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_RETENTION,
        Severity.ERROR,
        "the metadata topic would be made with a retention that may end before the data's",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_PARTITIONS,
        Severity.ERROR,
        "the metadata topic has another number of partitions than the broker is told: it will not start, or not tier",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_COPY_QUOTA,
        Severity.INFO,
        "nothing limits what a broker copies: tiering a big topic may hurt producers",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_FETCH_QUOTA,
        Severity.INFO,
        "nothing limits what a broker fetches from remote storage",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_THREAD_POOL,
        Severity.INFO,
        "a thread pool smaller than Kafka's default, or set by a name that has no effect any more",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_INDEX_CACHE,
        Severity.WARNING,
        "the cache of remote indexes is too small for what all reader threads may need at once",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_CUSTOM_METADATA,
        Severity.ERROR,
        "custom metadata may be larger than the broker accepts: such a copy fails",
        _SET_PROPERTY,
    ),
    FindingKind(FindingCode.TOPIC_CONFIG_VALUE_INVALID, Severity.ERROR, "a value that Kafka refuses", _UNSET_TOPIC),
    FindingKind(
        FindingCode.TOPIC_CONFIG_COPY_LAG,
        Severity.ERROR,
        "a copy lag above local retention, which Kafka refuses, or with which nothing is ever copied",
        _SET_TOPIC,
    ),
    FindingKind(FindingCode.TOPIC_CONFIG_NAME_UNKNOWN, Severity.ERROR, "a setting that topics do not have", _SET_TOPIC),
    FindingKind(
        FindingCode.TOPIC_CONFIG_CLEANUP_POLICY,
        Severity.ERROR,
        "a compacted topic can't be tiered",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_LOCAL_RETENTION,
        Severity.ERROR,
        "local retention is above total retention, which Kafka refuses",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_COPY_DISABLE,
        Severity.ERROR,
        "copying is disabled, but local retention is below total retention, which Kafka refuses",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_RELEASE,
        Severity.ERROR,
        "a setting that this release does not know",
        _UNSET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_SMALL_SEGMENTS,
        Severity.WARNING,
        "segments are small: each is five objects or more, three requests or more, and two events to replay",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_SEGMENT_EXCEEDS_LOCAL_RETENTION,
        Severity.INFO,
        "one segment is larger than what local retention is to keep: more stays on the disk",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_KEPT_TWICE,
        Severity.WARNING,
        "local retention is total retention: all is kept, and paid for, locally and in remote storage",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_METADATA_REPLICATION,
        Severity.WARNING,
        "the metadata topic has fewer than three replicas",
        "kafka-reassign-partitions --bootstrap-server … --execute --reassignment-json-file FILE",
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_METADATA_MIN_ISR,
        Severity.WARNING,
        "the metadata topic's min ISR loses events, or stops tiering, with one broker",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_METADATA_RETENTION,
        Severity.ERROR,
        "the metadata topic's retention may end before the data's: remote data becomes unreachable",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_MISSING,
        Severity.ERROR,
        "topics are tiered, but there is no metadata topic",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_UNDER_REPLICATED,
        Severity.ERROR,
        "replicas of the metadata topic are not in sync, or it has no leader",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_BLOATED,
        Severity.WARNING,
        "most of the metadata topic is about segments that are gone, and a restart takes long for it",
        "tieredctl metadata stats …",
    ),
    FindingKind(
        FindingCode.RELEASE_UNKNOWN,
        Severity.INFO,
        "which release runs can't be known: what depends on it was not judged",
        "tieredctl doctor --kafka-version VERSION …",
    ),
    FindingKind(
        FindingCode.RELEASE_MIXED,
        Severity.WARNING,
        "brokers are of different releases, or their metadata version is an older one's",
        "kafka-features --bootstrap-server … describe",
    ),
    FindingKind(
        FindingCode.RELEASE_EARLY_ACCESS,
        Severity.WARNING,
        "a release before 3.9, in which tiered storage was in early access",
        "tieredctl doctor upgrade {release} 3.9.1",
    ),
    FindingKind(
        FindingCode.RELEASE_BUG,
        Severity.WARNING,
        "a known fault of this release",
        "tieredctl doctor upgrade {release} {fixedIn}",
    ),
    FindingKind(
        FindingCode.UPGRADE_STEP,
        Severity.WARNING,
        "something to do before an upgrade, or because of it",
        "{command}",
    ),
    FindingKind(
        FindingCode.DOWNGRADE_STEP,
        Severity.WARNING,
        "something to do before a downgrade, or that is lost by it",
        "{command}",
    ),
    FindingKind(
        FindingCode.RETENTION_COUNTS_UNFINISHED,
        Severity.WARNING,
        "copies that never finished count towards retention.bytes: data goes too early",
        "tieredctl metadata stuck --topic {topic} …",
    ),
    FindingKind(
        FindingCode.SEGMENTS_OVERLAP,
        Severity.WARNING,
        "finished segments that others overlap: retention passes over them, until the log start offset is above them",
        "kafka-delete-records --bootstrap-server … --offset-json-file FILE",
    ),
    FindingKind(
        FindingCode.SEGMENTS_BELOW_LOG_START,
        Severity.WARNING,
        "segments that lie wholly below the log start offset are still there: the partition's cleanup does not work",
        "tieredctl metadata segments --topic {topic} --partition {partition} …",
    ),
    FindingKind(
        FindingCode.TIERING_BEHIND,
        Severity.WARNING,
        "closed segments wait for their copy",
        _STATUS,
    ),
    FindingKind(
        FindingCode.LOCAL_DISK_NOT_RECLAIMED,
        Severity.WARNING,
        "segments that are in remote storage, and past local retention, are still on the leader's disk",
        _STATUS,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_COMPACTION,
        Severity.INFO,
        "how far the metadata topic is from being compactable (KIP-1266)",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        FindingCode.COPY_LAG_WAITS,
        Severity.INFO,
        "what waits on leaders' disks for remote.copy.lag, and is not in remote storage meanwhile",
        _STATUS,
    ),
    FindingKind(
        FindingCode.KEPT_TWICE,
        Severity.INFO,
        "bytes that are in remote storage and on the leader's disk at once",
        _STATUS,
    ),
    FindingKind(
        FindingCode.GROUP_READS_REMOTE,
        Severity.INFO,
        "a consumer group's committed offset is in remote storage only: wait for it before a broker is moved",
        _DESCRIBE_GROUP,
    ),
    FindingKind(
        FindingCode.GROUP_OFFSET_BELOW_LOG_START,
        Severity.WARNING,
        "a consumer group's committed offset is below the log start: it misses records, and is reset when it reads on",
        _DESCRIBE_GROUP,
    ),
    FindingKind(
        FindingCode.FOLLOWER_STATE_MISSING,
        Severity.ERROR,
        "an object is not in the store from which new followers build their state: they cannot begin to replicate",
        "tieredctl metadata history {segmentId} …",
        altered=True,
    ),
    FindingKind(
        FindingCode.TRANSACTION_INDEX_DAMAGED,
        Severity.ERROR,
        "a transaction index cannot be used: consumers that read committed records get stuck there",
        "tieredctl remote read {segmentId} --part transaction-index --to FILE …",
        altered=True,
    ),
)
