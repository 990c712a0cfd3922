"""Counts what tieredctl opens on a live cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

from tieredctl.kafka.kafka_python_client import KafkaPythonClient
from tieredctl.kafka.live_topic import LiveTopic


def opened_clients(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """From now on: the sources of metadata that are made, the clients, and how often the metadata was looked at."""
    counts = Counter[str]()

    def count(kind: type, method: str, name: str) -> None:
        original: Callable[..., Any] = getattr(kind, method)

        def counted(*arguments: Any, **named: Any) -> Any:
            counts[name] += 1
            return original(*arguments, **named)

        monkeypatch.setattr(kind, method, counted)

    count(LiveTopic, "__init__", "sources")
    count(LiveTopic, "advance", "looks")
    count(KafkaPythonClient, "__init__", "clients")
    return counts
