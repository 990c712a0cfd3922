"""Client properties as Kafka's own tools take them (`--command-config`), translated once for both client libraries.

Names that Kafka and librdkafka share, and librdkafka's own, pass through; stores become PEM, and PLAIN's and SCRAM's
login module a user and a password. How the other mechanisms sign in is read from the properties by `sign_in`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tieredctl.errors import DecodeError, ErrorCode, TieredctlError
from tieredctl.formats.java_properties import LARGEST_PROPERTIES_FILE, read_properties
from tieredctl.formats.kafka_settings import SettingKind, definition, setting_names
from tieredctl.kafka.properties import Properties, unusable
from tieredctl.kafka.sign_in.login_module import login_module
from tieredctl.kafka.sign_in.mechanisms import MECHANISMS
from tieredctl.kafka.tls_stores import translate_identity, translate_trust
from tieredctl.model.nearest import nearest_hint
from tieredctl.process.redaction import HIDDEN, is_secret, remember_secrets

_LONGEST_TIMEOUT_MS = 900_000
"""librdkafka's limit."""

_WIDER = frozenset({"acks", "compression.type", "metrics.recording.level"})
"""librdkafka takes more values for these than Kafka, or does not know them."""
_STORE_TYPES = ("JKS", "PKCS12", "PEM")
_OWN_CHOICES: Mapping[str, Sequence[str]] = {
    "sasl.mechanism": MECHANISMS,
    "sasl.mechanisms": MECHANISMS,
    "ssl.endpoint.identification.algorithm": ("https", "none", ""),
    "ssl.truststore.type": _STORE_TYPES,
    "ssl.keystore.type": _STORE_TYPES,
    "enable.ssl.certificate.verification": ("true", "false"),
}
"""Texts for Kafka, of which it or librdkafka has only these."""

_PASSWORD_MODULES = ("PlainLoginModule", "ScramLoginModule")


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
            raise unusable(f"{file} is far too large for a properties file")
        properties = read_properties(data)
    except FileNotFoundError:
        raise TieredctlError(ErrorCode.PATH_MISSING, f"There is no {file}.") from None
    except PermissionError:
        raise TieredctlError(ErrorCode.PATH_FORBIDDEN, f"{file} may not be read.") from None
    except OSError as error:
        raise unusable(f"{file} cannot be read: {error.strerror}") from None
    except DecodeError as error:
        raise unusable(f"{file} is not a properties file: {error.message}") from None
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
        raise unusable(f"request.timeout.ms is {text!r}, but must be 1 to {_LONGEST_TIMEOUT_MS} milliseconds")
    return int(text) / 1000


def without_secrets(text: str, properties: Mapping[str, str]) -> str:
    """A text of others, with every secret of the properties removed."""
    for name, value in properties.items():
        if value and is_secret(name):
            text = text.replace(value, HIDDEN)
    return text


def _refuse_misspelt(properties: Properties) -> None:
    """Raises for a property with a few values that has another: each is one of them, in any case, as librdkafka
    compares too."""
    for name, allowed in _choices().items():
        stated = properties.get(name)
        if stated is None or stated.strip().lower() in {one.lower() for one in allowed}:
            continue
        hint = nearest_hint(stated.strip(), allowed) or "Correct the file given with --command-config."
        raise unusable(f"{name} is {stated!r}, not one of {', '.join(one or 'nothing' for one in allowed)}", hint)


def _choices() -> Mapping[str, Sequence[str]]:
    """The values of each such property: Kafka's by its own definitions, and librdkafka's."""
    kafkas = {name: definition(SettingKind.CLIENT, name) for name in setting_names(SettingKind.CLIENT) - _WIDER}
    return {**{name: one.one_of for name, one in kafkas.items() if one is not None}, **_OWN_CHOICES}


def _refuse_providers(properties: Properties) -> None:
    if "config.providers" in properties:
        hint = "Write the values themselves, in a file that only its owner can read."
        raise unusable("tieredctl does not support config.providers, which need Java", hint)


def _translate_login(properties: Properties) -> None:
    """sasl.jaas.config has the user and the password of PLAIN and SCRAM; other modules are read where they sign in."""
    login = login_module(properties)
    if login is None:
        return
    remember_secrets(login.options)
    if login.name not in _PASSWORD_MODULES:
        return
    del properties["sasl.jaas.config"]
    for option in ("username", "password"):
        if option not in login.options:
            raise unusable(f"sasl.jaas.config has no {option}")
        properties.setdefault(f"sasl.{option}", login.options[option])


def _translate_endpoint_identification(properties: Properties) -> None:
    if properties.get("ssl.endpoint.identification.algorithm") == "":
        properties["ssl.endpoint.identification.algorithm"] = "none"


_TRANSLATIONS: tuple[Callable[[Properties], None], ...] = (
    _refuse_misspelt,
    _refuse_providers,
    _translate_login,
    translate_trust,
    translate_identity,
    _translate_endpoint_identification,
)
