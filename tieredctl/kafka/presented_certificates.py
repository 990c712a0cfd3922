"""The certificates that servers and clients present: whose they are, for which names, and when they end."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tieredctl.kafka.properties import Properties

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_SOON = timedelta(days=14)


def presented_by(host: str, port: int, seconds: float) -> Sequence[Certificate]:
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


def chain_of(connection: ssl.SSLSocket) -> Sequence[Certificate]:
    """What the server presented, its own certificate first."""
    from cryptography.x509 import load_der_x509_certificate

    return [load_der_x509_certificate(one) for one in _encoded(connection)]


def clients_own(properties: Properties) -> Certificate | None:
    """The certificate that the client presents; None where it has none."""
    from cryptography.x509 import load_pem_x509_certificates

    text = properties.get("ssl.certificate.pem")
    if text is None and (location := properties.get("ssl.certificate.location")):
        text = Path(location).read_text(encoding="utf-8", errors="replace")
    return load_pem_x509_certificates(text.encode())[0] if text else None


def described(certificate: Certificate) -> Mapping[str, object]:
    """A certificate as evidence."""
    return {
        "subject": certificate.subject.rfc4514_string(),
        "issuer": certificate.issuer.rfc4514_string(),
        "names": _names(certificate),
        "notBefore": _text(certificate.not_valid_before_utc),
        "notAfter": _text(certificate.not_valid_after_utc),
    }


def in_words(chain: Sequence[Certificate]) -> str:
    """`CN=broker for broker, ends 2026-12-24, signed by CN=authority`."""
    own = chain[0]
    names = f" for {', '.join(_names(own))}" if _names(own) else ""
    whose = own.subject.rfc4514_string() or "a certificate"
    signed = "itself" if own.issuer == own.subject else own.issuer.rfc4514_string()
    return f"{whose}{names}, ends {own.not_valid_after_utc.date()}, signed by {signed}"


def ends_soon(chain: Sequence[Certificate]) -> bool:
    """Whether one of these is not valid for two more weeks."""
    return any(one.not_valid_after_utc - datetime.now(UTC) < _SOON for one in chain)


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


def _names(certificate: Certificate) -> list[str]:
    from cryptography.x509 import ExtensionNotFound, SubjectAlternativeName

    try:
        names = certificate.extensions.get_extension_for_class(SubjectAlternativeName).value
    except (ExtensionNotFound, ValueError):
        return []
    return [str(one.value) for one in names]


def _text(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")
