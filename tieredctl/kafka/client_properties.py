"""Client properties as Kafka's own tools take them (`--command-config`), translated for librdkafka.

Names that both know, and librdkafka's own, pass through; librdkafka refuses Java's own, by name, when the client is
made.

librdkafka's client properties, translated for kafka-python.

Properties that would be weaker or different than with librdkafka are refused, not ignored.
"""

from __future__ import annotations

import re
import ssl
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.java_properties import LARGEST_PROPERTIES_FILE, read_properties
from tieredctl.formats.kafka_settings import SettingKind, definition, setting_names
from tieredctl.model.nearest import nearest_hint
from tieredctl.process.redaction import HIDDEN, is_secret, remember_secrets

Properties = dict[str, str]

_LONGEST_TIMEOUT_MS = 900_000
"""librdkafka's limit."""

_WIDER = frozenset({"acks", "compression.type", "metrics.recording.level"})
"""librdkafka takes more values for these than Kafka, or does not know them."""
_MECHANISMS = ("GSSAPI", "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512", "OAUTHBEARER")
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_OWN_CHOICES: Mapping[str, Sequence[str]] = {
    "sasl.mechanism": _MECHANISMS,
    "sasl.mechanisms": _MECHANISMS,
    "ssl.endpoint.identification.algorithm": ("https", "none", ""),
    "ssl.truststore.type": _STORE_TYPES,
    "ssl.keystore.type": _STORE_TYPES,
    "enable.ssl.certificate.verification": ("true", "false"),
}
"""Texts for Kafka, of which it or librdkafka has only these."""

_LOGIN = re.compile(r"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>.*?);\s*", re.DOTALL)
_LOGIN_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"']+)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}
_LOGIN_MODULES = ("PlainLoginModule", "ScramLoginModule")

_JKS_MAGIC, _DER_SEQUENCE, _PEM_MARK = b"\xfe\xed\xfe\xed", b"\x30", b"-----BEGIN "
_PEM_WITHIN = 1 << 20
_PEM_BLOCK = re.compile(r"-----BEGIN ([A-Z0-9 ]+)-----(.*?)-----END \1-----", re.DOTALL)
_PEM_LINE = 64


def read_client_properties(file: Path | None) -> Properties:
    """librdkafka's properties from a file of Java's; none without a file.

    Raises TieredctlError for a file that cannot be read, and for a setting with which no client can be made. No message
    contains a secret.
    """
    if file is None:
        return {}
    try:
        with file.open("rb") as opened:
            data = opened.read(LARGEST_PROPERTIES_FILE + 1)
        if len(data) > LARGEST_PROPERTIES_FILE:
            raise _refused(f"{file} is far too large for a properties file")
        properties = read_properties(data)
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {file}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{file} may not be read.") from None
    except OSError as error:
        raise _refused(f"{file} cannot be read: {error.strerror}") from None
    except DecodeError as error:
        raise _refused(f"{file} is not a properties file: {error.message}") from None
    remember_secrets(properties)
    for translate in _TRANSLATIONS:
        translate(properties)
    remember_secrets(properties)
    return properties


def timeout_seconds(properties: Mapping[str, str], otherwise: float) -> float:
    """How long to wait for an answer: `request.timeout.ms`, as in Kafka's clients, or `otherwise` without it."""
    text = properties.get("request.timeout.ms")
    if text is None:
        return otherwise
    if not text.isascii() or not text.isdigit() or not 0 < int(text) <= _LONGEST_TIMEOUT_MS:
        raise _refused(f"request.timeout.ms is {text!r}, but must be 1 to {_LONGEST_TIMEOUT_MS} milliseconds")
    return int(text) / 1000


def without_secrets(text: str, properties: Mapping[str, str]) -> str:
    """A text of others, with every secret of the properties removed."""
    for name, value in properties.items():
        if value and is_secret(name):
            text = text.replace(value, HIDDEN)
    return text


def _refuse_misspelt(properties: Properties) -> None:
    """Of the properties with a few values: each is one of them, in any case, as librdkafka compares too."""
    for name, allowed in _choices().items():
        stated = properties.get(name)
        if stated is None or stated.strip().lower() in {one.lower() for one in allowed}:
            continue
        hint = nearest_hint(stated.strip(), allowed) or "Correct the file given with --command-config."
        raise _refused(f"{name} is {stated!r}, not one of {', '.join(one or 'nothing' for one in allowed)}", hint)


def _choices() -> Mapping[str, Sequence[str]]:
    """The values of each such property: Kafka's by its own definitions, and librdkafka's."""
    kafkas = {name: definition(SettingKind.CLIENT, name) for name in setting_names(SettingKind.CLIENT) - _WIDER}
    return {**{name: one.one_of for name, one in kafkas.items() if one is not None}, **_OWN_CHOICES}


