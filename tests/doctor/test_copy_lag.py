"""Segments that wait for their copy lag (KIP-1241, since 4.4) are not behind, and not kept twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tests.doctor.test_cluster_rules import HOUR_MS, PLACE, SEGMENT_BYTES, TOPIC, codes, found
from tests.metadata_logs import PARTITION
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import CopyLag, TopicSettings, copy_lag
from tieredctl.ops.doctor.release_change import downgrade_findings, upgrade_findings
from tieredctl.ops.doctor.topic_rules import topic_findings

LAG_MS, LAG_BYTES = "remote.copy.lag.ms", "remote.copy.lag.bytes"
LATEST = Release(4, 4, 0)


def settings(changes: Mapping[str, str]) -> TopicSettings:
    return TopicSettings(PARTITION.topic, {**TOPIC, **changes}, LATEST)


def test_what_a_closed_segment_waits_for() -> None:
    cases: list[tuple[Mapping[str, str], CopyLag | None]] = [
        ({}, None),
        ({LAG_MS: "0", LAG_BYTES: "5000"}, None),
        ({LAG_MS: str(HOUR_MS), LAG_BYTES: "0"}, None),
        ({LAG_MS: str(HOUR_MS)}, CopyLag(HOUR_MS, -1)),
        ({LAG_MS: "-1"}, CopyLag(24 * HOUR_MS, -1)),
        ({LAG_MS: "-1", "local.retention.ms": "-2"}, CopyLag(240 * HOUR_MS, -1)),
        ({LAG_MS: "-1", "local.retention.bytes": "7000"}, CopyLag(24 * HOUR_MS, 7000)),
        ({LAG_MS: str(HOUR_MS), LAG_BYTES: "5000"}, CopyLag(HOUR_MS, 5000)),
    ]
    for changes, lag in cases:
        assert copy_lag(settings(changes)) == lag, (changes, lag)


def test_lags_that_kafka_refuses_or_that_never_end_are_found() -> None:
    cases: list[tuple[Mapping[str, str], str | None, str | None]] = [
        ({LAG_MS: str(24 * HOUR_MS)}, None, None),
        ({LAG_MS: str(24 * HOUR_MS + 1)}, LAG_MS, "-1"),
        ({LAG_MS: "1", LAG_BYTES: str(2 << 30), "local.retention.bytes": str(1 << 30)}, LAG_BYTES, "-1"),
        ({LAG_MS: "1", LAG_BYTES: str(2 << 30)}, None, None),
        ({LAG_MS: "-1", "local.retention.ms": "-2", "retention.ms": "-1"}, LAG_MS, "0"),
    ]
    for changes, name, value in cases:
        findings = [one for one in topic_findings(settings(changes)) if one.code == "topic-config-copy-lag"]
        assert [(one.evidence["name"], one.evidence["value"]) for one in findings] == ([(name, value)] if name else [])
    # Before 4 4 nobody knows the copy lag.
    others: list[tuple[Release, list[str]]] = [(Release(4, 3), ["topic-config-release"]), (LATEST, [])]
    for release, expected in others:
        findings = topic_findings(TopicSettings("orders", {**TOPIC, LAG_MS: str(HOUR_MS)}, release))
        assert [one.code for one in findings] == expected, (release, expected)
    # A topic that waits for local retention is not kept twice.
    as_total = {"local.retention.ms": "-2"}
    assert "topic-config-kept-twice" in codes(topic_findings(settings(as_total)))
    assert "topic-config-kept-twice" not in codes(topic_findings(settings({**as_total, LAG_MS: "-1"})))


def of_cluster(changes: Mapping[str, str], *, first_young: int | None) -> list[Finding]:
    """A partition of which ten segments of 10 offsets are not tiered."""
    place = replace(PLACE, latest=120, local_bytes=SEGMENT_BYTES * 10, first_young=first_young)
    findings = found(partitions=[place], topics={PARTITION.topic: settings(changes)}, release=LATEST)
    return [one for one in findings if one.code in ("tiering-behind", "copy-lag-waits")]


def test_what_waits_for_its_lag_is_not_behind() -> None:
    cases: list[tuple[Mapping[str, str], int | None, list[str]]] = [
        ({}, None, ["tiering-behind"]),
        ({LAG_MS: str(HOUR_MS)}, 20, ["copy-lag-waits"]),
        ({LAG_MS: str(HOUR_MS)}, 35, ["copy-lag-waits"]),
        ({LAG_MS: str(HOUR_MS)}, 60, ["tiering-behind", "copy-lag-waits"]),
        ({LAG_MS: str(HOUR_MS)}, 120, ["tiering-behind"]),
        ({LAG_MS: str(HOUR_MS)}, None, []),
        ({LAG_MS: str(HOUR_MS), LAG_BYTES: str(8 * SEGMENT_BYTES)}, 20, ["copy-lag-waits"]),
        ({LAG_MS: str(HOUR_MS), LAG_BYTES: str(SEGMENT_BYTES)}, 20, ["tiering-behind", "copy-lag-waits"]),
    ]
    for changes, first_young, expected in cases:
        assert sorted(one.code for one in of_cluster(changes, first_young=first_young)) == sorted(expected), changes
    # How much is kept out of remote storage is reported.
    (finding,) = of_cluster({LAG_MS: str(HOUR_MS)}, first_young=30)
    assert finding.evidence["bytes"] == 9 * SEGMENT_BYTES


def test_what_a_lag_would_save_is_reported_where_brokers_know_it_and_there_is_none() -> None:
    cases: list[tuple[Mapping[str, str], int | None]] = [
        ({LAG_MS: "0", LAG_BYTES: "-1"}, SEGMENT_BYTES),
        ({}, None),
        ({LAG_MS: "-1"}, None),
    ]
    for changes, saved in cases:
        place = replace(PLACE, earliest_local=10, latest=25, local_bytes=2 * SEGMENT_BYTES, first_young=25)
        findings = found(partitions=[place], topics={PARTITION.topic: settings(changes)}, release=LATEST)
        (twice,) = [one for one in findings if one.code == "kept-twice"]
        assert twice.evidence.get("savedByCopyLag") == saved, (changes, saved)


def test_upgrades_and_downgrades_across_4_4_name_the_copy_lag() -> None:
    up = upgrade_findings(Release(4, 3, 1), LATEST)
    down = downgrade_findings(LATEST, Release(4, 3, 1))

    assert "copy lag" in [one.subject for one in up]
    (lag,) = [one for one in down if one.subject == "copy lag"]
    assert LAG_BYTES in lag.remedy
