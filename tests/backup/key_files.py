"""Key pairs in files, as `openssl genpkey` writes them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey, generate_private_key
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

_EXPONENT = 65537


@dataclass(frozen=True)
class KeyFiles:
    """A pair in two files."""

    public: Path
    private: Path


@cache
def rsa_key(which: int, bits: int = 2048) -> RSAPrivateKey:
    """The same for the same number: making one takes long."""
    del which
    return generate_private_key(_EXPONENT, bits)


def key_files(folder: Path, which: int, bits: int = 2048, password: str | None = None) -> KeyFiles:
    """Writes a pair."""
    key = rsa_key(which, bits)
    files = KeyFiles(folder / f"{which}.pub.pem", folder / f"{which}.pem")
    encryption: KeySerializationEncryption = NoEncryption()
    if password is not None:
        encryption = BestAvailableEncryption(password.encode())
    files.public.write_bytes(key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo))
    files.private.write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption))
    return files