def _refuse_providers(properties: Properties) -> None:
    if "config.providers" in properties:
        hint = "Write the values themselves, in a file that only its owner can read."
        raise _refused("tieredctl does not support config.providers, which need Java", hint)


def _translate_login(properties: Properties) -> None:
    """sasl.jaas.config has the user and the password of PLAIN and SCRAM."""
    login = properties.pop("sasl.jaas.config", None)
    if login is None:
        return
    match = _LOGIN.fullmatch(login)
    if match is None:
        hint = 'Write it as: org.….ScramLoginModule required username="…" password="…";'
        raise _refused("sasl.jaas.config is not a login module with its options and a semicolon", hint)
    module = match["module"].rpartition(".")[2]
    if module not in _LOGIN_MODULES:
        hint = "Remove sasl.jaas.config and give librdkafka's own properties, such as sasl.oauthbearer.*."
        raise _refused(f"sasl.jaas.config names {module}: tieredctl knows {' and '.join(_LOGIN_MODULES)}", hint)
    options = {name: _unquoted(value) for name, value in _LOGIN_OPTION.findall(match["options"])}
    for option in ("username", "password"):
        if option not in options:
            raise _refused(f"sasl.jaas.config has no {option}")
        properties.setdefault(f"sasl.{option}", options[option])


def _unquoted(text: str) -> str:
    if text[0] not in "\"'":
        return text
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text[1:-1])


def _translate_trust(properties: Properties) -> None:
    """librdkafka trusts certificates in PEM files."""
    properties.pop("ssl.truststore.password", None)
    kind = properties.pop("ssl.truststore.type", None)
    if certificates := properties.pop("ssl.truststore.certificates", None):
        properties["ssl.ca.pem"] = _with_lines(certificates)
    if location := properties.pop("ssl.truststore.location", None):
        if _store_type(location, kind) != "PEM":
            hint = (
                f"Export its certificates as PEM: keytool -list -rfc -keystore {location} > truststore.pem; then set "
                "ssl.truststore.type=PEM and ssl.truststore.location to that file."
            )
            raise _refused(f"The trust store {location} is not a PEM file, and librdkafka reads only PEM", hint)
        properties["ssl.ca.location"] = location


def _translate_identity(properties: Properties) -> None:
    """A client's own certificate: librdkafka reads PEM files and PKCS12 stores."""
    kind = properties.pop("ssl.keystore.type", None)
    if chain := properties.pop("ssl.keystore.certificate.chain", None):
        properties["ssl.certificate.pem"] = _with_lines(chain)
    if key := properties.pop("ssl.keystore.key", None):
        properties["ssl.key.pem"] = _with_lines(key)
    location = properties.get("ssl.keystore.location")
    if location is None:
        return
    store_type = _store_type(location, kind)
    if store_type == "PEM":
        del properties["ssl.keystore.location"]
        properties |= {"ssl.certificate.location": location, "ssl.key.location": location}
    elif store_type == "JKS":
        hint = (
            f"Convert it: keytool -importkeystore -srckeystore {location} -destkeystore keystore.p12 "
            "-deststoretype PKCS12; then set ssl.keystore.location to that file."
        )
        raise _refused(f"The key store {location} is a JKS file, which librdkafka does not read", hint)


def _with_lines(pem: str) -> str:
    """PEM with line ends, which OpenSSL needs, Java does not, and a properties file's continued lines lose."""

    def block(match: re.Match[str]) -> str:
        body = "".join(match[2].split())
        lines = (body[start : start + _PEM_LINE] for start in range(0, len(body), _PEM_LINE))
        return "\n".join((f"-----BEGIN {match[1]}-----", *lines, f"-----END {match[1]}-----"))

    return "\n".join(block(match) for match in _PEM_BLOCK.finditer(pem)) + "\n"


def _store_type(location: str, kind: str | None) -> str:
    """PEM, PKCS12 or JKS: by content, as Java does for the last two, whatever the configured type."""
    try:
        with Path(location).open("rb") as store:
            head = store.read(_PEM_WITHIN)
    except OSError as error:
        raise _refused(f"The store {location} cannot be read: {error.strerror}") from None
    if head.startswith(_JKS_MAGIC):
        return "JKS"
    if _PEM_MARK in head:
        return "PEM"
    return "PKCS12" if head.startswith(_DER_SEQUENCE) else (kind or "JKS").upper()


def _translate_endpoint_identification(properties: Properties) -> None:
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        properties["ssl.endpoint.identification.algorithm"] = "none"


def _refused(message: str, hint: str = "Correct the file given with --command-config.") -> TieredctlError:
    return TieredctlError(ErrorCode.USAGE, f"{message}.", hint=hint)


_TRANSLATIONS: tuple[Callable[[Properties], None], ...] = (
    _refuse_misspelt,
    _refuse_providers,
    _translate_login,
    _translate_trust,
    _translate_identity,
    _translate_endpoint_identification,
)


