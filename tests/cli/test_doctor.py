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


def test_sound_settings_are_clean(tieredctl: Tieredctl, sound: Path) -> None:
    outcome = tieredctl("doctor", "config", sound, *SOUND_TOPIC)

    assert (outcome.exit_code, outcome.out) == (0, "")
    assert "nothing needs attention" in outcome.err


def test_a_broken_setting_is_a_finding_with_its_remedy(tieredctl: Tieredctl, sound: Path) -> None:
    line = "rlmm.config.remote.log.metadata.topic.replication.factor=1"

    finding = tieredctl("doctor", "config", broken(sound, line), "-o", "json").finding()

    assert finding["code"] == "broker-config-metadata-replication"
    assert finding["remedy"] == f"in server.properties: {line[:-1]}3"


def test_what_is_only_to_know_is_clean(tieredctl: Tieredctl, sound: Path) -> None:
    outcome = tieredctl("doctor", "config", broken(sound, "remote.log.reader.threads=5"), "-o", "jsonl")

    assert [line["severity"] for line in outcome.lines()] == ["info"]
    assert outcome.exit_code == 0


def test_the_release_decides(tieredctl: Tieredctl, sound: Path) -> None:
    several = broken(sound, "log.dirs=/a,/b")

    assert tieredctl("doctor", "config", several, "--kafka-version", "3.7.2").exit_code == 3
    assert tieredctl("doctor", "config", several, "--kafka-version", "3.8.0").exit_code == 0


def test_a_topic_is_judged_with_its_brokers_defaults(tieredctl: Tieredctl, sound: Path) -> None:
    short = broken(sound, "log.retention.hours=12")

    finding = tieredctl("doctor", "config", short, *SOUND_TOPIC, "-o", "json").finding()

    assert finding["code"] == "topic-config-local-retention"


def test_metadata_that_goes_before_the_topics_data_is_found(tieredctl: Tieredctl, sound: Path) -> None:
    month = broken(sound, "rlmm.config.remote.log.metadata.topic.retention.ms=2592000000")

    finding = tieredctl("doctor", "config", month, *SOUND_TOPIC, "--topic-config", "retention.ms=-1", "-o", "json")

    assert finding.finding()["code"] == "broker-config-metadata-retention"


def test_every_format_has_the_finding(tieredctl: Tieredctl, sound: Path) -> None:
    file = broken(sound, "min.insync.replicas=1")

    (row,) = csv.DictReader(StringIO(tieredctl("doctor", "config", file, "-o", "csv").out))
    wide = tieredctl("doctor", "config", file, "-o", "wide").out
    yaml = tieredctl("doctor", "config", file, "-o", "yaml").out

    assert row["code"] == "broker-config-metadata-min-isr"
    assert "in server.properties: min.insync.replicas=2" in wide
    assert "code: broker-config-metadata-min-isr" in yaml


def test_metrics_count_the_findings(tieredctl: Tieredctl, sound: Path, tmp_path: Path) -> None:
    tieredctl("doctor", "config", broken(sound, "min.insync.replicas=1"), "--metrics-file", tmp_path / "m.prom")

    assert 'code="broker-config-metadata-min-isr"' in (tmp_path / "m.prom").read_text()


@pytest.mark.parametrize(
    "words",
    [
        ("doctor",),
        ("doctor", "config"),
        ("doctor", "config", "--bootstrap-server", "localhost:1", "--topic-config", "retention.ms=1"),
        ("doctor", "config", "FILE", "--topic-config", "retention.ms"),
        ("doctor", "config", "FILE", "--kafka-version", "new"),
        ("doctor", "config", "no-such-file"),
        ("doctor", "--bootstrap-server", "localhost:1", "config", "FILE"),
        ("doctor", "upgrade", "3.9.1"),
        ("doctor", "upgrade", "4.3.1", "3.9.1"),
        ("doctor", "downgrade", "3.9.1", "4.3.1"),
        ("doctor", "upgrade", "4.3.1", "4.3.1"),
    ],
)
def test_wrong_use_is_named(tieredctl: Tieredctl, sound: Path, words: tuple[str, ...]) -> None:
    outcome = tieredctl(*(sound if word == "FILE" else word for word in words))

    assert (outcome.exit_code, outcome.out) == (2, "")


def test_what_is_not_a_properties_file_is_named(tieredctl: Tieredctl, sound: Path) -> None:
    outcome = tieredctl("doctor", "config", broken(sound, "name=\\u12"))

    assert outcome.exit_code == 2
    assert "is not a properties file" in outcome.err


def test_an_upgrade_that_asks_for_something_is_a_finding(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("doctor", "upgrade", "4.2.1", "4.3.2", "-o", "json")

    document = outcome.document()
    steps = {item["subject"]: item["remedy"] for item in document["items"] if item["code"] == "upgrade-step"}
    assert outcome.exit_code == 3
    assert document["source"] == {"kind": "releases", "from": "4.2.1", "to": "4.3.2"}
    assert steps["min ISR of the metadata topic"].endswith("--add-config min.insync.replicas=2")


def test_an_upgrade_that_asks_for_nothing_is_clean(tieredctl: Tieredctl) -> None:
    assert tieredctl("doctor", "upgrade", "4.3.1", "4.3.2").exit_code == 0


def test_a_downgrade_tells_what_is_lost(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("doctor", "downgrade", "4.3.1", "3.8.1", "-o", "jsonl")

    assert outcome.exit_code == 3
    assert "KIP-950" in {line["subject"] for line in outcome.lines()}
