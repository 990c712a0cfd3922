"""A real PostgreSQL, started by the tests: Debian's package, in a folder of its own, on a free port."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import psycopg

from .ports import free_ports
from .prerequisites import RigMissing
from .waiting import wait_until

START_TIMEOUT_SECONDS = 60
STOP_TIMEOUT_SECONDS = 30
SUPERUSER = "tieredctl_tests"
_UNPRIVILEGED = ("postgres", "nobody")
"""Who runs the server where the tests run as root: PostgreSQL refuses to be root."""
_DEBIAN_PROGRAMS = Path("/usr/lib/postgresql")


class PostgresServer:
    """A server process, running inside a `with`. Passwords are asked; `password_file` has them, as libpq reads it."""

    def __init__(self) -> None:
        self._programs = _programs()
        self._as_user = _unprivileged_user()
        self._folder = tempfile.TemporaryDirectory(prefix="postgres-", dir=_open_folder(self._as_user))
        self._data = Path(self._folder.name, "data")
        (self.port,) = free_ports(1)
        self.password = secrets.token_hex(8)
        self.password_file = Path(self._folder.name, "passwords")
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            self._make()
            self.start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def start(self) -> None:
        """Starts the server, and waits until it answers."""
        settings = {
            "listen_addresses": "127.0.0.1",
            "port": str(self.port),
            "unix_socket_directories": "",
            "fsync": "off",
            "max_connections": "20",
            "shared_buffers": "16MB",
        }
        words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        with self._log_file.open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", str(self._data), *words],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self._identity,
            )
        wait_until(self._answers, "PostgreSQL answers", START_TIMEOUT_SECONDS, self._log)

    def stop(self, number: signal.Signals = signal.SIGINT) -> None:
        """Ends the server: in order, or as the signal says."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(STOP_TIMEOUT_SECONDS)
            self._process = None

    def restart(self, *, standby: bool) -> None:
        """Restarts the server: as a standby, which has no primary, or as itself again."""
        self.stop()
        mark = self._data / "standby.signal"
        if standby:
            mark.touch()
        else:
            mark.unlink()
        self.start()

    @contextmanager
    def put_back_afterwards(self) -> Iterator[Callable[[], None]]:
        """Copies the server's disk; the function that is given puts the copy in its place."""
        copy = self._data.with_name("data-before")

        def put_back() -> None:
            self.stop()
            shutil.rmtree(self._data)
            subprocess.run(["cp", "-a", copy, self._data], check=True)
            self.start()

        self.stop()
        subprocess.run(["cp", "-a", self._data, copy], check=True)
        self.start()
        try:
            yield put_back
        finally:
            shutil.rmtree(copy)

    def url(self, database: str, user: str = SUPERUSER) -> str:
        """The libpq URI of a database, without a password."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/{database}"

    def add_role(self, role: str) -> None:
        """Makes a role that may log in, and nothing else."""
        self.run("postgres", f"CREATE ROLE {role} LOGIN PASSWORD '{self.password}'")

    def connected(self, database: str) -> Any:
        """A connection as superuser, which commits each statement by itself."""
        return psycopg.connect(self.url(database), password=self.password, autocommit=True)

    def run(self, database: str, *statements: str) -> None:
        """Runs statements as superuser, each by itself."""
        with self.connected(database) as connection:
            for statement in statements:
                connection.execute(statement)

    @property
    def _log_file(self) -> Path:
        return Path(self._folder.name, "server.log")

    @property
    def _identity(self) -> dict[str, Any]:
        if self._as_user is None:
            return {}
        return {"user": self._as_user.pw_uid, "group": self._as_user.pw_gid, "extra_groups": []}

    def _make(self) -> None:
        first_password = Path(self._folder.name, "first-password")
        first_password.write_text(self.password)
        self.password_file.write_text(f"127.0.0.1:{self.port}:*:*:{self.password}\n")
        self.password_file.chmod(0o600)
        if self._as_user is not None:
            for path in (self._folder.name, first_password):
                os.chown(path, self._as_user.pw_uid, self._as_user.pw_gid)
        words = ["--pgdata", str(self._data), "--username", SUPERUSER, "--pwfile", str(first_password), "--no-sync"]
        words += ["--auth", "scram-sha-256", "--encoding", "UTF8", "--no-locale"]
        subprocess.run(
            [self._programs / "initdb", *words],
            check=True,
            capture_output=True,
            cwd=self._folder.name,
            timeout=START_TIMEOUT_SECONDS,
            **self._identity,
        )

    def _answers(self) -> bool:
        if self._process is None or self._process.poll() is not None:
            raise RuntimeError(f"PostgreSQL ended: {self._log()}")
        try:
            psycopg.connect(self.url("postgres"), password=self.password).close()
        except psycopg.OperationalError:
            return False
        return True

    def _log(self) -> str:
        return self._log_file.read_text(encoding="utf-8", errors="replace")[-2_000:]


def _programs() -> Path:
    """The folder with the server's programs. Raises RigMissing."""
    found = shutil.which("postgres")
    folders = [Path(found).resolve().parent] if found else []
    # Debian keeps them off the PATH, in a folder for each release.
    folders += sorted(_DEBIAN_PROGRAMS.glob("*/bin"), key=lambda folder: float(folder.parent.name), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists():
            return folder
    raise RigMissing("PostgreSQL is needed (Debian's package postgresql), and its program `postgres` is not here")


def _unprivileged_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    for name in _UNPRIVILEGED:
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise RigMissing("PostgreSQL does not run as root, and there is no user postgres or nobody")


def _open_folder(user: pwd.struct_passwd | None) -> str | None:
    """A folder for temporary files that the user may enter; None for the usual one."""
    if user is None:
        return None
    for folder in (tempfile.gettempdir(), "/tmp", "/var/tmp"):
        entered = subprocess.run(
            ["test", "-x", folder], user=user.pw_uid, group=user.pw_gid, extra_groups=[], check=False
        )
        if entered.returncode == 0:
            return folder
    raise RigMissing(f"{user.pw_name} may enter no folder for temporary files")
