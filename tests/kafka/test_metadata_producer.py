"""Writing events where nobody confirms them, and with properties that would weaken it."""

from __future__ import annotations

import socket
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tests.metadata_logs import started
from tests.refusals import refused_with
from tieredctl.errors import TieredctlError
from tieredctl.kafka.metadata_producer import MetadataProducer

TIMEOUT_SECONDS = 100.0
"""Longer than a connection takes to be refused."""


@pytest.fixture
def closed_address() -> str:
    """An address that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def test_an_event_that_nobody_confirms_is_reported(closed_address: str) -> None:
    with (
        closing(MetadataProducer(closed_address, request_timeout_seconds=TIMEOUT_SECONDS)) as producer,
        pytest.raises(TieredctlError) as raised,
    ):
        producer.publish(0, [started(1, 0, 9)])

    assert raised.value.code == "broker-unreachable"
    assert raised.value.message.startswith(f"{closed_address} cannot be reached: connection refused")


def test_no_event_takes_no_broker(closed_address: str) -> None:
    with closing(MetadataProducer(closed_address, request_timeout_seconds=TIMEOUT_SECONDS)) as producer:
        producer.publish(0, [])


def test_properties_that_would_lose_or_double_events_are_overruled(closed_address: str, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text(
        "acks=0\nenable.idempotence=false\nmax.in.flight.requests.per.connection=100\ntransactional.id=mine\n"
    )

    with closing(MetadataProducer(closed_address, file, TIMEOUT_SECONDS)) as producer:
        producer.publish(0, [])


def test_a_client_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)

    with refused_with("missing-extra"):
        MetadataProducer("localhost:9092")
