"""Brokers' and controllers' settings: one that is broken is one finding."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from tieredctl_aiven.manager_settings import largest_custom_metadata

from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.broker_settings import UNLIMITED, BrokerSettings
from tieredctl.ops.cluster.release import Release
from tieredctl.ops.doctor.broker_rules import broker_findings
from tieredctl.ops.doctor.diagnosis import custom_metadata_findings

SOUND = {
    "process.roles": "broker",
    "listeners": "PLAINTEXT://:9092,SSL://:9093",
    "log.dirs": "/var/lib/kafka",
    "min.insync.replicas": "2",
    "remote.log.storage.system.enable": "true",
    "remote.log.storage.manager.class.name": "org.example.Storage",
    "remote.log.metadata.manager.listener.name": "PLAINTEXT",
    "remote.log.manager.copy.max.bytes.per.second": "100000000",
    "remote.log.manager.fetch.max.bytes.per.second": "100000000",
}
RELEASE = Release(4, 1, 1)
RLMM = "rlmm.config.remote.log.metadata.topic."


def found(changes: Mapping[str, str | None], release: Release | None = RELEASE) -> list[Finding]:
    values = {name: value for name, value in {**SOUND, **changes}.items() if value != ""}
    return broker_findings(BrokerSettings("broker 1", values, release))


@pytest.mark.parametrize("release", [None, Release(3, 8), Release(3, 9, 1), Release(4, 3)])
def test_sound_settings_have_no_finding(release: Release | None) -> None:
    assert found({}, release) == []


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("remote.log.storage.system.enable", "false", "broker-config-tiering-off"),
        ("remote.log.storage.system.enable", "", "broker-config-tiering-off"),
        ("remote.log.storage.manager.class.name", "", "broker-config-manager-missing"),
        ("remote.log.metadata.manager.listener.name", "", "broker-config-manager-missing"),
        ("remote.log.metadata.manager.listener.name", "SASL", "broker-config-manager-missing"),
        ("remote.log.manager.task.interval.ms", "0", "broker-config-value-invalid"),
        ("remote.log.manager.task.interval.ms", "soon", "broker-config-value-invalid"),
        ("remote.log.manager.copier.thread.pool.size", "0", "broker-config-value-invalid"),
        ("remote.fetch.max.wait.ms", "3000000000", "broker-config-value-invalid"),
        (RLMM + "num.partitions", "0", "broker-config-value-invalid"),
        ("log.local.retention.ms", "604800001", "broker-config-local-retention"),
        ("log.local.retention.ms", "-1", "broker-config-local-retention"),
        ("log.retention.minutes", "0", None),
        (RLMM + "replication.factor", "2", "broker-config-metadata-replication"),
        ("min.insync.replicas", "1", "broker-config-metadata-min-isr"),
        ("min.insync.replicas", "3", "broker-config-metadata-min-isr"),
        ("min.insync.replicas", "", "broker-config-metadata-min-isr"),
        (RLMM + "retention.ms", "604800000", "broker-config-metadata-retention"),
        (RLMM + "retention.ms", "604800001", None),
        ("remote.log.manager.copy.max.bytes.per.second", "", "broker-config-copy-quota"),
        ("remote.log.manager.copy.max.bytes.per.second", str(UNLIMITED), "broker-config-copy-quota"),
        ("remote.log.manager.fetch.max.bytes.per.second", "", "broker-config-fetch-quota"),
        ("remote.log.manager.copier.thread.pool.size", "9", "broker-config-thread-pool"),
        ("remote.log.manager.expiration.thread.pool.size", "1", "broker-config-thread-pool"),
        ("remote.log.reader.threads", "5", "broker-config-thread-pool"),
        ("remote.log.index.file.cache.total.size.bytes", "209715199", "broker-config-index-cache"),
        ("remote.log.index.file.cache.total.size.bytes", "209715200", None),
    ],
)
def test_a_broken_setting_is_one_finding(name: str, value: str, code: str | None) -> None:
    findings = found({name: value})

    assert [finding.code for finding in findings] == ([] if code is None else [code])


def test_local_bytes_are_judged_against_total_bytes() -> None:
    total = {"log.retention.bytes": "1000"}

    assert found(total | {"log.local.retention.bytes": "1000"}) == []
    assert [one.code for one in found(total | {"log.local.retention.bytes": "1001"})] == [
        "broker-config-local-retention"
    ]


@pytest.mark.parametrize(
    ("release", "severities"),
    [(Release(3, 7, 2), [Severity.ERROR]), (None, [Severity.WARNING]), (Release(3, 8), []), (Release(4, 3, 1), [])],
)
def test_several_log_directories_are_refused_before_3_8(release: Release | None, severities: list[Severity]) -> None:
    findings = found({"log.dirs": "/a,/b"}, release)

    assert [one.severity for one in findings if one.code == "broker-config-several-log-dirs"] == severities


def test_from_4_3_on_the_metadata_topic_has_a_min_isr_of_its_own() -> None:
    assert found({"min.insync.replicas": "1"}, Release(4, 3)) == []
    assert [one.code for one in found({RLMM + "min.isr": "1"}, Release(4, 3))] == ["broker-config-metadata-min-isr"]


def test_no_quota_is_missed_on_a_release_without_quotas() -> None:
    quotas = {name: "" for name in SOUND if name.endswith("max.bytes.per.second")}

    assert found(quotas, Release(3, 7, 2)) == []


def test_the_deprecated_pool_size_is_reported_as_without_effect() -> None:
    (finding,) = found({"remote.log.manager.thread.pool.size": "20"}, Release(4, 2, 1))

    assert finding.code == "broker-config-thread-pool"
    assert finding.remedy == "in server.properties: remote.log.manager.follower.thread.pool.size=20"


def test_a_pool_that_falls_back_has_the_size_of_the_shared_one() -> None:
    fallen_back = {
        "remote.log.manager.copier.thread.pool.size": "-1",
        "remote.log.manager.expiration.thread.pool.size": "-1",
    }

    assert found(fallen_back | {"remote.log.manager.thread.pool.size": "10"}, Release(3, 9, 1)) == []
    assert len(found(fallen_back | {"remote.log.manager.thread.pool.size": "4"}, Release(3, 9, 1))) == 2


def test_a_controller_needs_the_switch_and_nothing_else() -> None:
    controller = {"process.roles": "controller"}

    on = broker_findings(BrokerSettings("c", controller | {"remote.log.storage.system.enable": "true"}))
    off = broker_findings(BrokerSettings("c", controller))

    assert on == []
    assert [finding.code for finding in off] == ["broker-config-tiering-off"]


def test_what_a_node_hides_is_not_judged() -> None:
    assert found({RLMM + "replication.factor": None, RLMM + "retention.ms": None, RLMM + "num.partitions": None}) == []


def test_another_metadata_manager_has_settings_of_its_own() -> None:
    other = {"remote.log.metadata.manager.class.name": "org.example.Metadata"}

    assert found(other | {"remote.log.metadata.manager.listener.name": "", RLMM + "retention.ms": "soon"}) == []


AIVEN = {
    "remote.log.storage.manager.class.name": "io.aiven.kafka.tieredstorage.RemoteStorageManager",
    "rsm.config.custom.metadata.fields.include": "REMOTE_SIZE,OBJECT_KEY",
}


def test_custom_metadata_that_may_be_too_large_is_found() -> None:
    (finding,) = custom_metadata_findings(BrokerSettings("broker 1", SOUND | AIVEN), ())

    assert finding.code == "broker-config-custom-metadata"
    assert finding.evidence["value"] == str(largest_custom_metadata(["REMOTE_SIZE", "OBJECT_KEY"], "", 249))


def test_custom_metadata_that_fits_is_none() -> None:
    enough = {"remote.log.metadata.custom.metadata.max.bytes": "400"}

    assert list(custom_metadata_findings(BrokerSettings("broker 1", SOUND | AIVEN | enough), ())) == []
    assert list(custom_metadata_findings(BrokerSettings("broker 1", SOUND | AIVEN), ["orders"])) == []
