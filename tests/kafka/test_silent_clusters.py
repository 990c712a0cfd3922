"""Clusters that do not answer: each in its own words, within the stated time, and no longer than Ctrl-C."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing

import pytest

from tieredctl.cli.main import run
from tieredctl.errors import ExitCode, TieredctlError
from tieredctl.kafka.live_topic import LiveTopic

TIMEOUT_SECONDS = 1.0


@pytest.fixture
def silent() -> Iterator[str]:
    """The address of a server that accepts connections and never says a word."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.fixture
def closed() -> str:
    """An address that nobody listens on."""
    with closing(socket.create_server(("127.0.0.1", 0))) as server:
        return f"127.0.0.1:{server.getsockname()[1]}"


def error_of(bootstrap_server: str) -> TieredctlError:
    begin = time.monotonic()
    with pytest.raises(TieredctlError) as raised:
        LiveTopic(bootstrap_server, request_timeout_seconds=TIMEOUT_SECONDS)
    assert time.monotonic() - begin < TIMEOUT_SECONDS + 2
    return raised.value


def test_a_port_that_nobody_listens_on(closed: str) -> None:
    error = error_of(closed)

    assert error.kind.code == "broker-unreachable"
    assert "connection refused" in error.message


def test_a_server_that_never_answers(silent: str) -> None:
    error = error_of(silent)

    assert error.kind.code == "broker-unreachable"
    assert error.message.startswith(f"{silent} did not answer")


def test_a_host_that_has_no_address() -> None:
    error = error_of("no-such-host.invalid:9092")

    assert error.kind.code == "broker-unreachable"
    assert "unknown host name" in error.message


def test_a_text_that_is_not_an_address() -> None:
    assert error_of("no address").exit_code in (ExitCode.FAILURE, ExitCode.USAGE)


def test_an_interrupt_ends_the_wait_at_once(silent: str) -> None:
    reader = subprocess.Popen(
        [sys.executable, "-m", "tieredctl", "metadata", "segments", "--bootstrap-server", silent],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with pytest.raises(subprocess.TimeoutExpired):
        reader.wait(3)
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
