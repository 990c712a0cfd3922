"""Bytes that only some recipients can read: encrypted by AES-256-GCM with a key of their own, which is wrapped for each
recipient by RSA-OAEP with SHA-256 (RFC 8017, 7.1).

A line of JSON with the wrapped keys comes first, then the ciphertext with its tag. That line, and what the bytes belong
to, are authenticated with it: neither can be another one's. It does not prove who encrypted them: anybody with a public
key can.
"""

from __future__ import annotations

import json
import os
from base64 import b64decode, b64encode
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tieredctl.errors import DecodeError
from tieredctl.ops.backup.key_pairs import Identity, Recipient

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.padding import OAEP

_KIND, _API_VERSION = "SealedBytes", "tieredctl/v1"
_CIPHER, _WRAPPING = "AES-256-GCM", "RSA-OAEP-SHA256"
_KEY_BITS, _NONCE_BYTES = 256, 12
_LARGEST_HEADER = 1 << 20


class AnotherKey(Exception):
    """The bytes were encrypted to other keys; the text has their fingerprints."""


def seal(data: bytes, recipients: Sequence[Recipient], belongs_to: bytes) -> bytes:
    """`data`, for these recipients."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    key, nonce = AESGCM.generate_key(_KEY_BITS), os.urandom(_NONCE_BYTES)
    header = {
        "kind": _KIND,
        "apiVersion": _API_VERSION,
        "cipher": _CIPHER,
        "wrapping": _WRAPPING,
        "nonce": nonce.hex(),
        "recipients": [
            {"key": one.fingerprint, "wrapped": b64encode(one.key.encrypt(key, _oaep())).decode()} for one in recipients
        ],
    }
    line = json.dumps(header).encode("ascii") + b"\n"
    return line + AESGCM(key).encrypt(nonce, data, line + belongs_to)


def unseal(sealed: bytes, identity: Identity, belongs_to: bytes) -> bytes:
    """What `seal` was given. Raises AnotherKey, and DecodeError for what was altered, or belongs to something else."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    line, end, ciphertext = sealed[:_LARGEST_HEADER].partition(b"\n")
    line, ciphertext = line + end, sealed[len(line) + len(end) :]
    try:
        header = json.loads(line)
        _demand_known(header)
        nonce = bytes.fromhex(header["nonce"])
        wrapped = {str(one["key"]): b64decode(one["wrapped"], validate=True) for one in header["recipients"]}
    except (KeyError, TypeError, ValueError, RecursionError):
        raise DecodeError("not encrypted as `backup run --recipient` does", 0) from None
    if identity.fingerprint not in wrapped:
        raise AnotherKey(", ".join(sorted(wrapped)))
    try:
        key = identity.key.decrypt(wrapped[identity.fingerprint], _oaep())
        if len(key) * 8 != _KEY_BITS or len(nonce) != _NONCE_BYTES:
            raise ValueError
        return AESGCM(key).decrypt(nonce, ciphertext, line + belongs_to)
    except (ValueError, InvalidTag):
        raise DecodeError("altered, or those of another set", 0) from None


def _demand_known(header: Any) -> None:
    known = {"kind": _KIND, "apiVersion": _API_VERSION, "cipher": _CIPHER, "wrapping": _WRAPPING}
    if any(header[name] != value for name, value in known.items()):
        raise ValueError


def _oaep() -> OAEP:
    from cryptography.hazmat.primitives.asymmetric.padding import MGF1, OAEP
    from cryptography.hazmat.primitives.hashes import SHA256

    return OAEP(MGF1(SHA256()), SHA256(), None)
