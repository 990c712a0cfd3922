"""Unwraps a segment's data key, and distinguishes a wrong private key from an altered data key."""

from __future__ import annotations

from itertools import islice

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.ports.object_store import ObjectStore
from tieredctl_aiven.keys import HOW_TO_GIVE, PrivateKeys
from tieredctl_aiven.manifest import LARGEST_MANIFEST, MANIFEST_SUFFIX, Encryption, read_manifest

_KEYS_LOOKED_AT = 1_000
_MANIFESTS_TRIED = 3


def open_data_key(keys: PrivateKeys, store: ObjectStore, manifest: str, prefix: str, encryption: Encryption) -> bytes:
    """The data key of the segment whose manifest has this key.

    Raises TieredctlError `private-key` without the right private key, DecodeError where the data key was altered:
    that is certain if the private key opens other segments' data keys.
    """
    if not keys.texts:
        message = f"{manifest} is encrypted for key pair {encryption.key_id!r}, and there is no private key"
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=HOW_TO_GIVE)
    opened = keys.unwrap(encryption.wrapped_key)
    if opened is not None:
        return opened
    if _opens_another(keys, store, manifest, prefix, encryption.key_id):
        raise DecodeError("manifest's data key was altered: the private key opens those of other segments", 0)
    message = f"The private key is not that of key pair {encryption.key_id!r}: it does not open {manifest}"
    raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=HOW_TO_GIVE)


def _opens_another(keys: PrivateKeys, store: ObjectStore, manifest: str, prefix: str, key_id: str) -> bool:
    """Whether the keys open another segment near this one that was encrypted for the same key pair."""
    tried = 0
    for stored in islice(store.list(prefix), _KEYS_LOOKED_AT):
        if not stored.key.endswith(MANIFEST_SUFFIX) or stored.key == manifest:
            continue
        try:
            other = read_manifest(store.read(stored.key, 0, LARGEST_MANIFEST + 1)).encryption
        except TieredctlError:
            continue
        if other is None or other.key_id != key_id:
            continue
        if keys.unwrap(other.wrapped_key) is not None:
            return True
        tried += 1
        if tried == _MANIFESTS_TRIED:
            return False
    return False
