"""Kafka's client libraries, loaded before they are needed."""

from __future__ import annotations

from contextlib import suppress
from importlib import import_module

_LIBRARIES = ("kafka", "confluent_kafka")


def load_client_libraries() -> None:
    """For who opens clusters in several threads: kafka-python's modules import each other in circles, which fails where
    two threads begin at different ones. One that is not installed is reported by what needs it."""
    for name in _LIBRARIES:
        with suppress(ImportError):
            import_module(name)
