"""`partition remove` without a cluster: what it refuses before it asks anybody."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.command_line import Tieredctl

TOPIC_ID = "Ex-aw3fEQIi3do0H9Y7cKQ"
LIVE = ("--bootstrap-server", "localhost:1")


def test_it_takes_a_live_cluster(tieredctl: Tieredctl, tmp_path: Path) -> None:
    outcome = tieredctl("partition", "remove", TOPIC_ID, "--store", f"file:{tmp_path}", "--layout", "local")

    assert outcome.exit_code == 2
    assert "give --bootstrap-server" in outcome.err


def test_it_takes_a_store(tieredctl: Tieredctl) -> None:
    outcome = tieredctl("partition", "remove", TOPIC_ID, *LIVE)

    assert outcome.exit_code == 2
    assert "--store" in outcome.err


@pytest.mark.parametrize(
    "what", ["orders", f"{TOPIC_ID}:", f"{TOPIC_ID}:x", f"{TOPIC_ID}:-1", f"{TOPIC_ID}:2147483648"]
)
def test_what_is_not_a_partition_of_a_topic_id_is_refused(tieredctl: Tieredctl, tmp_path: Path, what: str) -> None:
    outcome = tieredctl("partition", "remove", what, *LIVE, "--store", f"file:{tmp_path}", "--layout", "local")

    assert outcome.exit_code == 2
    assert what in outcome.err


def test_a_topics_name_is_not_a_topic_id(tieredctl: Tieredctl, tmp_path: Path) -> None:
    outcome = tieredctl("partition", "remove", "orders", *LIVE, "--store", f"file:{tmp_path}", "--layout", "local")

    assert outcome.exit_code == 2
    assert "'orders' is not a Kafka id" in outcome.err
