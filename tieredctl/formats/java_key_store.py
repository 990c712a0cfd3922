"""Java's own key store format (JKS), read strictly: private keys with their certificates, and trusted certificates.

Source: sun.security.provider.JavaKeyStore and KeyProtector of the JDK.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Sequence
from typing import NamedTuple

from tieredctl.errors import DecodeError

JKS_MAGIC = b"\xfe\xed\xfe\xed"
_VERSIONS = (1, 2)
_KEY, _TRUSTED = 1, 2
_X509 = "X.509"
_WHITENER = b"Mighty Aphrodite"
_DIGEST_BYTES = 20
_PROTECTOR = bytes.fromhex("060a2b060104012a02110101")
"""The object identifier 1.3.6.1.4.1.42.2.17.1.1, encoded: the JDK's own protection of keys."""
_OCTETS, _SEQUENCE = 0x04, 0x30
_LONG_FORM = 0x80


class WrongPassword(Exception):
    """The password does not open the store, or not the key in it, or the store was altered."""


class KeyEntry(NamedTuple):
    """A private key, still encrypted, and its certificates in DER, that of the key first."""

    alias: str
    protected_key: bytes
    chain: Sequence[bytes]

    def private_key(self, password: str) -> bytes:
        """The key as PKCS #8 in DER. Raises WrongPassword; DecodeError for a key that is not protected as JKS does."""
        secret = password.encode("utf-16-be")
        salt, encrypted, digest = _protected_parts(self.protected_key)
        mask, key = salt, bytearray()
        for start in range(0, len(encrypted), _DIGEST_BYTES):
            mask = hashlib.sha1(secret + mask).digest()
            key += bytes(
                one ^ other for one, other in zip(encrypted[start : start + _DIGEST_BYTES], mask, strict=False)
            )
        if not hmac.compare_digest(hashlib.sha1(secret + key).digest(), digest):
            raise WrongPassword
        return bytes(key)


class KeyStore(NamedTuple):
    """What a store has, in its order; trusted certificates are DER."""

    keys: Sequence[KeyEntry]
    trusted: Sequence[bytes]


def read_java_key_store(data: bytes, password: str | None) -> KeyStore:
    """The entries of a JKS file. Without a password its digest is not checked, as Java does for trust stores.

    Raises WrongPassword where the digest does not match, and DecodeError for anything but key and trust entries.
    """
    reader = _Reader(data)
    if reader.take(len(JKS_MAGIC)) != JKS_MAGIC or (version := reader.number()) not in _VERSIONS:
        raise DecodeError("not a JKS key store", 0)
    keys, trusted = list[KeyEntry](), list[bytes]()
    for _ in range(reader.number()):
        start, tag, alias = reader.position, reader.number(), reader.text()
        reader.take(8)  # the time when it was made
        if tag == _KEY:
            key = reader.sized()
            keys.append(KeyEntry(alias, key, [reader.certificate(version) for _ in range(reader.number())]))
        elif tag == _TRUSTED:
            trusted.append(reader.certificate(version))
        else:
            raise DecodeError(f"entry type {tag} is neither a private key nor a trusted certificate", start)
    end = reader.position
    digest = reader.take(_DIGEST_BYTES)
    if reader.position != len(data):
        raise DecodeError("bytes after the end of the key store", reader.position)
    if password is not None:
        expected = hashlib.sha1(password.encode("utf-16-be") + _WHITENER + data[:end]).digest()
        if not hmac.compare_digest(expected, digest):
            raise WrongPassword
    return KeyStore(keys, trusted)


class _Reader:
    def __init__(self, data: bytes) -> None:
        self._data, self.position = data, 0

    def take(self, count: int) -> bytes:
        if count > len(self._data) - self.position:
            raise DecodeError("the key store ends early", self.position)
        self.position += count
        return self._data[self.position - count : self.position]

    def number(self) -> int:
        return int(struct.unpack(">I", self.take(4))[0])

    def sized(self) -> bytes:
        return self.take(self.number())

    def text(self) -> str:
        return self.take(struct.unpack(">H", self.take(2))[0]).decode(errors="replace")

    def certificate(self, version: int) -> bytes:
        at = self.position
        if version > 1 and (kind := self.text()) != _X509:
            raise DecodeError(f"a certificate of type {kind!r}, not {_X509}", at)
        return self.sized()


def _protected_parts(protected: bytes) -> tuple[bytes, bytes, bytes]:
    """Salt, encrypted key and digest of an EncryptedPrivateKeyInfo."""
    (whole,) = _elements(protected, (_SEQUENCE,))
    algorithm, encrypted = _elements(whole, (_SEQUENCE, _OCTETS))
    if not algorithm.startswith(_PROTECTOR) or len(encrypted) < 2 * _DIGEST_BYTES:
        raise DecodeError("a private key that is not protected as JKS does", 0)
    return encrypted[:_DIGEST_BYTES], encrypted[_DIGEST_BYTES:-_DIGEST_BYTES], encrypted[-_DIGEST_BYTES:]


def _elements(content: bytes, tags: Sequence[int]) -> list[bytes]:
    """The contents of the DER elements that `content` consists of."""
    found = list[bytes]()
    for tag in tags:
        value, content = _first(content, tag)
        found.append(value)
    if content:
        raise DecodeError("a private key that is not protected as JKS does", 0)
    return found


def _first(data: bytes, tag: int) -> tuple[bytes, bytes]:
    """The content of the DER element that `data` begins with, and what follows it."""
    if len(data) < 2 or data[0] != tag:
        raise DecodeError("a private key that is not protected as JKS does", 0)
    length, start = data[1], 2
    if length & _LONG_FORM:
        start += length - _LONG_FORM
        length = int.from_bytes(data[2:start])
    if start + length > len(data):
        raise DecodeError("a private key that ends early", start)
    return data[start : start + length], data[start + length :]
