"""Seals what is applied later: a digest of all its bytes, and a signature with a key that only those have who may
apply it.

Bytes from somebody without the key may be well-formed and still claim anything.
"""

from __future__ import annotations

import hashlib
import hmac

from tieredctl.model.removal import Seal


class Sealer:
    """Consumes bytes piece by piece."""

    def __init__(self, key: bytes | None) -> None:
        """Without a key there is no signature."""
        self._digest = hashlib.sha256()
        self._signature = None if key is None else hmac.new(key, digestmod=hashlib.sha256)

    def update(self, data: bytes) -> None:
        self._digest.update(data)
        if self._signature is not None:
            self._signature.update(data)

    def seal(self) -> Seal:
        """Of everything consumed so far."""
        return Seal(self._digest.hexdigest(), None if self._signature is None else self._signature.hexdigest())


def is_signed_alike(found: Seal, made: Seal) -> bool:
    """Whether a seal that was found has the same signature as one made with the key."""
    if found.signature is None or made.signature is None:
        return False
    return hmac.compare_digest(found.signature.encode(), made.signature.encode())
