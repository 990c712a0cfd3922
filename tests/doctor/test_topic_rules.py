"""Topics' settings: one that is broken is one finding."""

from __future__ import annotations

from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import TopicSettings, topic_defaults
from tieredctl.ops.doctor.topic_rules import topic_findings

DAY_MS = 86_400_000
RELEASE = Release(3, 9, 1)
SOUND = {
    "remote.storage.enable": "true",
    "retention.ms": str(30 * DAY_MS),
    "local.retention.ms": str(DAY_MS),
    "segment.ms": str(DAY_MS),
}


def found(changes: dict[str, str], release: Release | None = RELEASE) -> list[Finding]:
    return topic_findings(TopicSettings("orders", SOUND | changes, release))


def test_a_broken_setting_is_one_finding() -> None:
    # Sound settings have no finding.
    assert found({}) == []
    cases: list[tuple[dict[str, str], str | None]] = [
        ({"remote.log.copy.disable": "perhaps"}, "topic-config-value-invalid"),
        ({"segment.ms": "0"}, "topic-config-value-invalid"),
        ({"cleanup.policy": "compact"}, "topic-config-cleanup-policy"),
        ({"cleanup.policy": "compact,delete"}, "topic-config-cleanup-policy"),
        ({"cleanup.policy": ""}, None),
        ({"retention.ms": str(DAY_MS - 1)}, "topic-config-local-retention"),
        ({"local.retention.ms": "-1"}, "topic-config-local-retention"),
        ({"retention.bytes": "-1", "local.retention.bytes": "-1"}, None),
        ({"retention.ms": "-1"}, None),
        ({"remote.log.copy.disable": "true"}, "topic-config-copy-disable"),
        ({"remote.log.copy.disable": "true", "local.retention.ms": "-2"}, None),
        ({"remote.log.copy.disable": "true", "local.retention.ms": str(30 * DAY_MS)}, None),
        ({"segment.bytes": str((16 << 20) - 1)}, "topic-config-small-segments"),
        ({"segment.ms": "599999"}, "topic-config-small-segments"),
        ({"local.retention.ms": "599999", "segment.ms": "600000"}, "topic-config-small-segments"),
        ({"segment.ms": str(DAY_MS + 1)}, "topic-config-segment-exceeds-local-retention"),
        ({"local.retention.bytes": str((1 << 30) - 1)}, "topic-config-segment-exceeds-local-retention"),
        ({"local.retention.bytes": str(1 << 30)}, None),
        ({"local.retention.ms": "-2"}, "topic-config-kept-twice"),
        ({"local.retention.ms": str(30 * DAY_MS)}, "topic-config-kept-twice"),
        ({"local.retention.ms": "-2", "retention.bytes": str(1 << 40), "local.retention.bytes": str(1 << 35)}, None),
    ]
    for changes, code in cases:
        codes = [finding.code for finding in found(changes)]
        assert codes == ([] if code is None else [code]), (changes, code)
    # A setting that the release does not know is found.
    others: list[tuple[str, Release | None, list[str]]] = [
        ("remote.log.delete.on.disable", Release(3, 8, 1), ["topic-config-release"]),
        ("remote.log.delete.on.disable", Release(3, 9), []),
        ("remote.log.delete.on.disable", None, []),
    ]
    for setting, release, expected in others:
        assert [finding.code for finding in found({setting: "true"}, release)] == expected, release
    # A topic that is not tiered may be compacted.
    assert found({"remote.storage.enable": "false", "cleanup.policy": "compact"}) == []
    # The remedy is a command that sets the value.
    (finding,) = found({"cleanup.policy": "compact"})
    assert finding.remedy.endswith("--entity-name orders --add-config cleanup.policy=delete")


def test_a_topic_takes_its_brokers_defaults() -> None:
    broker = BrokerSettings("b", {"log.retention.hours": "2", "log.local.retention.ms": "5", "log.roll.hours": "3"})

    settings = TopicSettings("orders", topic_defaults(broker))

    assert settings.number("retention.ms") == 2 * 3_600_000
    assert settings.number("local.retention.ms") == 5
    assert settings.number("segment.ms") == 3 * 3_600_000
    assert settings.number("segment.bytes") == 1 << 30
