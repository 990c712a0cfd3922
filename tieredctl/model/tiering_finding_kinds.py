"""What `topic enable` and `topic disable` find, before the change and after it."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

_DESCRIBE = "kafka-topics --bootstrap-server … --describe --topic {topic}"
_STATUS = "tieredctl topic status {topic} …"

TIERING_FINDING_KINDS = (
    FindingKind(
        FindingCode.TOPIC_CHANGE_REFUSED,
        Severity.ERROR,
        "the cluster refused the settings when asked to validate them",
        "kafka-configs --bootstrap-server … --describe --all --entity-type topics --entity-name {topic}",
    ),
    FindingKind(
        FindingCode.TOPIC_NEVER_TIERED,
        Severity.ERROR,
        "one of Kafka's own topics: the cluster accepts the setting, but never tiers it",
        _DESCRIBE,
    ),
    FindingKind(
        FindingCode.TOPIC_WITHOUT_LEADER,
        Severity.ERROR,
        "partitions have no leader, and only a leader copies or deletes remote data",
        _DESCRIBE,
    ),
    FindingKind(
        FindingCode.NEVER_COPIED_AGAIN,
        Severity.ERROR,
        "what was deleted from remote storage is still on local disks: Kafka never copies it again",
        "tieredctl topic enable {topic} --local-retention-ms -2 --local-retention-bytes -2 …",
    ),
    FindingKind(
        FindingCode.PRODUCER_SNAPSHOT_MISSING,
        Severity.ERROR,
        "closed segments have no producer snapshot at their end, as before 2.8: copying them and all after them fails",
        "kafka-reassign-partitions --bootstrap-server … --execute --reassignment-json-file FILE",
        moving=True,
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_UNSUPPORTED,
        Severity.ERROR,
        "a release before 3.9 accepts the setting, and then neither reads nor deletes what is in remote storage",
        "tieredctl doctor upgrade {release} 3.9.1",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_AT_ONCE,
        Severity.ERROR,
        "deleting this many remote segments at once keeps brokers from applying cluster metadata for a long time",
        "tieredctl topic disable {topic} --stop-copying …",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_DELETES,
        Severity.WARNING,
        "turning tiering off deletes what is in remote storage, which may include the only copy",
        "tieredctl topic disable {topic} --stop-copying …",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_FILLS_DISKS,
        Severity.WARNING,
        "once copying stops, local disks keep everything that total retention keeps: more than is free",
        _STATUS,
    ),
    FindingKind(
        FindingCode.REMOTE_DATA_LEFT,
        Severity.WARNING,
        "a topic that is not tiered still has segments in remote storage",
        "{command}",
    ),
    FindingKind(
        FindingCode.TIERING_NOT_SEEN,
        Severity.WARNING,
        "the change was made, but its effect was not seen in time",
        _STATUS,
        incomplete=True,
    ),
)
