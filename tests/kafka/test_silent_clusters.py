"""Clusters that do not answer: each in its own words, no later than stated, and no longer than Ctrl-C."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tieredctl.cli.main import run
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.kafka.live_topic import LiveTopic

TIMEOUT_SECONDS = 1.0
BEYOND_PATIENCE_SECONDS = 900
"""Longer than a test may take: what waits for it does not end."""


@pytest.fixture
def mute() -> Iterator[socket.socket]:
    """A server that never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield server


@pytest.fixture
def silent(mute: socket.socket) -> str:
    """Its address."""
    return f"127.0.0.1:{mute.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def error_of(bootstrap_server: str, timeout_seconds: float = BEYOND_PATIENCE_SECONDS) -> TieredctlError:
    with pytest.raises(TieredctlError) as raised:
        LiveTopic(bootstrap_server, request_timeout_seconds=timeout_seconds)
    return raised.value


def test_a_port_that_nobody_listens_on(closed: str) -> None:
    error = error_of(closed)

    assert error.code == "broker-unreachable"
    assert "connection refused" in error.message


def test_a_server_that_never_answers(silent: str) -> None:
    error = error_of(silent, TIMEOUT_SECONDS)

    assert error.code == "broker-unreachable"
    assert error.message.startswith(f"{silent} did not answer")


@pytest.mark.usefixtures("no_restart_awaited")
def test_a_host_that_has_no_address() -> None:
    error = error_of("no-such-host.invalid:9092")

    assert error.code == "broker-unreachable"
    assert "unknown host name" in error.message


def test_a_text_that_is_not_an_address() -> None:
    assert error_of("no address").exit_code in (ExitCode.FAILURE, ExitCode.USAGE)


def test_an_interrupt_ends_the_wait_at_once(mute: socket.socket, silent: str, tmp_path: Path) -> None:
    patient = tmp_path / "client.properties"
    patient.write_text(f"request.timeout.ms={BEYOND_PATIENCE_SECONDS * 1000}\n")
    words = ["metadata", "segments", "--bootstrap-server", silent, "--command-config", str(patient)]
    reader = subprocess.Popen(
        [sys.executable, "-m", "tieredctl", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with mute.accept()[0]:
        reader.send_signal(signal.SIGINT)
        out, err = reader.communicate()

    assert (reader.returncode, out) == (ExitCode.INTERRUPTED, "")
    assert "Interrupted" in err
    assert "Traceback" not in err


def test_a_client_that_is_not_installed_is_named(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "kafka.errors", None)

    code = run(["metadata", "segments", "--bootstrap-server", "localhost:9092"])

    assert code == ExitCode.FAILURE
    assert "pip install 'tieredctl[kafka]'" in capfd.readouterr().err
