"""The certificates that servers and clients present: whose they are, for which names, and when they end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

from tieredctl.kafka.properties import Properties

_SOON = timedelta(days=14)


class Presented(NamedTuple):
    """A certificate (RFC 5280); names of subjects are as RFC 4514 writes them."""

    subject: str
    issuer: str
    names: Sequence[str]
    not_before: datetime
    not_after: datetime

    def document(self) -> Mapping[str, object]:
        """The certificate as evidence."""
        times = {"notBefore": _text(self.not_before), "notAfter": _text(self.not_after)}
        return {"subject": self.subject, "issuer": self.issuer, "names": self.names, **times}

    def __str__(self) -> str:
        """`CN=broker for broker.example.com, ends 2026-12-24, signed by CN=authority`."""
        names = f" for {', '.join(self.names)}" if self.names else ""
        signed = "itself" if self.issuer == self.subject else self.issuer
        return f"{self.subject or 'a certificate'}{names}, ends {self.not_after.date()}, signed by {signed}"


def presented_by(host: str, port: int, seconds: float) -> Sequence[Presented]:
    """A server's certificates, its own first, without checking them, over a connection of its own on which nothing is
    sent; none where it presents none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with (
        suppress(OSError),
        socket.create_connection((host, port), timeout=seconds) as plain,
        context.wrap_socket(plain, server_hostname=host) as connection,
    ):
        return chain_of(connection)
    return ()


def chain_of(connection: ssl.SSLSocket) -> Sequence[Presented]:
    """What the server presented, its own certificate first, without what cannot be read."""
    return [one for one in map(_read, _encoded(connection)) if one is not None]


def clients_own(properties: Properties) -> Presented | None:
    """The certificate that the client presents; None where it has none, or it cannot be read."""
    text = properties.get("ssl.certificate.pem")
    if text is None and (location := properties.get("ssl.certificate.location")):
        text = Path(location).read_text(encoding="utf-8", errors="replace")
    begin, end = ssl.PEM_HEADER, ssl.PEM_FOOTER
    if text is None or begin not in text or end not in text:
        return None
    first = text[text.index(begin) : text.index(end) + len(end)]
    return _read(ssl.PEM_cert_to_DER_cert(first))


def ends_soon(chain: Sequence[Presented]) -> bool:
    """Whether one of these is not valid for two more weeks."""
    return any(one.not_after - datetime.now(UTC) < _SOON for one in chain)


def _encoded(connection: ssl.SSLSocket) -> Sequence[bytes]:
    """Python shows a chain since 3.13; before, an unverified connection's only by what the socket is made of."""
    chain: Any = getattr(connection, "get_unverified_chain", None)
    if chain is not None:
        return [bytes(one) for one in chain()]
    inner: Any = getattr(connection, "_sslobj", None)
    if hasattr(inner, "get_unverified_chain"):
        return [ssl.PEM_cert_to_DER_cert(one.public_bytes()) for one in inner.get_unverified_chain() or ()]
    own = connection.getpeercert(binary_form=True)
    return () if own is None else [own]


def _read(encoded: bytes) -> Presented | None:
    """None for what cryptography refuses, though OpenSSL takes it."""
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName, load_der_x509_certificate

    try:
        read = load_der_x509_certificate(encoded)
        names: Sequence[str] = ()
        with suppress(ExtensionNotFound):
            extension = read.extensions.get_extension_for_class(SubjectAlternativeName)
            names = [str(one.value) for one in extension.value]
        who = read.subject.rfc4514_string(), read.issuer.rfc4514_string()
        return Presented(*who, names, read.not_valid_before_utc, read.not_valid_after_utc)
    except ValueError:
        return None


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
