"""`snapshot clean`, also of real brokers' directories: while one runs, nothing of it goes."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from confluent_kafka.cimpl import NewTopic

from tests.cli.command_line import Outcome, Tieredctl
from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import DrivenBroker, jars_of
from tests.rigs.topics import create_topics, known_topics
from tests.rigs.waiting import wait_until
from tieredctl.errors import ExitCode
from tieredctl.wiring.offline_cluster import OfflineClusterPlace

FOLDER = "__cluster_metadata-0"
LIMITS = ("--metadata-max-retention-ms", "1", "--metadata-max-retention-bytes", "-1")
QUICK = {"metadata.log.segment.ms": "300", "metadata.max.idle.interval.ms": "100"}
"""Segments of the metadata log that a second fills."""


def topics_of(broker: KafkaBroker) -> set[str]:
    return set(known_topics(broker.bootstrap_server))


def files(broker: KafkaBroker, suffix: str) -> list[str]:
    return sorted(path.name for path in (broker.log_dir / FOLDER).glob(f"*{suffix}"))


@pytest.mark.integration
def test_a_running_broker_is_not_cleaned(driven: DrivenBroker, tieredctl: Tieredctl) -> None:
    outcome = tieredctl("snapshot", "clean", driven.broker.log_dir)

    assert outcome.exit_code == ExitCode.LOCKED
    assert "A node is running" in outcome.err


@pytest.mark.integration
def test_a_stopped_broker_is_cleaned_and_starts_with_the_same_cluster(tieredctl: Tieredctl, tmp_path: Path) -> None:
    with KafkaBroker(jars_of("4.3.1"), properties=QUICK) as broker:
        for number in range(3):
            create_topics(broker.bootstrap_server, NewTopic(f"t{number}", 1))
        wait_until(lambda: len(files(broker, ".log")) > 4, "the metadata log has some segments", 60)
        snapshots = len(files(broker, ".checkpoint"))
        create_topics(broker.bootstrap_server, NewTopic("last", 1))
        wait_until(lambda: len(files(broker, ".checkpoint")) > snapshots, "a snapshot has most of it", 60)
        wait_until(lambda: METADATA_TOPIC in topics_of(broker), "the broker has made its own topic", 60)
        topics = topics_of(broker)
        broker.kill()
        stopped = OfflineClusterPlace(broker.log_dir).read()
        assert {topic.name for topic in stopped.image.topics.values()} == topics
        assert stopped.image.is_certain
        before = files(broker, "")

        outcome = clean(tieredctl, broker, tmp_path)

        assert outcome.exit_code == ExitCode.CLEAN, outcome.err
        assert len(files(broker, ".checkpoint")) == 1
        assert outcome.document()["summary"]["segments"] > 0
        assert set(files(broker, "")) < set(before)
        broker.start()
        assert topics_of(broker) == topics
        create_topics(broker.bootstrap_server, NewTopic("afterwards", 1))
        broker.stop()
        again = OfflineClusterPlace(broker.log_dir).read()
        assert {topic.name for topic in again.image.topics.values()} == {*topics, "afterwards"}
        assert clean(tieredctl, broker, tmp_path).exit_code == ExitCode.CLEAN


def clean(tieredctl: Tieredctl, broker: KafkaBroker, tmp_path: Path) -> Outcome:
    limits = ("--metadata-max-retention-ms", "0", "--metadata-max-retention-bytes", "-1")
    words = (*limits, "--receipts", tmp_path / "receipts", "--apply", "--yes", "-o", "json")
    return tieredctl("snapshot", "clean", broker.log_dir, *words, "--cluster-id", broker.cluster_id)


@pytest.fixture
def copy(captures: Path, tmp_path: Path) -> Path:
    """Of a log directory, after a clean stop."""
    shutil.copytree(captures / "kafka-4.3.1/data", tmp_path / "data")
    return tmp_path / "data"


def test_without_apply_it_is_only_shown(tieredctl: Tieredctl, copy: Path) -> None:
    before = sorted((copy / FOLDER).iterdir())

    outcome = tieredctl("snapshot", "clean", copy, "--metadata-max-retention-bytes", "0")

    assert outcome.exit_code == ExitCode.CLEAN
    assert outcome.out.count(" remove ") == 2
    assert "metadata.max.retention.bytes is 0 (--metadata-max-retention-bytes)." in outcome.err
    assert "(Kafka's default: no file of the node was found)" in outcome.err
    assert "To remove: 2 snapshots, 0 segments and 0 left-over files (6.4 KiB)." in outcome.err
    assert sorted((copy / FOLDER).iterdir()) == before


@pytest.mark.parametrize("output", ["wide", "json", "jsonl", "csv", "yaml"])
def test_every_format_has_each_file(tieredctl: Tieredctl, copy: Path, output: str) -> None:
    outcome = tieredctl("snapshot", "clean", copy / FOLDER, "--metadata-max-retention-ms", "1", "-o", output)

    assert outcome.exit_code == ExitCode.CLEAN
    assert outcome.out.count(".checkpoint") == 3


@pytest.mark.parametrize(
    ("words", "code"),
    [
        (("--yes",), ExitCode.USAGE),
        (("--yes", "--cluster-id", "5lgVbV_vRSmEjoqjPWDZrA"), ExitCode.USAGE),
        ((), ExitCode.USAGE),
    ],
)
def test_nothing_goes_unconfirmed(tieredctl: Tieredctl, copy: Path, words: tuple[str, ...], code: ExitCode) -> None:
    outcome = tieredctl("snapshot", "clean", copy, *LIMITS, "--apply", *words)

    assert outcome.exit_code == code
    assert "onfirm" in outcome.err or "--cluster-id" in outcome.err
    assert len(list((copy / FOLDER).glob("*.checkpoint"))) == 3


@pytest.mark.parametrize(
    "words",
    [
        ("nowhere",),
        ("/dev/null",),
        (".",),
        ("{copy}", "--metadata-max-retention-ms", "-2"),
        ("{copy}", "--metadata-max-retention-bytes", "1e9"),
        ("{copy}", "--now", "yesterday"),
        (),
    ],
)
def test_wrong_use_ends_in_a_sentence(tieredctl: Tieredctl, copy: Path, words: tuple[str, ...]) -> None:
    outcome = tieredctl("snapshot", "clean", *(word.format(copy=copy) for word in words))

    assert outcome.exit_code == ExitCode.USAGE
    assert outcome.err
    assert "Traceback" not in outcome.err


def test_it_is_not_applied_by_limits_that_may_not_be_the_nodes(tieredctl: Tieredctl, copy: Path) -> None:
    outcome = tieredctl("snapshot", "clean", copy, "--metadata-max-retention-ms", "1", "--apply", "--yes")

    assert outcome.exit_code == ExitCode.USAGE
    assert "metadata.max.retention.bytes is not known" in outcome.err
    assert "--server-properties" in outcome.err
    assert len(list((copy / FOLDER).glob("*.checkpoint"))) == 3


def test_a_cluster_without_an_id_is_not_cleaned(tieredctl: Tieredctl, copy: Path) -> None:
    (copy / "meta.properties").unlink()

    outcome = tieredctl("snapshot", "clean", copy, *LIMITS, "--apply", "--yes")

    assert outcome.exit_code != ExitCode.CLEAN
    assert "cannot be confirmed" in outcome.err
    assert len(list((copy / FOLDER).glob("*.checkpoint"))) == 3
