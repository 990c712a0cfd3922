"""The private keys that segments' data keys are wrapped for. Nothing here shows a key or puts one into a message."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from tieredctl.errors import ErrorCode, TieredctlError

if TYPE_CHECKING:
    from Crypto.PublicKey.RSA import RsaKey

OPTION = "private-key"
KEY_PAIR_ID = "key-pair-id"
"""The layout option that has the plugin's `encryption.key.pair.id`."""
ENVIRONMENT_VARIABLE = "TIEREDCTL_AIVEN_PRIVATE_KEY"
HOW_TO_GIVE = (
    f"Give the key pair's private key (PEM) with --layout-option {OPTION}=FILE, or its text in {ENVIRONMENT_VARIABLE}."
)
_LARGEST_FILE = 1 << 20
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z ]+)-----.+?-----END \1-----", re.DOTALL)
_DATA_KEY_BYTES = 32


@dataclass(frozen=True, slots=True)
class PrivateKeys:
    """RSA private keys: several, where a cluster's key pair was rotated.

    Pickled, they are only the name of the place where they are read again: what is sent to executors can be seen.
    """

    texts: tuple[str, ...] = field(default=(), repr=False)
    """In PEM."""
    file: str | None = None
    """Where they are from; None for the environment."""

    def __reduce__(self) -> tuple[Callable[..., PrivateKeys], tuple[str | None, ...]]:
        return (_read_again, (self.file,)) if self.texts else (PrivateKeys, ())

    def unwrap(self, wrapped: bytes) -> bytes | None:
        """The data key that was wrapped for one of these; None where it was not, or was altered since."""
        from Crypto.Cipher import PKCS1_OAEP
        from Crypto.Hash import SHA3_512

        for text in self.texts:
            try:
                unwrapped: bytes = PKCS1_OAEP.new(_rsa_key(text), hashAlgo=SHA3_512).decrypt(wrapped)
            except (ValueError, TypeError):
                continue
            if len(unwrapped) == _DATA_KEY_BYTES:
                return unwrapped
        return None

    def wrap(self, data_key: bytes, like: bytes) -> bytes | None:
        """A data key, wrapped for the key pair that another was wrapped for; None where that is not one of these."""
        for text in self.texts:
            one = replace(self, texts=(text,))
            if one.unwrap(like) is not None:
                return one.wrap_with_first(data_key)
        return None

    def wrap_with_first(self, data_key: bytes) -> bytes | None:
        """A data key, wrapped for the first of these; None where its key is too short for that."""
        from Crypto.Cipher import PKCS1_OAEP
        from Crypto.Hash import SHA3_512

        try:
            public = _rsa_key(self.texts[0]).public_key()
            wrapped: bytes = PKCS1_OAEP.new(public, hashAlgo=SHA3_512).encrypt(data_key)
        except ValueError:
            return None
        return wrapped


def private_keys(file: str | None, environment: Mapping[str, str] = os.environ) -> PrivateKeys:
    """The keys in a file of one or more PEM blocks, else those in the environment, else none.

    Raises TieredctlError: `private-key` for anything but an RSA private key, `path-missing` and `path-forbidden`.
    """
    if file is not None:
        return PrivateKeys(_parsed(_text_of(file), file), file)
    if ENVIRONMENT_VARIABLE in environment:
        return PrivateKeys(_parsed(environment[ENVIRONMENT_VARIABLE], ENVIRONMENT_VARIABLE))
    return PrivateKeys()


def _read_again(file: str | None) -> PrivateKeys:
    """Raises TieredctlError as `private_keys` does, and where this process lacks what the other one had."""
    keys = private_keys(file)
    if not keys.texts:
        message = f"A process that reads segments lacks the variable {ENVIRONMENT_VARIABLE}."
        hint = f"Set it on every node, or use --layout-option {OPTION}=FILE with a file that every node has."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, message, hint=hint)
    return keys


def _text_of(file: str) -> str:
    try:
        with Path(file).open("rb") as opened:
            return opened.read(_LARGEST_FILE).decode("utf-8", "replace")
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no private key {file}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"The private key {file} may not be read.") from None
    except (OSError, ValueError) as error:
        raise TieredctlError(ErrorCode.PRIVATE_KEY, f"The private key {file!r} cannot be read: {error}.") from None


def _parsed(text: str, where: str) -> tuple[str, ...]:
    blocks = tuple(match[0] for match in _PEM_BLOCK.finditer(text))
    if not blocks or not all(map(_is_usable, blocks)):
        hint = "It is a file in PEM that begins with -----BEGIN PRIVATE KEY-----, without a passphrase."
        raise TieredctlError(ErrorCode.PRIVATE_KEY, f"{where} does not hold an RSA private key.", hint=hint)
    return blocks


def _is_usable(text: str) -> bool:
    try:
        return bool(_rsa_key(text).has_private())
    except (ValueError, IndexError, TypeError):
        return False


@lru_cache(maxsize=16)
def _rsa_key(text: str) -> RsaKey:
    from Crypto.PublicKey import RSA

    return RSA.import_key(text)
