"""What a shell is offered, and names that were read before."""

from __future__ import annotations

from collections.abc import Callable

from tests.metadata_logs import TOPIC_ID, segment_id
from tieredctl.cli.completion.completion_cache import SeenNames

PLACE = "--bootstrap-server\0broker:9092"
BROKER = ("--bootstrap-server", "broker:9092")

Offered = Callable[..., list[str]]
"""`offered("metadata", "se")`: what can follow, after what the shell is told to do."""


def one_topic() -> SeenNames:
    seen = SeenNames()
    seen.add_topic("orders", TOPIC_ID, 2)
    seen.add_segment(segment_id(7), "orders", 2)
    return seen
