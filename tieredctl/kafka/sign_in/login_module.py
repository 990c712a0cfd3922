"""`sasl.jaas.config`: a login module and its options (JAAS's configuration syntax, as Kafka's JaasConfig reads it)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from tieredctl.kafka.properties import Properties, unusable

_LOGIN = re.compile(r"\s*(?P<module>[\w.$]+)\s+\w+(?P<options>.*?);\s*", re.DOTALL)
_OPTION = re.compile(r"""([\w.-]+)\s*=\s*("(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s"']+)""", re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f"}


class LoginModule(NamedTuple):
    """A Java class by its full name, and its options."""

    class_name: str
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        """The class without its package."""
        return self.class_name.rpartition(".")[2]


def login_module(properties: Properties) -> LoginModule | None:
    """What `sasl.jaas.config` names; None without it. Raises TieredctlError `usage`, which does not repeat its text."""
    text = properties.get("sasl.jaas.config")
    if text is None:
        return None
    match = _LOGIN.fullmatch(text)
    if match is None:
        hint = 'Write it as: org.….ScramLoginModule required username="…" password="…";'
        raise unusable("sasl.jaas.config is not a login module with its options and a semicolon", hint)
    return LoginModule(match["module"], {name: _unquoted(value) for name, value in _OPTION.findall(match["options"])})


def _unquoted(text: str) -> str:
    if text[0] not in "\"'":
        return text
    return _ESCAPE.sub(lambda match: _ESCAPED.get(match[1], match[1]), text[1:-1])
