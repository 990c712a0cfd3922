"""The codes of what `topic enable` and `topic disable` find, before the change and after it."""

from __future__ import annotations

from tieredctl.model.finding_codes import FindingCode
from tieredctl.model.finding_kind import FindingKind, Severity

_DESCRIBE = "kafka-topics --bootstrap-server … --describe --topic {topic}"
_STATUS = "tieredctl topic status {topic} …"

TIERING_FINDING_KINDS = (
    FindingKind(
        FindingCode.TOPIC_CHANGE_REFUSED,
        Severity.ERROR,
        "the cluster, asked to validate the settings, refuses them",
        "kafka-configs --bootstrap-server … --describe --all --entity-type topics --entity-name {topic}",
    ),
    FindingKind(
        FindingCode.TOPIC_NEVER_TIERED,
        Severity.ERROR,
        "a topic of Kafka's own: the cluster takes the setting, and never tiers it",
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
        "closed segments have no producer snapshot behind them, as from before 2.8: their copy fails, and all after it",
        "kafka-reassign-partitions --bootstrap-server … --execute --reassignment-json-file FILE",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_UNSUPPORTED,
        Severity.ERROR,
        "a release before 3.9 takes the setting, and then neither reads nor deletes what is in remote storage",
        "tieredctl doctor upgrade {release} 3.9.1",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_AT_ONCE,
        Severity.ERROR,
        "so many remote segments would be deleted at once that brokers hear of no change of the cluster for long",
        "tieredctl topic disable {topic} --stop-copying …",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_DELETES,
        Severity.WARNING,
        "turning tiering off deletes what is in remote storage, of which some may be nowhere else",
        "tieredctl topic disable {topic} --stop-copying …",
    ),
    FindingKind(
        FindingCode.TOPIC_DISABLE_FILLS_DISKS,
        Severity.WARNING,
        "once nothing is copied any more, local disks keep all that total retention keeps: more than is free",
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
        "the change is made, and its effect was not seen in time",
        _STATUS,
        incomplete=True,
    ),
)
