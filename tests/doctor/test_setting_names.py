"""Settings that nobody knows, values that are none, and releases that do not exist."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.doctor.test_broker_rules import SOUND
from tieredctl.errors import TieredctlError
from tieredctl.formats.kafka_settings import SettingKind, definition, setting_names
from tieredctl.model.findings import Finding, Severity
from tieredctl.ops.cluster.broker_settings import BrokerSettings
from tieredctl.ops.cluster.release import Release, release
from tieredctl.ops.cluster.topic_settings import TopicSettings
from tieredctl.ops.doctor.broker_rules import broker_findings
from tieredctl.ops.doctor.topic_rules import topic_findings

AIVEN = {"remote.log.storage.manager.class.name": "io.aiven.kafka.tieredstorage.RemoteStorageManager"}
UNKNOWN, INVALID = "broker-config-name-unknown", "broker-config-value-invalid"
METADATA = "rlmm.config.remote.log.metadata."


def found(changes: Mapping[str, str | None], release: Release | None = None) -> list[Finding]:
    return broker_findings(BrokerSettings("broker 1", {**SOUND, **changes}, release))


def test_a_name_that_no_broker_has_is_one_finding_with_what_is_meant() -> None:
    cases: list[tuple[str, str | None]] = [
        ("remote.log.storage.system.enabled", "remote.log.storage.system.enable"),
        ("remote.log.storage.sytem.enable", "remote.log.storage.system.enable"),
        ("remote.log.manager.copier.threadpool.size", "remote.log.manager.copier.thread.pool.size"),
        ("remote.log.manager.copier.pool.thread.size", "remote.log.manager.copier.thread.pool.size"),
        ("log.retention.local.ms", "log.local.retention.ms"),
        ("follower.fetch.last.tierd.offset.enable", "follower.fetch.last.tiered.offset.enable"),
        ("cleanup.policy", "log.cleanup.policy"),
        ("log.locla.retention.ms", "log.local.retention.ms"),
        ("local.retention.ms", "log.local.retention.ms"),
        ("remote.copy.lag.ms", "log.remote.copy.lag.ms"),
        ("remote.log.metadata.topic.replication.factor", METADATA + "topic.replication.factor"),
        (METADATA + "topic.replication.facter", METADATA + "topic.replication.factor"),
        (METADATA + "topic.min.isrs", METADATA + "topic.min.isr"),
        ("remote.log.metadata.common.client.bootstrap.servers", METADATA + "common.client.bootstrap.servers"),
        ("remote.storage.enable", None),
        ("remote.log.compaction", None),
    ]
    for name, meant in cases:
        (finding,) = found({name: "7"})
        assert finding.code == UNKNOWN, (name, meant)
        assert (finding.evidence["misspelt"], finding.evidence.get("name")) == (name, meant), (name, meant)
        assert name in finding.message, (name, meant)
        if meant is not None:
            assert finding.remedy == f"in server.properties: {meant}=7", (name, meant)


def test_settings_of_aivens_plugin_are_judged_where_it_is_the_manager() -> None:
    # Settings of aivens plugin under the wrong prefix are found.
    cases: list[tuple[str, str | None]] = [
        ("rsm.config.storage.key.prefix", "rsm.config.key.prefix"),
        ("rsm.config.storage.chunk.size", "rsm.config.chunk.size"),
        ("rsm.config.s3.bucket.name", "rsm.config.storage.s3.bucket.name"),
        ("rsm.config.gcs.bucket.name", "rsm.config.storage.gcs.bucket.name"),
        ("rsm.config.backend.storage.class", "rsm.config.storage.backend.class"),
        ("rsm.config.backend.class", None),
        ("rsm.config.compression.enable", "rsm.config.compression.enabled"),
        ("rsm.config.key-prefix", "rsm.config.key.prefix"),
        ("rsm.config.object.key.prefix", "rsm.config.key.prefix"),
        ("rsm.key.prefix", "rsm.config.key.prefix"),
        ("key.prefix", "rsm.config.key.prefix"),
        ("rsm.config.prefix", None),
        ("rsm.config.dir", None),
    ]
    for name, meant in cases:
        findings = found({**AIVEN, name: "tiered/"})
        (finding,) = (one for one in findings if one.code == UNKNOWN)
        assert finding.evidence.get("name") == meant, (name, meant)
        assert meant is not None or (finding.severity is Severity.INFO and "key.prefix" in finding.message), name
    # Settings of a plugin that is not known are not judged.
    for name in ["rsm.config.object.key.prefix", "rsm.config.dir", "rsm.key.prefix", "key.prefix"]:
        assert UNKNOWN not in [one.code for one in found({name: "1"})], name


def test_names_that_somebody_knows_are_not_reported() -> None:
    cases: list[str] = [
        "remote.log.manager.task.retry.jitter",
        METADATA + "producer.retention.ms",
        METADATA + "common.client.security.protocol",
        "log.retention.ms",
        "metadata.log.segment.bytes",
        "transaction.state.log.segment.bytes",
        "internal.metadata.log.segment.bytes",
        "request.timeout.ms",
        "log.segment.bytes",
        "rsm.config.storage.s3.bucket.name",
        "rsm.config.fetch.chunk.cache.size",
        "rsm.config.encryption.key.pairs.one.public.key.file",
        "metrics.num.samples",
        "confluent.tier.enable",
    ]
    for name in cases:
        for manager in ({}, AIVEN):
            assert UNKNOWN not in [one.code for one in found({**manager, name: "1"})], name
    # No name that a release has is reported.
    known = [
        *setting_names(SettingKind.BROKER),
        *(f"rlmm.config.{name}" for name in setting_names(SettingKind.METADATA_TOPIC)),
    ]
    for name in known:
        assert UNKNOWN not in [one.code for one in found({name: "1"})], name


def numbers_and_truths() -> list[str]:
    """The settings of tiered storage that are neither texts nor lists."""
    kinds = ((SettingKind.BROKER, ""), (SettingKind.METADATA_TOPIC, "rlmm.config."))
    names = [(kind, prefix, name) for kind, prefix in kinds for name in sorted(setting_names(kind))]
    return [
        prefix + name
        for kind, prefix, name in names
        if name.startswith(("remote.", "log.remote.", "log.local.", "follower.fetch."))
        and (one := definition(kind, name)) is not None
        and one.type in ("BOOLEAN", "INT", "LONG", "SHORT", "DOUBLE")
    ]


def test_of_a_value_that_is_none_one_thing_is_reported_and_doing_it_is_enough() -> None:
    for stated in ["ture", "many", "-99999999999999999999", "99999999999999999999"]:
        for setting in numbers_and_truths():
            (finding,) = [one for one in found({setting: stated}) if one.evidence.get("name") == setting]
            assert finding.code == INVALID, setting
            if "value" in finding.evidence:
                mended = found({setting: str(finding.evidence["value"])})
                assert setting not in [one.evidence.get("name") for one in mended], stated


def test_a_value_that_kafka_refuses_is_found() -> None:
    cases: list[tuple[str, str, Release | None]] = [
        ("remote.log.manager.task.retry.jitter", "0.7", None),
        ("remote.log.manager.task.retry.backoff.ms", "abc", None),
        ("remote.log.manager.task.retry.backoff.max.ms", "-5", None),
        ("remote.log.index.file.cache.ttl.ms", "-5", None),
        ("follower.fetch.last.tiered.offset.enable", "yes", None),
        ("remote.log.manager.copier.thread.pool.size", "-1", Release(4, 3)),
        ("log.segment.bytes", "1000", Release(4, 0)),
        ("log.local.retention.ms", "1_000", None),
    ]
    for name, stated, running in cases:
        assert [one.code for one in found({name: stated}, running)] == [INVALID], (name, stated, running)
    # Without a release a value is refused only where every release refuses it.
    assert INVALID not in [one.code for one in found({"remote.log.manager.copier.thread.pool.size": "-1"})]
    assert INVALID not in [one.code for one in found({"log.segment.bytes": "1000"})]
    # Whether tiering is on gets one prescription.
    for stated in ["ture", "True!", "tru", "maybe"]:
        (finding,) = found({"remote.log.storage.system.enable": stated})
        assert (finding.code, finding.evidence["value"]) == (INVALID, "true"), stated


def test_a_value_goes_to_the_name_that_is_meant_in_its_own_unit_or_not_at_all() -> None:
    cases: list[tuple[str, str | None]] = [
        ("remote.log.index.file.cache.total.size.mb", str(1 << 30)),
        ("remote.log.index.file.cache.total.size.bytes.mb", str(1 << 30)),
        ("remote.log.index.file.cache.total.size", None),
        ("remote.log.index.file.cache.total.size.ms", None),
        ("remote.log.index.file.cache.total.sise.bytes", "1024"),
    ]
    for name, value in cases:
        (finding,) = [one for one in found({name: "1024"}) if one.code == UNKNOWN]
        assert finding.evidence["name"] == "remote.log.index.file.cache.total.size.bytes", (name, value)
        assert finding.evidence.get("value") == value, (name, value)
        assert value is None or finding.remedy == f"in server.properties: {finding.evidence['name']}={value}", name


def test_a_setting_that_only_a_proposal_or_another_release_has_is_reported() -> None:
    # A setting that only a proposal has is reported.
    cases: list[tuple[str, Severity]] = [
        ("metadata.snapshot.min.changed_records.ratio", Severity.WARNING),
        ("diskless.metadata.topic.num.partitions", Severity.INFO),
        ("remote.wal.log.manager.thread.pool.size", Severity.WARNING),
    ]
    for name, severity in cases:
        (finding,) = found({name: "1"})
        assert (finding.code, finding.severity) == (UNKNOWN, severity), (name, severity)
        assert "KIP-" in finding.message, (name, severity)
    # A setting that the release lacks is reported.
    others: list[tuple[str, Release, list[str]]] = [
        ("log.remote.copy.lag.ms", Release(4, 3, 1), [UNKNOWN]),
        ("log.remote.copy.lag.ms", Release(4, 4, 0), []),
        ("follower.fetch.last.tiered.offset.enable", Release(4, 2, 1), [UNKNOWN]),
        ("follower.fetch.last.tiered.offset.enable", Release(4, 3, 1), []),
        ("rlmm.config.remote.log.metadata.topic.min.isr", Release(4, 2), [UNKNOWN]),
        ("zookeeper.connect", Release(4, 0), [UNKNOWN]),
        ("zookeeper.connect", Release(3, 9), []),
    ]
    for name, running, expected in others:
        value = "true" if name.endswith("enable") else "2"
        assert [one.code for one in found({name: value}, running) if one.code == UNKNOWN] == expected, name


def test_a_name_or_value_that_no_topic_has_is_refused() -> None:
    # A name that no topic has is refused.
    cases: list[tuple[str, str | None]] = [
        ("local.retention.msec", "local.retention.ms"),
        ("log.local.retention.ms", "local.retention.ms"),
        ("remote.storage.enabled", "remote.storage.enable"),
        ("remote.log.storage.system.enable", None),
    ]
    for name, meant in cases:
        settings = {
            "remote.storage.enable": "true",
            "local.retention.ms": "86400000",
            "segment.ms": "86400000",
            name: "7",
        }
        (finding,) = topic_findings(TopicSettings("orders", settings))
        assert finding.code == "topic-config-name-unknown", (name, meant)
        assert finding.evidence.get("name") == meant, (name, meant)
    # A topics value that is none gets one prescription.
    for name in ("local.retention.ms", "retention.ms", "segment.ms"):
        findings = topic_findings(TopicSettings("orders", {"remote.storage.enable": "true", name: "soon"}))
        assert [one.code for one in findings if one.evidence["name"] == name] == ["topic-config-value-invalid"]


def test_releases_of_kafka_are_taken_and_others_refused() -> None:
    # Releases of kafka are taken.
    for text in ["3.9", "3.9.2", "2.8.2", "4.0.0", "4.3.1", "4.3.2", "4.4.0", "4.4.1"]:
        assert str(release(text)) == text, text
    # Releases that do not exist are refused.
    for text in ["3.10", "3.10.0", "3.9.9", "3.8.2", "2.9.0", "4.3.7", "4.5", "5.0.0", "0.9.0", "3.3.3"]:
        with pytest.raises(TieredctlError, match="knows no Kafka release") as refused:
            release(text)
        assert refused.value.code == "usage", text
