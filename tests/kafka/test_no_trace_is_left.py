"""Commands that only look leave nothing on the cluster: no consumer group, and not the topic that groups need."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.rigs.broker import METADATA_TOPIC, KafkaBroker
from tests.rigs.driven_brokers import jars_of
from tests.rigs.own_topic import SECONDS, own_topic
from tests.rigs.topics import known_topics
from tests.rigs.waiting import wait_until
from tieredctl.cli.main import run

pytestmark = pytest.mark.integration

TOPIC = "orders"


@pytest.fixture(params=["4.3.1", pytest.param("3.9.1", marks=pytest.mark.exhaustive)])
def fresh(request: pytest.FixtureRequest) -> Iterator[KafkaBroker]:
    """A broker with a tiered topic that nobody ever read."""
    with (
        KafkaBroker(jars_of(request.param)) as broker,
        own_topic(broker, TOPIC, remote_storage_enable="true") as topic,
    ):
        topic.write(3)
        wait_until(lambda: topic.offsets()[2] == 1, "two segments are tiered", SECONDS)
        yield broker


def test_no_command_that_only_looks_makes_consumer_offsets(
    fresh: KafkaBroker, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    live = ("--bootstrap-server", fresh.bootstrap_server)
    store = ("--store", f"file:{fresh.remote_dir}", "--layout", "local")
    commands = [
        ["metadata", "stats", *live],
        ["metadata", "segments", *live],
        ["metadata", "lookup", f"{TOPIC}:0", "--epoch", "0", "--offset", "1", *live],
        ["metadata", "format", *live],
        ["metadata", "stuck", *live],
        ["metadata", "export", str(tmp_path / "export.parquet"), *live],
        ["topic", "list", *live],
        ["topic", "status", TOPIC, *live],
        ["doctor", *live],
        ["explain", f"{TOPIC}:0@1", *live],
        ["verify", *live, *store],
        ["orphans", "scan", *live, *store],
        ["offsets", TOPIC, *live],
    ]

    codes = {" ".join(command[:2]): run(command) for command in commands}

    # Doctor has something to say of a single broker.
    assert {name for name, code in codes.items() if code not in (0, 3)} == set(), capfd.readouterr().err
    assert topics_of(fresh) == {TOPIC, METADATA_TOPIC}


def topics_of(broker: KafkaBroker) -> set[str]:
    """Over a client that asks for no coordinator."""
    return set(known_topics(broker.bootstrap_server))
