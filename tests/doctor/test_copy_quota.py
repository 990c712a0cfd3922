"""A broker that is behind, and may copy less than is written (KIP-956)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from tests.doctor.test_cluster_rules import HOUR_MS, NOW_MS, PLACE, SEGMENT_BYTES, TOPIC, found, node, segment
from tieredctl.model.findings import Finding
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.cluster.topic_settings import TopicSettings

RATE = 10 * SEGMENT_BYTES // 3_600
"""Ten segments were written in the hour since the last tiered record."""
QUOTA = "remote_log_manager_copy_max_bytes_per_second"
BEHIND = replace(
    PLACE,
    leader=1,
    latest=120,
    local_bytes=10 * SEGMENT_BYTES,
    segments=[segment(1, 0, 9, max_timestamp_ms=0), segment(2, 10, 19, max_timestamp_ms=NOW_MS - HOUR_MS)],
)


def quotas(quota: int | None, topic: Mapping[str, str] | None = None, **changes: Any) -> list[Finding]:
    stated = {} if quota is None else {QUOTA: str(quota)}
    brokers = {number: node(number, **stated) for number in (1, 2)}
    topics = {"t": TopicSettings("t", {**TOPIC, **(topic or {})}, Release(4, 3, 2))}
    findings = found(partitions=[replace(BEHIND, **changes)], brokers=brokers, topics=topics)
    return [one for one in findings if one.code == "copy-quota-too-low"]


def test_a_quota_below_what_is_written_is_found_with_one_that_is_enough() -> None:
    (finding,) = quotas(RATE - 1)

    assert finding.subject == "broker 1"
    assert {name: finding.evidence[name] for name in ("bytes", "bytesPerSecond", "quota", "value")} == {
        "bytes": 10 * SEGMENT_BYTES,
        "bytesPerSecond": RATE,
        "quota": RATE - 1,
        "value": str(2 * RATE),
    }
    assert finding.remedy.endswith(f"--add-config remote.log.manager.copy.max.bytes.per.second={2 * RATE}")


def test_the_partitions_of_a_broker_share_its_quota() -> None:
    two = [BEHIND, replace(BEHIND, partition=replace(BEHIND.partition, partition=7))]
    for leaders, expected in (((1, 1), 1), ((1, 2), 0)):
        places = [replace(place, leader=leader) for place, leader in zip(two, leaders, strict=True)]
        brokers = {number: node(number, **{QUOTA: str(RATE + 1)}) for number in (1, 2)}

        findings = found(partitions=places, brokers=brokers)

        assert sum(one.code == "copy-quota-too-low" for one in findings) == expected, leaders


def test_what_is_no_sure_sign_is_not_found() -> None:
    at_rest = [segment(2, 10, 19, max_timestamp_ms=NOW_MS - 59_000)]
    undated = [segment(2, 10, 19, max_timestamp_ms=-1)]
    cases: dict[str, list[Finding]] = {
        "a quota that is enough": quotas(RATE),
        "no quota": quotas((1 << 63) - 1),
        "hardly behind": quotas(1, latest=40, local_bytes=2 * SEGMENT_BYTES),
        "copying is off": quotas(1, {"remote.log.copy.disable": "true"}),
        "the last record was tiered just now": quotas(1, segments=at_rest),
        "records without times": quotas(1, segments=undated),
        "nothing was tiered yet": quotas(1, segments=[], latest_tiered=-1),
        "the leader's disk is unknown": quotas(1, local_bytes=None),
        "another broker leads it": quotas(1, leader=3),
        "nobody leads it": quotas(1, leader=None),
    }
    assert {name: found for name, found in cases.items() if found} == {}
