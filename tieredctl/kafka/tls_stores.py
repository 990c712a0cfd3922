"""Key and trust stores as Kafka's tools take them (PKCS12, JKS, PEM), translated to the PEM that both clients take.

librdkafka reads no JKS, and Python's ssl neither store; so both get certificates and keys as text, and a store is
opened once. A PEM file stays where it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tieredctl.errors import DecodeError
from tieredctl.formats.java_key_store import JKS_MAGIC, WrongPassword, read_java_key_store
from tieredctl.installation import missing_extra
from tieredctl.kafka.properties import Properties, unusable

if TYPE_CHECKING:
    from cryptography.x509 import Certificate

_DER_SEQUENCE, _PEM_MARK = b"\x30", b"-----BEGIN "
_LARGEST_STORE = 1 << 24
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE = 64
_MOST_ITERATIONS = 5_000_000
"""The JDK's own limit for the work that a PKCS12 store asks for; more would keep a client busy for minutes."""
_CONSTRUCTED, _LONG_FORM = 0x20, 0x80
_INTEGER, _OCTETS, _IDENTIFIER, _SEQUENCE = 0x02, 0x04, 0x06, 0x30
_PASSWORD_BASED = (bytes.fromhex("2a864886f70d0105"), bytes.fromhex("2a864886f70d010c01"))
"""How the object identifiers of PKCS #5 and of PKCS #12's ciphers begin."""
_DEEPEST, _MOST_ELEMENTS = 24, 1 << 16


class _Opened(NamedTuple):
    """A store's contents in DER: the first private key (PKCS #8) with its chain, and trusted certificates."""

    key: bytes | None
    chain: Sequence[bytes]
    trusted: Sequence[bytes]


def translate_trust(properties: Properties) -> None:
    """Replaces ssl.truststore.* by `ssl.ca.pem` or, for a PEM file, its location. Raises TieredctlError `usage`."""
    kind = properties.pop("ssl.truststore.type", None)
    password = properties.pop("ssl.truststore.password", None)
    if certificates := properties.pop("ssl.truststore.certificates", None):
        properties["ssl.ca.pem"] = _with_lines(certificates)
    location = properties.pop("ssl.truststore.location", None)
    if location is None:
        return
    data = _read(location)
    if _store_type(data, kind) == "PEM":
        properties["ssl.ca.location"] = location
        return
    opened = _open("trust", location, data, password, password)
    if not opened.trusted:
        raise unusable(f"The trust store {location} has no trusted certificate", "keytool -list shows what it has.")
    properties["ssl.ca.pem"] = _certificates_pem(opened.trusted)


def translate_identity(properties: Properties) -> None:
    """Replaces ssl.keystore.* by `ssl.certificate.pem` and `ssl.key.pem` or, for a PEM file, its location. Raises
    TieredctlError `usage`."""
    kind = properties.pop("ssl.keystore.type", None)
    password = properties.pop("ssl.keystore.password", None)
    if chain := properties.pop("ssl.keystore.certificate.chain", None):
        properties["ssl.certificate.pem"] = _with_lines(chain)
    if key := properties.pop("ssl.keystore.key", None):
        properties["ssl.key.pem"] = _with_lines(key)
    location = properties.pop("ssl.keystore.location", None)
    if location is None:
        return
    data = _read(location)
    if _store_type(data, kind) == "PEM":
        properties |= {"ssl.certificate.location": location, "ssl.key.location": location}
        return
    if password is None:
        raise unusable(f"The key store {location} needs ssl.keystore.password")
    opened = _open("key", location, data, password, properties.pop("ssl.key.password", password))
    if opened.key is None or not opened.chain:
        raise unusable(f"The key store {location} has no private key", "keytool -list shows what it has.")
    properties["ssl.certificate.pem"] = _certificates_pem(opened.chain)
    properties["ssl.key.pem"] = _pem("PRIVATE KEY", opened.key)


