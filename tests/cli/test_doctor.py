"""`doctor config` of a file, `doctor upgrade` and `doctor downgrade`: what a pipeline sees of them."""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

SOUND = """
process.roles=broker
listeners=PLAINTEXT://:9092
log.dirs=/var/lib/kafka
min.insync.replicas=2
remote.log.storage.system.enable=true
remote.log.storage.manager.class.name=org.example.Storage
remote.log.metadata.manager.listener.name=PLAINTEXT
remote.log.manager.copy.max.bytes.per.second=100000000
remote.log.manager.fetch.max.bytes.per.second=100000000
"""
SOUND_TOPIC = ("--topic-config", "local.retention.ms=86400000", "--topic-config", "segment.ms=86400000")


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    file = tmp_path / "server.properties"
    file.write_text(SOUND)
    return file


def broken(file: Path, line: str) -> Path:
    file.write_text(SOUND + line + "\n")
    return file


FOR_EVER = ("--topic-config", "retention.ms=-1")
UNKNOWN = "broker-config-name-unknown"
MONTH = "rlmm.config.remote.log.metadata.topic.retention.ms=2592000000"
JUDGED: list[tuple[str, tuple[str, ...], int, list[str]]] = [
    ("", SOUND_TOPIC, 0, []),
    ("remote.log.reader.threads=5", (), 0, ["info"]),
    ("log.dirs=/a,/b", ("--kafka-version", "3.7.2"), 3, ["broker-config-several-log-dirs", *2 * [UNKNOWN]]),
    ("log.dirs=/a,/b", ("--kafka-version", "3.8.0"), 0, []),
    ("log.retention.hours=12", SOUND_TOPIC, 3, ["topic-config-local-retention"]),
    (MONTH, (*SOUND_TOPIC, *FOR_EVER), 3, ["broker-config-metadata-retention"]),
]
"""A line more, the options, the exit code, and the findings: their codes, or that they are only to know."""


def test_settings_are_judged_by_the_release_the_topic_and_each_other(tieredctl: Tieredctl, sound: Path) -> None:
    for line, words, code, expected in JUDGED:
        outcome = tieredctl("doctor", "config", broken(sound, line), *words, "-o", "jsonl")

        found = [one["severity"] if one["severity"] == "info" else one["code"] for one in outcome.lines()]
        assert (outcome.exit_code, found) == (code, expected), line


def test_wrong_use_is_refused(tieredctl: Tieredctl, sound: Path) -> None:
    unreadable = sound.with_name("unreadable.properties")
    unreadable.write_text("name=\\u12\n")
    for line in (
        "doctor",
        "doctor config",
        "doctor config --bootstrap-server localhost:1 --topic-config retention.ms=1",
        f"doctor config {sound} --topic-config retention.ms",
        f"doctor config {sound} --kafka-version new",
        "doctor config no-such-file",
        f"doctor config {unreadable}",
        f"doctor --bootstrap-server localhost:1 config {sound}",
        "doctor upgrade 3.9.1",
        "doctor upgrade 4.3.1 3.9.1",
        "doctor downgrade 3.9.1 4.3.1",
        "doctor upgrade 4.3.1 4.3.1",
    ):
        assert tieredctl(*line.split())[:2] == (2, ""), line


def test_a_broken_setting_is_a_finding_with_its_remedy(tieredctl: Tieredctl, sound: Path) -> None:
    line = "rlmm.config.remote.log.metadata.topic.replication.factor=1"

    finding = tieredctl("doctor", "config", broken(sound, line), "-o", "json").finding()

    assert finding["code"] == "broker-config-metadata-replication"
    assert finding["remedy"] == f"in server.properties: {line[:-1]}3"


def test_every_format_has_the_finding(tieredctl: Tieredctl, sound: Path, tmp_path: Path) -> None:
    words = ("doctor", "config", broken(sound, "min.insync.replicas=1"), "--metrics-file", tmp_path / "m.prom", "-o")

    (row,) = csv.DictReader(StringIO(tieredctl(*words, "csv").out))
    assert row["code"] == "broker-config-metadata-min-isr"
    assert "in server.properties: min.insync.replicas=2" in tieredctl(*words, "wide").out
    assert "code: broker-config-metadata-min-isr" in tieredctl(*words, "yaml").out
    assert 'code="broker-config-metadata-min-isr"' in (tmp_path / "m.prom").read_text()


def test_an_upgrade_that_asks_for_something_is_a_finding(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("doctor", "upgrade", "4.2.1", "4.3.2", "-o", "json")

    document = outcome.document()
    steps = {item["subject"]: item["remedy"] for item in document["items"] if item["code"] == "upgrade-step"}
    assert outcome.exit_code == 3
    assert document["source"] == {"kind": "releases", "from": "4.2.1", "to": "4.3.2"}
    assert steps["min ISR of the metadata topic"].endswith("--add-config min.insync.replicas=2")
    assert tieredctl("doctor", "upgrade", "4.3.1", "4.3.2").exit_code == 0


def test_a_downgrade_tells_what_is_lost(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("doctor", "downgrade", "4.3.1", "3.8.1", "-o", "jsonl")

    assert outcome.exit_code == 3
    assert "KIP-950" in {line["subject"] for line in outcome.lines()}