KNOWN_MECHANISMS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_SYSTEMS_AUTHORITIES = ("", "probe")
_LONGEST_RESPONSE_BYTES = 100_000_000


def kafka_python_settings(bootstrap_server: str, properties: Properties) -> dict[str, Any]:
    """Raises TieredctlError for properties that kafka-python does not support, and for invalid certificates."""
    protocol = security_protocol_of(properties)
    settings: dict[str, Any] = {
        "bootstrap_servers": _servers(bootstrap_server),
        "client_id": properties.get("client.id", "tieredctl"),
        "security_protocol": protocol,
        "receive_message_max_bytes": _LONGEST_RESPONSE_BYTES,
    }
    if protocol.startswith("SASL_"):
        settings |= _login(properties)
    if protocol.endswith("SSL"):
        settings["ssl_context"] = ssl_context(properties)
    return settings


def server_addresses(bootstrap_server: str) -> list[tuple[str, int]]:
    """Host and port of each bootstrap server. Raises TieredctlError for one without a port."""
    addresses = [server.rpartition(":") for server in _servers(bootstrap_server)]
    for host, _, port in addresses:
        if not host or not port.isdecimal():
            raise TieredctlError(ErrorCode.USAGE, f"{host}{port} is not HOST:PORT.")
    return [(host.strip("[]"), int(port)) for host, _, port in addresses]


def security_protocol_of(properties: Properties) -> str:
    """PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL."""
    return properties.get("security.protocol", "PLAINTEXT").upper()


def mechanism_of(properties: Properties) -> str:
    """The configured SASL mechanism."""
    return properties.get("sasl.mechanism", properties.get("sasl.mechanisms", "GSSAPI"))


def _servers(bootstrap_server: str) -> list[str]:
    return [server.strip() for server in bootstrap_server.split(",")]


def _login(properties: Properties) -> dict[str, str | None]:
    mechanism = mechanism_of(properties)
    if mechanism not in KNOWN_MECHANISMS:
        raise _refused_by_kafka_python(f"the mechanism {mechanism} is not one of {', '.join(KNOWN_MECHANISMS)}")
    return {
        "sasl_mechanism": mechanism,
        "sasl_plain_username": properties.get("sasl.username"),
        "sasl_plain_password": properties.get("sasl.password"),
    }


def ssl_context(properties: Properties) -> ssl.SSLContext:
    """How to encrypt a connection and check a broker's certificate. Raises TieredctlError for unusable certificates."""
    try:
        return _ssl_context(properties)
    except (OSError, ValueError) as error:
        raise _refused_by_kafka_python(f"the certificates cannot be used: {error}") from None


def _ssl_context(properties: Properties) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    _trust(context, properties)
    _identify(context, properties)
    is_verified = properties.get("enable.ssl.certificate.verification", "true").lower() != "false"
    names_host = properties.get("ssl.endpoint.identification.algorithm", "https").lower() != "none"
    context.check_hostname = is_verified and names_host
    context.verify_mode = ssl.CERT_REQUIRED if is_verified else ssl.CERT_NONE
    return context


def _trust(context: ssl.SSLContext, properties: Properties) -> None:
    authorities = properties.get("ssl.ca.location", "")
    if "ssl.ca.pem" in properties:
        context.load_verify_locations(cadata=properties["ssl.ca.pem"])
    elif authorities in _SYSTEMS_AUTHORITIES:
        context.load_default_certs()
    elif Path(authorities).is_dir():
        context.load_verify_locations(capath=authorities)
    else:
        context.load_verify_locations(cafile=authorities)
    if revoked := properties.get("ssl.crl.location"):
        context.load_verify_locations(cafile=revoked)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF


def _identify(context: ssl.SSLContext, properties: Properties) -> None:
    """The client's own certificate."""
    if "ssl.keystore.location" in properties:
        raise _refused_by_kafka_python("Python does not read PKCS12 key stores; write its key and certificates as PEM")
    password = properties.get("ssl.key.password", "")
    certificate, key = properties.get("ssl.certificate.location"), properties.get("ssl.key.location")
    if certificate is not None:
        context.load_cert_chain(certificate, key, password)
    elif "ssl.certificate.pem" in properties:
        # Python takes a certificate only from files; only the owner can read the folder.
        with TemporaryDirectory() as folder:
            certificate_file, key_file = Path(folder, "certificate.pem"), Path(folder, "key.pem")
            certificate_file.write_text(properties["ssl.certificate.pem"])
            key_file.write_text(properties.get("ssl.key.pem", ""))
            context.load_cert_chain(certificate_file, key_file, password)


def _refused_by_kafka_python(reason: str) -> TieredctlError:
    return TieredctlError(ErrorCode.USAGE, f"kafka-python cannot use --command-config: {reason}.")
