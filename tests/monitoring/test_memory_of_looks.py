"""An exporter runs for months: a look leaves nothing behind."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rigs.driven_brokers import DrivenBroker

REPOSITORY = Path(__file__).parents[2]
LOOKS = int(os.environ.get("TIEREDCTL_EXPORTER_LOOKS", "1000"))
MOST_BYTES = (2 if LOOKS <= 1000 else 5) << 20
"""That memory comes to be in pieces costs this much once, and no more however many looks follow."""
FEWER_THAN_LOOKS = 10
"""Objects that may be there besides: of threads that are about to end, say."""


def looked(place: object, store: object, *looks: int) -> list[tuple[int, int]]:
    """Resident bytes and objects of an exporter's process after each of these numbers of looks."""
    program = [sys.executable, "-m", "tests.monitoring.looks", str(place), str(store), *map(str, looks)]
    done = subprocess.run(program, cwd=REPOSITORY, check=True, stdout=subprocess.PIPE, text=True)
    return [(int(size), int(objects)) for size, objects in map(str.split, done.stdout.splitlines())]


def test_many_looks_take_no_more_memory_than_two_hundred(captures: Path) -> None:
    capture = captures / "kafka-4.3.1"

    (before, few), (after, many) = looked(capture / "data", capture / "remote/kafka-tiered-storage", 200, LOOKS - 200)

    assert after - before < MOST_BYTES
    assert many - few < FEWER_THAN_LOOKS


@pytest.mark.integration
def test_looks_at_a_broker_leave_no_objects(kafka_4: DrivenBroker) -> None:
    (_, before), (_, after) = looked(kafka_4.broker.bootstrap_server, "", 10, 30)

    assert after - before < FEWER_THAN_LOOKS
