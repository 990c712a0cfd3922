"""TLS as Python's ssl does it, from a client's properties: librdkafka's names, which `read_client_properties` gives."""

from __future__ import annotations

import secrets
import ssl
from pathlib import Path
from tempfile import NamedTemporaryFile

from tieredctl.installation import missing_extra
from tieredctl.kafka.properties import Properties, unusable

_SYSTEMS_AUTHORITIES = ("", "probe")


def ssl_context(properties: Properties) -> ssl.SSLContext:
    """How to encrypt a connection and check a server's certificate. Raises TieredctlError for unusable certificates."""
    try:
        return _context(properties)
    except (OSError, ValueError) as error:
        raise unusable(f"The certificates or keys in --command-config cannot be used: {error}") from None


def _context(properties: Properties) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, properties)
    _identify(context, properties)
    is_verified = properties.get("enable.ssl.certificate.verification", "true").lower() != "false"
    names_host = properties.get("ssl.endpoint.identification.algorithm", "https").lower() != "none"
    context.check_hostname = is_verified and names_host
    context.verify_mode = ssl.CERT_REQUIRED if is_verified else ssl.CERT_NONE
    return context


def _trust(context: ssl.SSLContext, properties: Properties) -> None:
    authorities = properties.get("ssl.ca.location", "")
    if "ssl.ca.pem" in properties:
        context.load_verify_locations(cadata=properties["ssl.ca.pem"])
    elif authorities in _SYSTEMS_AUTHORITIES:
        context.load_default_certs()
    elif Path(authorities).is_dir():
        context.load_verify_locations(capath=authorities)
    else:
        context.load_verify_locations(cafile=authorities)
    if revoked := properties.get("ssl.crl.location"):
        context.load_verify_locations(cafile=revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, properties: Properties) -> None:
    """The client's own certificate."""
    password = properties.get("ssl.key.password", "")
    certificate, key = properties.get("ssl.certificate.location"), properties.get("ssl.key.location")
    try:
        if certificate is not None:
            context.load_cert_chain(certificate, key, password)
        elif "ssl.certificate.pem" in properties:
            _identify_from_text(context, properties["ssl.certificate.pem"], properties.get("ssl.key.pem", ""), password)
    except ssl.SSLError as error:
        if error.reason not in (None, "BAD_DECRYPT", "BAD_PASSWORD_READ", "PROBLEMS_GETTING_PASSWORD"):
            raise
        hint = "Check ssl.key.password, and that the key is PEM, in --command-config."
        raise unusable("The client's key cannot be read with ssl.key.password", hint) from None


def _identify_from_text(context: ssl.SSLContext, certificates: str, key: str, password: str) -> None:
    """Python takes a certificate only from files. Whatever ends this process, the file that it may leave holds a key
    that nobody can decrypt any more."""
    once = secrets.token_urlsafe()
    with NamedTemporaryFile("w", suffix=".pem") as file:
        file.write(certificates + _encrypted_again(key, password, once))
        file.flush()
        context.load_cert_chain(file.name, password=once)


def _encrypted_again(key: str, password: str, other: str) -> str:
    try:
        from cryptography.hazmat.primitives.serialization import (
            BestAvailableEncryption,
            Encoding,
            PrivateFormat,
            load_pem_private_key,
        )
    except ImportError:
        raise missing_extra("Keys in properties need cryptography, which is not installed.", "kafka") from None
    try:
        # cryptography refuses a password for a key that is not encrypted; Kafka ignores it.
        secret = password.encode() if "ENCRYPTED" in key else None
        loaded = load_pem_private_key(key.encode(), secret)
    except (TypeError, ValueError):
        hint = "Check ssl.key.password, and that the key is PEM, in --command-config."
        raise unusable("The client's key cannot be read with ssl.key.password", hint) from None
    encryption = BestAvailableEncryption(other.encode())
    return loaded.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption).decode()
