"""What is never shown: settings that hold passwords, keys and tokens, wherever they appear in a text."""

from __future__ import annotations

import json
import os
import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote, quote_plus

HIDDEN = "(hidden)"
_NAMES = (
    r"passw|passphrase|pwd|secret|jaas|token|credential|user[._-]?info|basic\.auth|connection[._-]?string"
    r"|shared[._-]?access[._-]?signature"
    r"|(?:api|access|account|auth|client|encryption|master|private|sas|shared|signing|storage)[._-]?key"
    r"|ssl\.key\.pem|ssl\.keystore\.key"
)
_SECRET_NAME = re.compile(_NAMES, re.IGNORECASE)
"""Rather one too many: what is hidden can still be compared."""
_NO_SECRET_ENDS = ("token.endpoint.url", "token.endpoint.uri", ".class", ".location")
"""Where a token or a key is, not what it is."""
_SHORTEST_KNOWN = 4
"""Shorter values are found by their names alone: hiding each `a` of a text would leave nothing to read."""
_SHORTEST_ENCODED = 8
"""In characters that depend on the secret alone, and not on what stands before it or after it."""
_FOLDERS = ("PWD", "OLDPWD")
_SECRET_WORD = rf"(?<![\w.-])(?=[\w.-]*?(?:{_NAMES}))[\w.-]++"
_QUOTED = r"""b?"(?:[^"\\]|\\.)*"?|b?'(?:[^'\\]|\\.)*'?"""
_SIGNED = re.compile(r"signature|sig=|credential|token|access_?key|accessid|x-amz-|x-goog-|passw|secret", re.IGNORECASE)


def _signed_query_hidden(query: re.Match[str]) -> str:
    return f"?{HIDDEN}" if _SIGNED.search(query[0]) else query[0]


_LOGIN = re.compile(r"://[^\s:@/\"'<>]*+:")


def _login_hidden(uri: re.Match[str]) -> str:
    """Hides all up to the last @, since a password may have one."""
    text, end = uri[0], uri[0].rfind("@")
    login = _LOGIN.search(text, 0, max(end, 0))
    return text if login is None else f"{text[: login.end()]}{HIDDEN}{text[end:]}"


# Each looks at every character a few times at most, however a text was made: what is redacted may be hostile.
_PATTERNS: Sequence[tuple[re.Pattern[str], str | Callable[[re.Match[str]], str]]] = (
    (
        re.compile(r"-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\Z)", re.DOTALL),
        HIDDEN,
    ),
    (re.compile(r"(sasl\.jaas\.config[\"']?\s*[=:]\s*).*", re.IGNORECASE), rf"\g<1>{HIDDEN}"),
    (
        re.compile(rf"((?:authorization|cookie)[\"']?\s*[=:]\s*)(?:{_QUOTED}|.*)", re.IGNORECASE),
        rf"\g<1>{HIDDEN}",
    ),
    (re.compile(r"\b(Bearer|Basic|AWS4-HMAC-SHA256)\s+[^\s\"']+", re.IGNORECASE), rf"\g<1> {HIDDEN}"),
    (re.compile(rf"(\bauth_bytes\s*[=:]\s*)(?:{_QUOTED}|\S+)"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"://[^\s\"'<>]*+"), _login_hidden),
    (re.compile(r"(https?://)[^\s:@/\"'<>]+@", re.IGNORECASE), rf"\g<1>{HIDDEN}@"),
    (re.compile(r"\?[^\s\"'<>]*+"), _signed_query_hidden),
    (
        re.compile(rf"^([ \t]*(?:-[ \t]+)?{_SECRET_WORD}[ \t]*[=:][ \t]*)[^\s\"'].*", re.IGNORECASE | re.MULTILINE),
        rf"\g<1>{HIDDEN}",
    ),
    (re.compile(rf"({_SECRET_WORD}[\"']?\s*(?:=>|[=:])\s*)(?:{_QUOTED}|[^\s,;&]+)", re.IGNORECASE), rf"\g<1>{HIDDEN}"),
    (re.compile(r"(\b(?:sig|delegation)=)[^\s\"'<>;&]+", re.IGNORECASE), rf"\g<1>{HIDDEN}"),
    (re.compile(rf"(\buser_[\w.-]++\s*=\s*)(?:{_QUOTED})"), rf"\g<1>{HIDDEN}"),
    (re.compile(r"\b(?:AKIA|ASIA)[A-Z0-9]{12,}\b|\beyJ[\w-]{8,4096}+\.[\w-]++\.[\w-]*|\bya29\.[\w-]+"), HIDDEN),
)
"""What a secret looks like where neither it nor its setting is known, and what stands for it."""
_SETTING = re.compile(r"(?P<before>(?:--[\w-]+=)?)(?P<name>[\w.-]+)=.*", re.DOTALL)
"""A word of a command line that is a setting to its end, whatever is in its value."""
_known: set[str] = set()


def is_secret(setting: str) -> bool:
    """Whether a setting of this name holds a secret."""
    return _SECRET_NAME.search(setting) is not None and not setting.lower().endswith(_NO_SECRET_ENDS)


def remember_secrets(settings: Mapping[str, str]) -> None:
    """Has `redacted` hide the values of the settings that hold secrets, wherever they appear from now on.

    Of a connection string (`AccountName=…;AccountKey=…`), also those of its parts.
    """
    for name, value in settings.items():
        is_path = name in _FOLDERS or (value.startswith("/") and os.path.exists(value))
        if len(value) >= _SHORTEST_KNOWN and is_secret(name) and not is_path:
            _known.update(_spellings(value))
            remember_secrets(dict(_parts(value)))


def _parts(connection_string: str) -> Iterator[tuple[str, str]]:
    for part in connection_string.split(";"):
        name, equals, value = part.partition("=")
        if equals:
            yield name.strip(), value.strip()


def _spellings(value: str) -> Iterator[str]:
    """A secret as texts have it: escaped, in a URL, in a form, and in Base64, alone or in the middle of something."""
    yield from (value, repr(value)[1:-1], json.dumps(value)[1:-1])
    yield from (quote(value), quote(value, safe=""), quote_plus(value))
    for before in range(3):
        data = bytes(before) + value.encode(errors="surrogateescape")
        for encode in (b64encode, urlsafe_b64encode):
            whole = encode(data).decode().rstrip("=")
            own = whole[before and before + 1 : len(whole) - (len(data) % 3 > 0)]
            if len(own) >= _SHORTEST_ENCODED:
                yield own


def redacted(text: str) -> str:
    """A text without secrets: those that are remembered, and what looks like one."""
    for value in sorted(_known, key=len, reverse=True):
        text = text.replace(value, HIDDEN)
    for pattern, instead in _PATTERNS:
        text = pattern.sub(instead, text)
    return text


def redacted_words(words: Iterable[str]) -> list[str]:
    """A command line's words without secrets: also the word after an option that takes one."""
    left: list[str] = []
    is_value = False
    for word in words:
        setting = _SETTING.fullmatch(word)
        if is_value and not word.startswith("-"):
            left.append(HIDDEN)
        elif setting and is_secret(setting["name"]):
            left.append(f"{setting['before']}{setting['name']}={HIDDEN}")
        else:
            left.append(redacted(word))
        is_value = word.startswith("--") and "=" not in word and is_secret(word)
    return left
