"""HDFS with Kerberos and TLS, by Hadoop's own mini cluster and MIT's key distribution centre."""

from __future__ import annotations

import subprocess
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from .hdfs import USER, HadoopProcess
from .kerberos import REALM, KeyDistributionCentre
from .maven import java_command

_PASSWORD = "store-password"
_NAMES = "SAN=dns:localhost,ip:127.0.0.1"


class SecureHdfsCluster(HadoopProcess):
    """A running cluster that knows its users by tickets and tokens alone, and sends nothing unprotected."""

    namenode: str
    token: str
    """A delegation token of USER, as its WebHDFS tells one to who shows a ticket."""
    authority: Path
    """The servers' certificate, in PEM."""

    def __init__(self) -> None:
        super().__init__("SecureHdfsCluster")

    def __enter__(self) -> Self:
        self.authority = self.folder / "authority.pem"
        with ExitStack() as ends:
            ends.callback(self._folder.cleanup)
            self._make_stores()
            kdc = ends.enter_context(KeyDistributionCentre(self.folder / "kdc"))
            keytab = kdc.keytab("hdfs/localhost", "HTTP/localhost", USER)
            said = self.start([f"-Djava.security.krb5.conf={kdc.config}"], [str(keytab), REALM, USER])
            self._ends = ends.pop_all()
        port, self.token = said.split()
        self.namenode = f"https://localhost:{port}"
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._ends:
            self._end()

    def _make_stores(self) -> None:
        """One store with the servers' key, which they trust too, and the settings that name it."""
        store = self.folder / "servers.p12"
        made = ["-genkeypair", "-alias", "servers", "-keyalg", "EC", "-dname", "CN=localhost", "-ext", _NAMES]
        self._keytool(store, *made, "-storetype", "PKCS12")
        self._keytool(store, "-exportcert", "-rfc", "-alias", "servers", "-file", str(self.authority))
        trusted = self.folder / "trusted.p12"
        self._keytool(trusted, "-importcert", "-noprompt", "-file", str(self.authority), "-storetype", "PKCS12")
        for side in ("server", "client"):
            named = {f"{side}.{name}": value for name, value in _of_stores(store, trusted).items()}
            properties = "".join(
                f"<property><name>ssl.{name}</name><value>{value}</value></property>" for name, value in named.items()
            )
            (self.folder / f"ssl-{side}.xml").write_text(f"<configuration>{properties}</configuration>")

    def _keytool(self, store: Path, *words: str) -> None:
        command = [java_command("keytool"), *words, "-keystore", str(store), "-storepass", _PASSWORD]
        subprocess.run(command, check=True, capture_output=True, timeout=300)


def _of_stores(keys: Path, trusted: Path) -> dict[str, object]:
    named: dict[str, object] = {"keystore.keypassword": _PASSWORD}
    for name, path in (("keystore", keys), ("truststore", trusted)):
        named |= {f"{name}.location": path, f"{name}.password": _PASSWORD, f"{name}.type": "PKCS12"}
    return named