def _read(location: str) -> bytes:
    try:
        with Path(location).open("rb") as store:
            data = store.read(_LARGEST_STORE + 1)
    except OSError as error:
        raise unusable(f"The store {location} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST_STORE:
        raise unusable(f"{location} is far too large for a store of keys or certificates")
    return data


def _store_type(data: bytes, kind: str | None) -> str:
    """PEM, PKCS12 or JKS: by content, as Java does for the last two, whatever the configured type."""
    if data.startswith(JKS_MAGIC):
        return "JKS"
    if _PEM_MARK in data:
        return "PEM"
    return "PKCS12" if data.startswith(_DER_SEQUENCE) else (kind or "JKS").upper()


def _open(what: str, location: str, data: bytes, password: str | None, key_password: str | None) -> _Opened:
    store = f"The {what} store {location}"
    try:
        if data.startswith(JKS_MAGIC):
            return _open_jks(data, password, key_password, opens_key=what == "key")
        if data.startswith(_DER_SEQUENCE):
            return _open_pkcs12(store, data, password)
    except WrongPassword:
        hint = f"Check ssl.{what}store.password and ssl.key.password in --command-config."
        raise unusable(f"{store} was not opened by its password, or was altered", hint) from None
    except DecodeError as error:
        raise unusable(f"{store} is damaged: {error.message}", "Make it again with keytool.") from None
    hint = "Give a store made by keytool or openssl, or a PEM file with ssl.*store.type=PEM."
    raise unusable(f"{store} is not a PKCS12, JKS or PEM file", hint)


def _open_jks(data: bytes, password: str | None, key_password: str | None, *, opens_key: bool) -> _Opened:
    store = read_java_key_store(data, password)
    if not opens_key or not store.keys:
        return _Opened(None, (), store.trusted)
    entry = store.keys[0]
    return _Opened(entry.private_key(key_password or ""), entry.chain, store.trusted)


def _open_pkcs12(store: str, data: bytes, password: str | None) -> _Opened:
    try:
        from cryptography.exceptions import UnsupportedAlgorithm
        from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
        from cryptography.hazmat.primitives.serialization.pkcs12 import load_pkcs12
    except ImportError:
        raise missing_extra("Reading PKCS12 stores needs cryptography, which is not installed.", "kafka") from None
    if any(count > _MOST_ITERATIONS for count in _iterations(data)):
        raise DecodeError(f"it asks for more than {_MOST_ITERATIONS:,} iterations", 0)
    try:
        opened = load_pkcs12(data, None if password is None else password.encode())
    except ValueError as error:
        if "password" in str(error).lower():
            raise WrongPassword from None
        raise DecodeError("not PKCS12", 0) from None
    except UnsupportedAlgorithm as error:
        hint = "Make it again with algorithms that cryptography supports."
        raise unusable(f"{store} cannot be opened by cryptography: {str(error).rstrip('.')}", hint) from None
    others = [_der(one.certificate) for one in opened.additional_certs]
    if opened.key is None or opened.cert is None:
        return _Opened(None, (), others if opened.cert is None else [_der(opened.cert.certificate), *others])
    key = opened.key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption())
    return _Opened(key, [_der(opened.cert.certificate), *others], others)


def _der(certificate: Certificate) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding

    return certificate.public_bytes(Encoding.DER)


def _iterations(data: bytes, depth: int = 0) -> Iterator[int]:
    """The iterations that the parts of a PKCS12 store ask for: those of its ciphers, and of its digest."""
    children = _children(data)
    if children is None or depth > _DEEPEST:
        return
    tags = [tag for tag, _ in children]
    for at in range(2, len(tags)):
        if tags[at - 2 : at + 1] == [_SEQUENCE, _OCTETS, _INTEGER]:
            yield int.from_bytes(children[at][1])
    if children and tags[0] == _IDENTIFIER and children[0][1].startswith(_PASSWORD_BASED):
        yield from _integers(data, depth)
    for tag, content in children:
        if tag & _CONSTRUCTED or tag == _OCTETS:
            yield from _iterations(content, depth + 1)


def _integers(data: bytes, depth: int) -> Iterator[int]:
    for tag, content in _children(data) or ():
        if tag == _INTEGER:
            yield int.from_bytes(content)
        elif tag & _CONSTRUCTED and depth < _DEEPEST:
            yield from _integers(content, depth + 1)


def _children(data: bytes) -> list[tuple[int, bytes]] | None:
    """Tags and contents of the DER elements that `data` consists of; None where it does not. Raises DecodeError for
    more than any store has."""
    found, position = list[tuple[int, bytes]](), 0
    while position < len(data):
        if position + 2 > len(data):
            return None
        tag, length, start = data[position], data[position + 1], position + 2
        if length == _LONG_FORM:  # BER's unknown length: what follows is looked at as if it were within
            length = len(data) - start
        elif length & _LONG_FORM:
            start += length - _LONG_FORM
            length = int.from_bytes(data[position + 2 : start])
        position = start + length
        if position > len(data):
            return None
        found.append((tag, data[start:position]))
        if len(found) > _MOST_ELEMENTS:
            raise DecodeError(f"it has more than {_MOST_ELEMENTS:,} elements in one", 0)
    return found


def _certificates_pem(certificates: Sequence[bytes]) -> str:
    return "".join(_pem("CERTIFICATE", one) for one in certificates)


def _pem(kind: str, der: bytes) -> str:
    from base64 import b64encode

    return _with_lines(f"-----BEGIN {kind}-----{b64encode(der).decode()}-----END {kind}-----")


def _with_lines(pem: str) -> str:
    """PEM with line ends, which OpenSSL needs, Java does not, and a properties file's continued lines lose."""

    def block(match: re.Match[str]) -> str:
        body = "".join(match[2].split())
        lines = (body[start : start + _PEM_LINE] for start in range(0, len(body), _PEM_LINE))
        return "\n".join((f"-----BEGIN {match[1]}-----", *lines, f"-----END {match[1]}-----"))

    return "\n".join(block(match) for match in _PEM_BLOCK.finditer(pem)) + "\n"
