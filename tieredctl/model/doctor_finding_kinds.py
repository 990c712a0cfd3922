"""What `doctor` finds: about settings, releases, the metadata topic, and tiering that did not finish."""

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
        "something could not be checked, and why: the answer is incomplete",
        "tieredctl doctor …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.LOG_START_UNEXPLAINED,
        Severity.WARNING,
        "a tiered partition begins above offset 0, and the metadata has no event of it: events may be lost",
        "tieredctl remote du --topic {topic} …",
        incomplete=True,
    ),
    FindingKind(
        FindingCode.BROKER_METADATA_STANDSTILL,
        Severity.ERROR,
        "brokers do not apply cluster metadata: they cannot take over partitions that a failed broker led",
        "{command}",
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_TIERING_OFF,
        Severity.WARNING,
        "tiered storage is off on this broker or controller: tiered topics can't be created, or not served here",
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
        "a setting that brokers do not have, and ignore",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_MANAGER_MISSING,
        Severity.ERROR,
        "tiered storage is on, but a setting that it needs is missing",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_LOCAL_RETENTION,
        Severity.ERROR,
        "the default for local retention is above that for total retention, which Kafka refuses",
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
        "the metadata topic would be created with fewer than three replicas",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_MIN_ISR,
        Severity.WARNING,
        "the metadata topic would be created with a min ISR that loses events or stops tiering when one broker fails",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_RETENTION,
        Severity.ERROR,
        "the metadata topic would be created with a retention that may be shorter than the data's",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_METADATA_PARTITIONS,
        Severity.ERROR,
        "the metadata topic's partition count differs from the broker's setting: it will not start, or not tier",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_COPY_QUOTA,
        Severity.INFO,
        "a broker copies without a limit: tiering a big topic may slow down producers",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_FETCH_QUOTA,
        Severity.INFO,
        "a broker fetches from remote storage without a limit",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_THREAD_POOL,
        Severity.INFO,
        "a thread pool smaller than Kafka's default, or set by a name that no longer has an effect",
        _SET_PROPERTY,
    ),
    FindingKind(
        FindingCode.BROKER_CONFIG_INDEX_CACHE,
        Severity.WARNING,
        "the cache of remote indexes is too small for what the reader threads may need at once",
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
        "segments are small: each costs five objects or more, three requests or more, and two events to replay",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_SEGMENT_EXCEEDS_LOCAL_RETENTION,
        Severity.INFO,
        "one segment is larger than local retention: more stays on the disk than that",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_KEPT_TWICE,
        Severity.WARNING,
        "local retention equals total retention: all data is kept, and paid for, locally and in remote storage",
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
        "the metadata topic's min ISR loses events or stops tiering when one broker fails",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.TOPIC_CONFIG_METADATA_RETENTION,
        Severity.ERROR,
        "the metadata topic's retention may be shorter than the data's: remote data becomes unreachable",
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
        FindingCode.METADATA_EVENTS_EXPIRE,
        Severity.ERROR,
        "events of live segments have no keys, and the metadata topic's retention deletes them",
        _SET_TOPIC,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_BLOATED,
        Severity.WARNING,
        "most of the metadata topic is about segments that are gone, which makes a restart slow",
        "tieredctl metadata stats …",
    ),
    FindingKind(
        FindingCode.RELEASE_UNKNOWN,
        Severity.INFO,
        "the running release is not known: what depends on it was not checked",
        "tieredctl doctor --kafka-version VERSION …",
    ),
    FindingKind(
        FindingCode.RELEASE_MIXED,
        Severity.WARNING,
        "brokers run different releases, or their metadata version is older",
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
        "{command}",
    ),
    FindingKind(
        FindingCode.UPGRADE_STEP,
        Severity.WARNING,
        "something to do before or after an upgrade",
        "{command}",
    ),
    FindingKind(
        FindingCode.DOWNGRADE_STEP,
        Severity.WARNING,
        "something to do before a downgrade, or that it loses",
        "{command}",
    ),
    FindingKind(
        FindingCode.RETENTION_COUNTS_UNFINISHED,
        Severity.WARNING,
        "copies that never finished count towards retention.bytes: data is deleted too early",
        "tieredctl metadata stuck --topic {topic} …",
    ),
    FindingKind(
        FindingCode.SEGMENTS_OVERLAP,
        Severity.WARNING,
        "finished segments that others overlap: retention skips them until the log start offset is above them",
        "kafka-delete-records --bootstrap-server … --offset-json-file FILE",
    ),
    FindingKind(
        FindingCode.SEGMENTS_BELOW_LOG_START,
        Severity.WARNING,
        "segments wholly below the log start offset are still there: the partition's cleanup does not work",
        "tieredctl metadata segments --topic {topic} --partition {partition} …",
        moving=True,
    ),
    FindingKind(
        FindingCode.TIERING_BEHIND,
        Severity.WARNING,
        "closed segments wait to be copied",
        _STATUS,
        moving=True,
    ),
    FindingKind(
        FindingCode.COPY_QUOTA_TOO_LOW,
        Severity.WARNING,
        "a broker's quota lets it copy less than is written to the partitions that it leads",
        "kafka-configs --bootstrap-server … --entity-type brokers --entity-default --alter --add-config {name}={value}",
        moving=True,
    ),
    FindingKind(
        FindingCode.FETCH_QUOTA_TOO_LOW,
        Severity.WARNING,
        "a broker's quota lets groups read less from remote storage than comes together there",
        "kafka-configs --bootstrap-server … --entity-type brokers --entity-default --alter --add-config {name}={value}",
        moving=True,
    ),
    FindingKind(
        FindingCode.LOCAL_DISK_NOT_RECLAIMED,
        Severity.WARNING,
        "segments in remote storage and past local retention are still on the leader's disk",
        _STATUS,
        moving=True,
    ),
    FindingKind(
        FindingCode.METADATA_TOPIC_COMPACTION,
        Severity.INFO,
        "what still keeps the metadata topic from being compacted (KIP-1266)",
        _TOPIC_OF_METADATA,
    ),
    FindingKind(
        FindingCode.COPY_LAG_WAITS,
        Severity.INFO,
        "bytes that wait on leaders' disks for remote.copy.lag, and are not in remote storage yet",
        _STATUS,
    ),
    FindingKind(
        FindingCode.KEPT_TWICE,
        Severity.INFO,
        "bytes that are both in remote storage and on the leader's disk",
        _STATUS,
    ),
    FindingKind(
        FindingCode.GROUP_READS_REMOTE,
        Severity.INFO,
        "a consumer group's committed offset is in remote storage only: wait for the group before moving a broker",
        _DESCRIBE_GROUP,
    ),
    FindingKind(
        FindingCode.GROUP_OFFSET_BELOW_LOG_START,
        Severity.WARNING,
        "a consumer group's committed offset is below the log start: it missed records, and its next read resets it",
        _DESCRIBE_GROUP,
        moving=True,
    ),
    FindingKind(
        FindingCode.FOLLOWER_STATE_MISSING,
        Severity.ERROR,
        "an object from which new followers build their state is not in the store: they cannot start to replicate",
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
