"""A broker that may read less from remote storage than groups which are behind would need (KIP-956)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from tests.doctor.test_cluster_rules import HOUR_MS, NOW_MS, PLACE, SEGMENT_BYTES, found, node, segment
from tieredctl.model.findings import Finding
from tieredctl.ports.cluster import CommittedOffset

HOURS = 10
RATE = 2 * SEGMENT_BYTES // (HOURS * 3_600)
"""Two segments came together in the ten hours since the first one was full."""
SELECTOR = {"replica_selector_class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}
QUOTA = "remote_log_manager_fetch_max_bytes_per_second"
FILLED = [segment(number, 10 * number, 10 * number + 9, max_timestamp_ms=NOW_MS - HOUR_MS) for number in (1, 2)]
READ = replace(
    PLACE,
    leader=1,
    earliest_local=30,
    segments=[segment(0, 0, 9, max_timestamp_ms=NOW_MS - HOURS * HOUR_MS), *FILLED],
)
BEHIND = CommittedOffset("g", "t", READ.partition.partition, 5)


def quotas(
    quota: int | None, *, committed: tuple[CommittedOffset, ...] = (BEHIND,), node_: Any = (), **changes: Any
) -> list[Finding]:
    stated = {**dict(node_), **({} if quota is None else {QUOTA: str(quota)})}
    brokers = {number: node(number, **stated) for number in (1, 2)}
    findings = found(partitions=[replace(READ, **changes)], brokers=brokers, group_offsets=committed)
    return [one for one in findings if one.code == "fetch-quota-too-low"]


def test_a_quota_below_what_comes_together_is_found_with_one_that_is_enough() -> None:
    (finding,) = quotas(RATE - 1)

    assert finding.subject == "broker 1"
    assert {name: finding.evidence[name] for name in ("partitions", "bytesPerSecond", "quota", "value")} == {
        "partitions": 1,
        "bytesPerSecond": RATE,
        "quota": RATE - 1,
        "value": str(2 * RATE),
    }
    assert finding.remedy.endswith(f"--add-config remote.log.manager.fetch.max.bytes.per.second={2 * RATE}")


def test_the_partitions_of_a_broker_share_its_quota_and_groups_of_one_count_it_once() -> None:
    two = [READ, replace(READ, partition=replace(READ.partition, partition=7))]
    both = [BEHIND, BEHIND._replace(partition=7), BEHIND._replace(group="h")]
    for leaders, groups, expected in (((1, 1), both, 1), ((1, 2), both, 0), ((1, 1), [both[0], both[2]], 0)):
        places = [replace(place, leader=leader) for place, leader in zip(two, leaders, strict=True)]
        brokers = {number: node(number, **{QUOTA: str(RATE + 1)}) for number in (1, 2)}

        findings = found(partitions=places, brokers=brokers, group_offsets=groups)

        assert sum(one.code == "fetch-quota-too-low" for one in findings) == expected, (leaders, groups)


def test_what_is_no_sure_sign_is_not_found() -> None:
    young = [segment(0, 0, 9, max_timestamp_ms=NOW_MS - 59 * 60_000), *FILLED]
    undated = [replace(one, metadata=replace(one.metadata, max_timestamp_ms=-1)) for one in READ.segments]
    cases: dict[str, list[Finding]] = {
        "a quota that is enough": quotas(RATE),
        "no quota": quotas((1 << 63) - 1),
        "nobody is behind": quotas(1, committed=()),
        "a group reads the leader's disk": quotas(1, committed=(BEHIND._replace(offset=30),)),
        "a group whose next record is deleted": quotas(1, earliest=10),
        "a topic of that name that is not tiered": quotas(1, committed=(BEHIND._replace(topic="u"),)),
        "it came together in less than an hour": quotas(1, segments=young),
        "records without times": quotas(1, segments=undated),
        "one segment": quotas(1, segments=READ.segments[:1]),
        "the local log start is unknown": quotas(1, earliest_local=None),
        "followers may serve consumers": quotas(1, node_=SELECTOR),
        "who may serve them is hidden": quotas(1, node_={"replica_selector_class": None}),
        "another broker leads it": quotas(1, leader=3),
        "nobody leads it": quotas(1, leader=None),
    }
    assert {name: found for name, found in cases.items() if found} == {}


def together(*quotas: int | None, **of_last: Any) -> list[Finding]:
    """What is found of brokers with these quotas that may send consumers to followers, where the last differs so."""
    stated: list[dict[str, str | None]] = [
        {**SELECTOR, **({} if quota is None else {QUOTA: str(quota)})} for quota in quotas
    ]
    stated[-1] |= of_last
    brokers = {number: node(number, **one) for number, one in enumerate(stated, 1)}
    findings = found(partitions=[READ], brokers=brokers, group_offsets=[BEHIND])
    return [one for one in findings if one.code == "fetch-quota-too-low"]


def test_where_followers_may_serve_the_quotas_of_all_brokers_are_too_low_together() -> None:
    share = -(-RATE // 3)

    (finding,) = together(1, share, RATE - share - 2)

    assert finding.subject == "broker 1"
    assert {name: finding.evidence[name] for name in ("partitions", "bytesPerSecond", "quota", "value")} == {
        "partitions": 1,
        "bytesPerSecond": share,
        "quota": 1,
        "value": str(2 * share),
    }


def test_where_followers_may_serve_no_broker_is_judged_without_all_others() -> None:
    cases = {
        "enough together": together(1, 1, RATE - 2),
        "one without a quota": together(1, 1, None),
        "one whose quota is hidden": together(1, 1, 1, **{QUOTA: None}),
        "one that sends nobody to followers": together(1, 1, 1, replica_selector_class=""),
        "one of which nothing is known": together(1, 1),
    }
    assert {name: found for name, found in cases.items() if found} == {}
