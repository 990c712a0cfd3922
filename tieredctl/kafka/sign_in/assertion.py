"""A JWT with which a client asks for a token (RFC 7523): from a file, or signed with a private key (KIP-1139)."""

from __future__ import annotations

import json
import time
import uuid
from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Any

from tieredctl.installation import missing_extra
from tieredctl.kafka.properties import Properties, unusable

_PREFIX = "sasl.oauthbearer.assertion."
_LARGEST_FILE = 1 << 20
_COORDINATE_BYTES = 32
"""The size of each half of a signature with the curve P-256, as JWTs have it: two numbers of this length (RFC 7518,
3.4)."""


def has_assertion(properties: Properties) -> bool:
    """Whether the properties say where an assertion comes from."""
    return any(_PREFIX + name in properties for name in ("file", "private.key.file"))


def assertion(properties: Properties) -> str:
    """Read or made now. Raises TieredctlError `usage`."""
    if file := properties.get(f"{_PREFIX}file"):
        return text_of(file, "assertion")
    header, payload = _template(properties)
    now = int(time.time())
    payload |= {"iat": now, "exp": now + _seconds(properties, "claim.exp.seconds", 300)}
    payload["nbf"] = now - _seconds(properties, "claim.nbf.seconds", 60)
    for claim in ("aud", "iss", "sub"):
        if stated := properties.get(f"{_PREFIX}claim.{claim}"):
            payload[claim] = stated
    if properties.get(f"{_PREFIX}claim.jti.include", "false").lower() == "true":
        payload["jti"] = str(uuid.uuid4())
    algorithm = properties.get(f"{_PREFIX}algorithm", "RS256").upper()
    signed = f"{_part(header | {'alg': algorithm, 'typ': 'JWT'})}.{_part(payload)}"
    return f"{signed}.{_base64(_signature(properties, algorithm, signed.encode()))}"


def text_of(file: str, what: str) -> str:
    """A small text file without the space around it. Raises TieredctlError `usage`."""
    try:
        with Path(file).open(encoding="utf-8") as opened:
            text = opened.read(_LARGEST_FILE + 1)
    except OSError as error:
        raise unusable(f"The {what} {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise unusable(f"The {what} {file} is not text") from None
    if not text.strip() or len(text) > _LARGEST_FILE:
        raise unusable(f"The {what} {file} is empty, or far too large")
    return text.strip()


def _template(properties: Properties) -> tuple[dict[str, Any], dict[str, Any]]:
    file = properties.get(f"{_PREFIX}template.file")
    if file is None:
        return {}, {}
    try:
        document = json.loads(text_of(file, "assertion template"))
        return dict(document.get("header", {})), dict(document.get("payload", {}))
    except (AttributeError, TypeError, ValueError, RecursionError):
        raise unusable(f"The assertion template {file} is not JSON with header and payload") from None


def _seconds(properties: Properties, name: str, default: int) -> int:
    text = properties.get(_PREFIX + name, str(default))
    if not text.isdecimal():
        raise unusable(f"{_PREFIX}{name} is {text!r}, not a number of seconds")
    return int(text)


def _signature(properties: Properties, algorithm: str, data: bytes) -> bytes:
    try:
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise missing_extra("Signing an assertion needs cryptography, which is not installed.", "kafka") from None
    file = properties[f"{_PREFIX}private.key.file"]
    pem = text_of(file, "private key")
    passphrase = properties.get(f"{_PREFIX}private.key.passphrase") if "ENCRYPTED" in pem else None
    try:
        key = load_pem_private_key(pem.encode(), None if passphrase is None else passphrase.encode())
    except (TypeError, ValueError):
        hint = f"Check {_PREFIX}private.key.passphrase in --command-config."
        raise unusable(f"The private key {file} is not PEM, or not opened by its passphrase", hint) from None
    if algorithm == "RS256" and isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    if algorithm == "ES256" and isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name == "secp256r1":
        numbers = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(_COORDINATE_BYTES) for number in numbers)
    raise unusable(f"The private key {file} is not for {_PREFIX}algorithm={algorithm}")


def _part(document: dict[str, Any]) -> str:
    return _base64(json.dumps(document, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")
