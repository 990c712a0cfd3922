"""Servers that speak the languages of S3, of Google Cloud Storage and of Azure, each on a free port with a folder of
its own."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from .go_program import go_program
from .node_program import node_program
from .ports import accepts_connections, free_ports
from .waiting import DeadlineMissed, wait_until

START_TIMEOUT_SECONDS = 300
STOP_TIMEOUT_SECONDS = 10

VERSITYGW = ("github.com/versity/versitygw/cmd/versitygw", "v1.8.0")
FAKE_GCS_SERVER = ("github.com/fsouza/fake-gcs-server", "v1.56.1")
AZURITE = ("azurite", "3.37.0", "dist/src/blob/main.js")

ACCESS_KEY = "tieredctl-tests"
SECRET_KEY = "not-to-be-seen-in-any-output"
"""What versitygw knows its one user by; moto and those of Google's kind ask nobody who they are."""
AZURE_ACCOUNT = "devstoreaccount1"
AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="
"""The account that Azurite has, and its key, which Microsoft publishes."""


class ServerFailed(Exception):
    """A server ended, or did not listen in time; the text holds what it said."""


class ObjectServer:
    """A server process, running inside a `with`."""

    def __init__(self, command: Sequence[str], port: int, folder: tempfile.TemporaryDirectory[str]) -> None:
        self.endpoint = f"http://127.0.0.1:{port}"
        self._port = port
        self._command = command
        self._folder = folder

    @property
    def data(self) -> Path:
        """Where versitygw has a folder for each bucket, and a file for each object."""
        return Path(self._folder.name, "data")

    def __enter__(self) -> Self:
        self._log_file = Path(self._folder.name, "server.log")
        with self._log_file.open("wb") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._folder.name
            )
        try:
            wait_until(self._is_ready, f"{self._command[0]} listens", START_TIMEOUT_SECONDS, self._log)
        except BaseException as error:
            self.stop()
            if isinstance(error, DeadlineMissed):
                raise ServerFailed(str(error)) from None
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Ends the process and removes its folder."""
        self._process.terminate()
        try:
            self._process.wait(STOP_TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._folder.cleanup()

    def _is_ready(self) -> bool:
        if self._process.poll() is not None:
            raise ServerFailed(f"{self._command[0]} ended with {self._process.returncode}: {self._log()}")
        return accepts_connections(self._port)

    def _log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace")[-2_000:]


def moto() -> ObjectServer:
    """S3 by moto: in memory, asks nobody who they are."""
    port, folder = _place()
    return ObjectServer([_script("moto_server"), "-H", "127.0.0.1", "-p", str(port)], port, folder)


def versitygw(largest_copy_at_once: int = 5 << 30) -> ObjectServer:
    """S3 by versitygw: keys are files, signatures are checked, and a larger object is not copied at once.

    Raises RigMissing without Go.
    """
    return _versitygw("--copy-object-threshold", str(largest_copy_at_once))


def measured_versitygw(access_log: Path) -> ObjectServer:
    """The same with a line in the access log for each request, and connections that stay open, as those to S3 do."""
    return _versitygw("--access-log", str(access_log), "--keep-alive")


def versitygw_with_users() -> ObjectServer:
    """The same for users, whom `add_user` makes, and who may do what a bucket's policy allows them."""
    return _versitygw("--iam-dir", "../users")


def add_user(endpoint: str, name: str) -> None:
    """Makes a user of versitygw, whose key is the name, and whose secret is SECRET_KEY."""
    words = ["admin", "--access", ACCESS_KEY, "--secret", SECRET_KEY, "--endpoint-url", endpoint, "create-user"]
    words += ["--access", name, "--secret", SECRET_KEY, "--role", "user"]
    subprocess.run([str(go_program(*VERSITYGW)), *words], check=True, capture_output=True, timeout=60)


def _versitygw(*more: str) -> ObjectServer:
    program = go_program(*VERSITYGW)
    port, folder = _place()
    data = Path(folder.name, "data")
    data.mkdir()
    Path(folder.name, "users").mkdir()  # the server's own folder is that of the buckets
    words = ["--access", ACCESS_KEY, "--secret", SECRET_KEY, "--port", f"127.0.0.1:{port}", "--quiet"]
    return ObjectServer([str(program), *words, *more, "posix", str(data)], port, folder)


def fake_gcs_server() -> ObjectServer:
    """Google Cloud Storage by fake-gcs-server, in memory. Raises RigMissing without Go."""
    program = go_program(*FAKE_GCS_SERVER)
    port, folder = _place()
    place = f"127.0.0.1:{port}"
    words = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-backend", "memory"]
    words += ["-external-url", f"http://{place}", "-public-host", place, "-log-level", "error"]
    return ObjectServer([str(program), *words], port, folder)


def gcp_storage_emulator() -> ObjectServer:
    """Google Cloud Storage by gcp-storage-emulator, in memory."""
    port, folder = _place()
    words = ["start", "--host", "127.0.0.1", "--port", str(port), "--in-memory", "--quiet"]
    return ObjectServer([_script("gcp-storage-emulator"), *words], port, folder)


def azurite(*more: str) -> ObjectServer:
    """Azure Blob Storage by Azurite, in memory: signatures are checked. Its endpoint is that of AZURE_ACCOUNT.

    Raises RigMissing where it cannot be installed.
    """
    command = node_program(*AZURITE)
    port, folder = _place()
    words = ["--silent", "--inMemoryPersistence", "--disableTelemetry", "--blobPort", str(port), *more]
    server = ObjectServer([*command, *words], port, folder)
    server.endpoint += f"/{AZURE_ACCOUNT}"
    return server


def _place() -> tuple[int, tempfile.TemporaryDirectory[str]]:
    (port,) = free_ports(1)
    return port, tempfile.TemporaryDirectory(prefix="object-server-")


def _script(name: str) -> str:
    return str(Path(sys.executable).with_name(name))
