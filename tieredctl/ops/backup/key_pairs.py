"""Keys of those to whom a backup set's secrets are encrypted: RSA, as Aiven's key pairs are. Nothing here shows a key,
or puts one into a message."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError
from tieredctl.installation import missing_extra
from tieredctl.ops.file_reading import reading

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, RSAPublicKey

IDENTITY_PASSWORD = "TIEREDCTL_IDENTITY_PASSWORD"
"""The variable of the environment with the password of an encrypted private key."""
_LEAST_BITS = 2048
_LARGEST_FILE = 1 << 20
_HOW_TO_MAKE = "openssl genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:4096"
_HOW_TO_TAKE_PUBLIC = "Its public key is what `openssl pkey -in FILE -pubout` writes; keep the private one elsewhere."
_MAKE_ANOTHER = f"Make a key pair with `{_HOW_TO_MAKE}`."


@dataclass(frozen=True, slots=True)
class Recipient:
    """Whose private key opens what is encrypted."""

    key: RSAPublicKey = field(repr=False)
    fingerprint: str
    """The SHA-256 of the public key (DER, SubjectPublicKeyInfo) in hexadecimal digits."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A private key, and the fingerprint of its public one."""

    key: RSAPrivateKey = field(repr=False)
    fingerprint: str
    file: Path


def read_recipients(files: Sequence[Path]) -> list[Recipient]:
    """Those of some files, each once. Raises TieredctlError as `read_recipient` does."""
    return [*{one.fingerprint: one for one in map(read_recipient, files)}.values()]


def read_recipient(file: Path) -> Recipient:
    """A public key in PEM. Raises TieredctlError `private-key` for anything else, and for an RSA key of less than 2048
    bits, and as `reading` does."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
        from cryptography.hazmat.primitives.serialization import load_pem_public_key
    except ImportError:
        raise _missing() from None
    pem = _pem(file)
    if b"PRIVATE KEY-----" in pem:
        raise TieredctlError(ErrorCode.PRIVATE_KEY, f"{file} holds a private key.", hint=_HOW_TO_TAKE_PUBLIC)
    try:
        key = load_pem_public_key(pem)
    except (ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPublicKey):
        message = f"{file} does not hold an RSA public key in PEM."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=f"{_MAKE_ANOTHER} {_HOW_TO_TAKE_PUBLIC}")
    _demand_long(file, key.key_size)
    return Recipient(key, _fingerprint(key))


def read_identity(file: Path, environment: Mapping[str, str] = os.environ) -> Identity:
    """A private key in PEM; the password of an encrypted one is in `IDENTITY_PASSWORD`. Raises TieredctlError
    `private-key` for anything else, without the right password, and for a key of less than 2048 bits, and as `reading`
    does."""
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
    except ImportError:
        raise _missing() from None
    pem = _pem(file)
    password = environment.get(IDENTITY_PASSWORD, "")
    if b"ENCRYPTED" in pem and not password:
        hint = f"Put its password into the environment variable {IDENTITY_PASSWORD}."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, f"The private key {file} is encrypted.", hint=hint)
    try:
        # cryptography refuses a password for a key that is not encrypted
        key = load_pem_private_key(pem, password.encode() if b"ENCRYPTED" in pem else None)
    except (TypeError, ValueError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, RSAPrivateKey):
        if b"ENCRYPTED" in pem:
            message = f"The password in {IDENTITY_PASSWORD} does not open an RSA private key in {file}."
            raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint="Correct the password, or name another file.")
        message = f"{file} does not hold an RSA private key in PEM."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint="It begins with -----BEGIN PRIVATE KEY-----.")
    _demand_long(file, key.key_size)
    return Identity(key, _fingerprint(key.public_key()), file)


def _pem(file: Path) -> bytes:
    with reading(file), file.open("rb") as opened:
        return opened.read(_LARGEST_FILE)


def _demand_long(file: Path, bits: int) -> None:
    if bits < _LEAST_BITS:
        message = f"The RSA key in {file} has {bits} bits; {_LEAST_BITS} is the least that is taken."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=_MAKE_ANOTHER)


def _fingerprint(key: RSAPublicKey) -> str:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    return sha256(key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)).hexdigest()


def _missing() -> TieredctlError:
    return missing_extra("Encrypting secrets needs cryptography, which is not installed.", "kafka")
