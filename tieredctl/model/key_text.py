"""An object's key as text and as bytes. Names of files may be any bytes: those that are not UTF-8 are lone surrogates
in the text, so that both name the same object."""

from __future__ import annotations

_ERRORS = "surrogateescape"


def key_text(data: bytes) -> str:
    """The key of these bytes."""
    return data.decode("utf-8", _ERRORS)


def key_bytes(key: str) -> bytes:
    """The bytes of a key. Raises UnicodeEncodeError for a text that is not one."""
    return key.encode("utf-8", _ERRORS)
