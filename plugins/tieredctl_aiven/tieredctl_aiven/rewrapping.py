"""Manifests whose data keys are wrapped again for another key pair; the segments that they encrypt stay as they are."""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl_aiven.json_fields import JsonFields
from tieredctl_aiven.keys import KEY_PAIR_ID, OPTION, PrivateKeys
from tieredctl_aiven.manifest import LARGEST_MANIFEST, MANIFEST_SUFFIX, Encryption, read_manifest

_PAIRS = "encryption.key.pairs"
_DATA_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class KeyPair:
    """The key pair of a destination, under the name that its brokers are to know it by."""

    key_id: str
    keys: PrivateKeys
    """One private key."""

    @classmethod
    def given(cls, keys: PrivateKeys, key_id: str | None) -> KeyPair:
        """Raises TieredctlError: `usage` where either is missing or cannot be used, `private-key` for a key that is
        too short to wrap a data key."""
        hint = f"Give --to-layout-option {OPTION}=FILE and --to-layout-option {KEY_PAIR_ID}=ID."
        if keys.file is None:
            # The environment's are those of the source.
            message = "There is no private key of the destination's key pair: it proves what was wrapped for it."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if len(keys.texts) != 1:
            message = f"{keys.file} holds {len(keys.texts)} private keys: which of them wraps is not known."
            raise TieredctlError(ErrorCode.USAGE, message, hint="Give a file that holds one.")
        if key_id is None:
            message = "The destination's key pair has no id: brokers find it by encryption.key.pair.id."
            raise TieredctlError(ErrorCode.USAGE, message, hint=hint)
        if not key_id.strip() or ":" in key_id:
            raise TieredctlError(ErrorCode.USAGE, f"{KEY_PAIR_ID} cannot be {key_id!r}.")
        pair = cls(key_id, keys)
        pair.wrapped(os.urandom(_DATA_KEY_BYTES))
        return pair

    def wrapped(self, data_key: bytes) -> bytes:
        """A data key, wrapped for this key pair, and opened again. Raises TieredctlError `private-key` where the key
        cannot do that."""
        wrapped = self.keys.wrap_with_first(data_key)
        if wrapped is None or self.keys.unwrap(wrapped) != data_key:
            message = f"The key in {self.keys.file} cannot wrap a data key: it needs 2048 bits or more."
            raise TieredctlError(ErrorCode.PRIVATE_KEY, message)
        return wrapped


@dataclass(frozen=True, slots=True)
class ManifestRewrapping:
    """The `Rewrapping` of one source for one key pair."""

    open_data_key: Callable[[str, Encryption], bytes]
    """(the key of a manifest in the source, its encryption) -> its data key; raises as data_key.open_data_key does."""
    pair: KeyPair
    may_grow: bool
    """Whether a manifest may have more bytes than in the source."""

    @property
    def largest(self) -> int:
        return LARGEST_MANIFEST

    @property
    def settings(self) -> Sequence[str]:
        pair = f"{_PAIRS}.{self.pair.key_id}"
        return (
            f"encryption.key.pair.id={self.pair.key_id}",
            f"{_PAIRS}={self.pair.key_id}",
            f"{pair}.private.key.file",
            f"{pair}.public.key.file",
        )

    def concerns(self, key: str) -> bool:
        return key.endswith(MANIFEST_SUFFIX)

    def rewrapped(self, key: str, data: bytes) -> bytes | None:
        encryption = read_manifest(data).encryption
        if encryption is None:
            return None
        wrapped = self.pair.wrapped(self.open_data_key(key, encryption))
        return self._with_data_key(data, f"{self.pair.key_id}:{b64encode(wrapped).decode('ascii')}")

    def difference(self, key: str, original: bytes, copy: bytes) -> str | None:
        encryption = read_manifest(original).encryption
        if encryption is None:
            return None if original == copy else "the bytes are not the same"
        data_key = self.open_data_key(key, encryption)
        try:
            of_copy = read_manifest(copy).encryption
        except DecodeError as error:
            return error.message
        if of_copy is None or of_copy.key_id != self.pair.key_id:
            named = "not encrypted" if of_copy is None else f"encrypted for key pair {of_copy.key_id!r}"
            return f"the destination's manifest is {named}"
        if self.pair.keys.unwrap(of_copy.wrapped_key) != data_key:
            return "the destination's key pair does not open it to the same data key"
        is_same = _other_fields(original) == _other_fields(copy)
        return None if is_same else "the manifests differ in more than the wrapped data key"

    def _with_data_key(self, data: bytes, data_key: str) -> bytes:
        """The manifest, byte for byte but for this value, and no shorter than it was: the custom metadata of its
        segment may count its bytes (REMOTE_SIZE), and spaces after JSON mean nothing."""
        old = _quoted(JsonFields.parse(data, "manifest").fields("encryption").string("dataKey"))
        changed = data.replace(old, _quoted(data_key))
        is_written_once = data.count(old) == data.count(b'"dataKey"') == 1
        if not is_written_once or _other_fields(changed) != _other_fields(data):
            raise DecodeError("manifest.encryption.dataKey is not written as the plugin writes it", 0)
        if len(changed) > len(data) and not self.may_grow:
            message = f"A manifest would have {len(changed)} bytes instead of {len(data)}"
            reason = "its segment's custom metadata may count them (REMOTE_SIZE)"
            shorter = "use a key pair whose key has no more bits, and whose id is no longer, than that of the source"
            hint = f"Give the whole metadata, which shows whether any segment's does; or {shorter}."
            raise TieredctlError(ErrorCode.USAGE, f"{message}, and {reason}.", hint=hint)
        return changed.ljust(len(data))


def _quoted(text: str) -> bytes:
    return json.dumps(text, ensure_ascii=False).encode()


def _other_fields(data: bytes) -> str:
    """All that a manifest says but its wrapped data key; texts, as 1, 1.0 and true are equal in Python."""
    values = JsonFields.parse(data, "manifest").values
    encryption = {name: value for name, value in values["encryption"].items() if name != "dataKey"}
    return json.dumps(values | {"encryption": encryption}, sort_keys=True)
