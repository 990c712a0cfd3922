"""Brokers' and controllers' settings: one that is broken is one finding."""

from __future__ import annotations

from collections.abc import Mapping

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


def test_a_broken_setting_is_one_finding() -> None:
    # Sound settings have no finding.
    cases: list[Release | None] = [None, Release(3, 8), Release(3, 9, 1), Release(4, 3)]
    for release in cases:
        assert found({}, release) == [], release
    others: list[tuple[str, str, str | None]] = [
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
    ]
    for name, value, code in others:
        findings = found({name: value})
        assert [finding.code for finding in findings] == ([] if code is None else [code]), (name, value, code)


def test_local_retention_and_log_directories_are_judged_by_the_release() -> None:
    # Local bytes are judged against total bytes.
    total = {"log.retention.bytes": "1000"}
    assert found(total | {"log.local.retention.bytes": "1000"}) == []
    assert [one.code for one in found(total | {"log.local.retention.bytes": "1001"})] == [
        "broker-config-local-retention"
    ]
    # Several log directories are refused before 3 8.
    cases: list[tuple[Release | None, list[Severity]]] = [
        (Release(3, 7, 2), [Severity.ERROR]),
        (None, [Severity.WARNING]),
        (Release(3, 8), []),
        (Release(4, 3, 1), []),
    ]
    for release, severities in cases:
        findings = found({"log.dirs": "/a,/b"}, release)
        assert [one.severity for one in findings if one.code == "broker-config-several-log-dirs"] == severities, release


def test_settings_that_came_or_went_with_a_release_are_judged_by_it() -> None:
    # From 4 3 on the metadata topic has a min isr of its own.
    assert found({"min.insync.replicas": "1"}, Release(4, 3)) == []
    assert [one.code for one in found({RLMM + "min.isr": "1"}, Release(4, 3))] == ["broker-config-metadata-min-isr"]
    # No quota is missed on a release without quotas.
    quotas = {name: "" for name in SOUND if name.endswith("max.bytes.per.second")}
    assert found(quotas, Release(3, 7, 2)) == []
    # The deprecated pool size is reported as without effect.
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


def test_what_is_a_controllers_or_hidden_or_anothers_is_not_judged() -> None:
    # A controller needs the switch and nothing else.
    controller = {"process.roles": "controller"}
    on = broker_findings(BrokerSettings("c", controller | {"remote.log.storage.system.enable": "true"}))
    off = broker_findings(BrokerSettings("c", controller))
    assert on == []
    assert [finding.code for finding in off] == ["broker-config-tiering-off"]
    # What a node hides is not judged.
    assert found({RLMM + "replication.factor": None, RLMM + "retention.ms": None, RLMM + "num.partitions": None}) == []
    # Another metadata manager has settings of its own.
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
    # Custom metadata that fits is none.
    enough = {"remote.log.metadata.custom.metadata.max.bytes": "400"}
    assert list(custom_metadata_findings(BrokerSettings("broker 1", SOUND | AIVEN | enough), ())) == []
    assert list(custom_metadata_findings(BrokerSettings("broker 1", SOUND | AIVEN), ["orders"])) == []
