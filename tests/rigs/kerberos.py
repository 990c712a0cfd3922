"""A key distribution centre of MIT Kerberos: Debian's `krb5-kdc`, unprivileged, on a loopback port, in one folder."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from .ports import free_ports
from .prerequisites import RigMissing
from .waiting import wait_until

REALM = "TEST.INVALID"
_START_SECONDS = 30


class KeyDistributionCentre:
    """A realm, whose server runs inside a `with`. `environment` has what Kerberos's libraries need to find it."""

    def __init__(self, folder: Path) -> None:
        (self._port,) = free_ports(1)
        self._folder = folder
        self.config = folder / "krb5.conf"
        self.environment = {
            "KRB5_CONFIG": str(self.config),
            "KRB5_KDC_PROFILE": str(folder / "kdc.conf"),
            "KRB5CCNAME": f"FILE:{folder / 'no-tickets'}",
        }
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self._folder.mkdir()
        self._write_settings()
        self._run("kdb5_util", "create", "-s", "-r", REALM, "-P", secrets.token_hex(8))
        try:
            with (self._folder / "kdc.log").open("ab") as log:
                words = [_program("krb5kdc"), "-n", "-P", str(self._folder / "kdc.pid")]
                environment = {**os.environ, **self.environment}
                self._process = subprocess.Popen(
                    words, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=environment
                )
            started = self._folder / "kdc.pid"
            wait_until(started.exists, "the KDC starts", _START_SECONDS, self._log)
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(_START_SECONDS)

    def keytab(self, *principals: str) -> Path:
        """A file with new keys of these principals, which are made."""
        file = self._folder / f"{principals[0].replace('/', '-')}.keytab"
        for principal in principals:
            self._run("kadmin.local", "-r", REALM, "addprinc", "-randkey", principal)
            self._run("kadmin.local", "-r", REALM, "ktadd", "-k", str(file), principal)
        return file

    def tickets(self, keytab: Path, principal: str) -> Path:
        """A cache with a ticket, as `kinit` leaves it."""
        file = self._folder / f"{principal}.tickets"
        self._run("kinit", "-k", "-t", str(keytab), "-c", f"FILE:{file}", principal)
        return file

    def _log(self) -> str:
        return (self._folder / "kdc.log").read_text(errors="replace")

    def _write_settings(self) -> None:
        folder = self._folder
        self.config.write_text(
            f"[libdefaults]\n default_realm = {REALM}\n dns_lookup_kdc = false\n dns_lookup_realm = false\n"
            " rdns = false\n dns_canonicalize_hostname = false\n udp_preference_limit = 1\n"
            f"[realms]\n {REALM} = {{\n  kdc = 127.0.0.1:{self._port}\n }}\n"
            f"[domain_realm]\n localhost = {REALM}\n"
        )
        (folder / "kdc.conf").write_text(
            f"[kdcdefaults]\n kdc_listen = 127.0.0.1:{self._port}\n kdc_tcp_listen = 127.0.0.1:{self._port}\n"
            f"[realms]\n {REALM} = {{\n  database_name = {folder / 'principal'}\n"
            f"  key_stash_file = {folder / 'stash'}\n"
            f"  acl_file = {folder / 'acl'}\n }}\n"
            f"[logging]\n kdc = FILE:{folder / 'kdc-requests.log'}\n"
        )

    def _run(self, program: str, *words: str) -> None:
        environment = {**os.environ, **self.environment}
        subprocess.run([_program(program), *words], env=environment, check=True, capture_output=True, timeout=60)


def _program(name: str) -> str:
    found = shutil.which(name, path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if found is None:
        raise RigMissing(f"{name} is needed: Debian's packages krb5-kdc, krb5-admin-server and krb5-user")
    return found
